"""Muon: momentum whose singular values are pushed towards one."""

from __future__ import annotations

import math
from typing import Any

from ..tracer.tensor import Tensor
from .hyper import read
from .optimizer import zeros_for
from .tensorwise import TensorwiseOptimizer, require_at_least


class Muon(TensorwiseOptimizer):
    """Muon(params, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True,
    ns_coefficients=(3.4445, -4.775, 2.0315), eps=1e-7, ns_steps=5, adjust_lr_fn=None)."""

    def __init__(self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1,
                 momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
                 eps: float = 1e-7, ns_steps: int = 5,
                 adjust_lr_fn: str | None = None) -> None:  # fmt: skip
        require_at_least(0, Learning__rate=lr, momentum=momentum, weight__decay=weight_decay)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum,
                    "nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps,
                    "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn}  # fmt: skip
        super().__init__(params, defaults)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.ndim != 2:
                    raise ValueError("Muon only supports 2D parameters whereas we found a "
                                     f"parameter with size: {parameter.size()}")  # fmt: skip

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["momentum_buffer"] = zeros_for(grad)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        return (read(group, "lr"), read(group, "weight_decay"), read(group, "momentum"), group)

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, weight_decay, momentum, group = settings
        kept["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = kept["momentum_buffer"]
        if group["nesterov"]:
            update = grad.lerp(update, momentum)
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-lr * _ratio(group["adjust_lr_fn"], *param.shape))


def _ratio(rule: str | None, rows: int, columns: int) -> float:
    """How the shape of a matrix changes its learning rate."""
    if rule == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def orthogonal(matrix: Any, coefficients: Any, steps: int, eps: float) -> Any:
    """Newton-Schulz steps of fifth order in bfloat16: the matrix with singular values near 1."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.bfloat16()
    x = x.T if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = x.addmm(gram.addmm(gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
