"""RAdam: Adam that rectifies the variance of its first steps."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_betas, require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class RAdam(Optimizer):
    """RAdam(params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_non_negative(weight_decay=weight_decay)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "maximize": maximize, "foreach": foreach, "capturable": capturable,
                    "decoupled_weight_decay": decoupled_weight_decay,
                    "differentiable": differentiable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["exp_avg"] = zeros_for(parameter)
        kept["exp_avg_sq"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return (read(group, "lr"), read(group, "betas", 0), read(group, "betas", 1),
                read(group, "eps"), decay, group["decoupled_weight_decay"])  # fmt: skip

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, beta1, beta2, eps, weight_decay, decoupled = settings
        step = kept["step"].add_(1).value()
        if weight_decay is not None:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mean = kept["exp_avg"].lerp_(grad, 1 - beta1)
        square = kept["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction2
        update = mean.div(correction1).mul_(lr)
        if isinstance(length, float):
            if length > 5.0:
                update.mul_(rectification(length, longest))
                update.div_(square.sqrt().add_(eps).div_(correction2**0.5))
        else:  # a recorded step decides at run time
            scale = square.sqrt().add_(eps).div_(correction2**0.5)
            rectified = update.mul(rectification(length, longest)).div_(scale)
            update = rectified.where(length > 5.0, update)
        param.add_(update, alpha=-1.0)


def rectification(length: Any, longest: Any) -> Any:
    """The factor for an average over `length` steps, of at most `longest`."""
    return ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
