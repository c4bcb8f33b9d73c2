"""Adadelta."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class Adadelta(Optimizer):
    """Adadelta(params, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0, ...)."""

    def __init__(self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
                 maximize: bool = False, differentiable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}; it must be in [0, 1]")
        require_non_negative(eps=eps, weight_decay=weight_decay)
        defaults = {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                    "maximize": maximize, "capturable": capturable, "foreach": foreach,
                    "differentiable": differentiable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["square_avg"] = zeros_for(parameter)
        kept["acc_delta"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return read(group, "lr"), read(group, "rho"), read(group, "eps"), decay

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, rho, eps, weight_decay = settings
        kept["step"].add_(1)
        if weight_decay is not None:
            grad = grad.add(param, alpha=weight_decay)
        square = kept["square_avg"].mul_(rho).addcmul_(grad, grad, value=1 - rho)
        deltas = kept["acc_delta"]
        delta = deltas.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(grad)
        deltas.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(delta, alpha=-lr)
