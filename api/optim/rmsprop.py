"""RMSprop."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..tracer.tensor import Tensor
from .checks import require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class Settings(NamedTuple):
    """Hyper-parameters of a step; None where the term is left out."""

    lr: Any
    alpha: Any
    eps: Any
    weight_decay: Any
    momentum: Any
    centered: bool


class RMSprop(Optimizer):
    """RMSprop(params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0, momentum: float = 0, centered: bool = False,
                 capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay,
                             alpha=alpha)  # fmt: skip
        defaults = {"lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps,
                    "centered": centered, "weight_decay": weight_decay, "capturable": capturable,
                    "foreach": foreach, "maximize": maximize,
                    "differentiable": differentiable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["square_avg"] = zeros_for(parameter)
        if group["momentum"] > 0:
            kept["momentum_buffer"] = zeros_for(parameter)
        if group["centered"]:
            kept["grad_avg"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Settings:
        return Settings(
            read(group, "lr"), read(group, "alpha"), read(group, "eps"),
            read(group, "weight_decay") if given(group, "weight_decay") else None,
            read(group, "momentum") if given(group, "momentum") else None, group["centered"],
        )  # fmt: skip

    def _wengert_needed(self, h: Settings) -> tuple[str, ...]:
        momentum = () if h.momentum is None else ("momentum_buffer",)
        return ("square_avg", "step", *momentum, *(("grad_avg",) if h.centered else ()))

    def _wengert_update(self, h: Settings, param: Any, grad: Any, kept: Any) -> None:
        kept["step"].add_(1)
        if h.weight_decay is not None:
            grad = grad.add(param, alpha=h.weight_decay)
        square = kept["square_avg"].mul_(h.alpha).addcmul_(grad, grad, value=1 - h.alpha)
        if h.centered:
            mean = kept["grad_avg"].lerp_(grad, 1 - h.alpha)
            scale = square.clone().addcmul_(mean, mean, value=-1).sqrt_()
        else:
            scale = square.sqrt()
        scale.add_(h.eps)
        if h.momentum is None:
            param.addcdiv_(grad, scale, value=-h.lr)
        else:
            buffer = kept["momentum_buffer"].mul_(h.momentum).addcdiv_(grad, scale)
            param.add_(buffer, alpha=-h.lr)
