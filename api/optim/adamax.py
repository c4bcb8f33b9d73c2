"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_betas, require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class Adamax(Optimizer):
    """Adamax(params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, ...)."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_non_negative(weight_decay=weight_decay)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
                    "capturable": capturable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["exp_avg"] = zeros_for(parameter)
        kept["exp_inf"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return (read(group, "lr"), read(group, "betas", 0), read(group, "betas", 1),
                read(group, "eps"), decay)  # fmt: skip

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, beta1, beta2, eps, weight_decay = settings
        step = kept["step"].add_(1).value()
        if weight_decay is not None:
            grad = grad.add(param, alpha=weight_decay)
        mean, largest = kept["exp_avg"].lerp_(grad, 1 - beta1), kept["exp_inf"]
        largest.mul_(beta2).maximum_(grad.abs().add_(eps))
        param.addcdiv_(mean, largest, value=-(lr / (1 - beta1**step)))
