"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_betas, require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class NAdam(Optimizer):
    """NAdam(params, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0, ...)."""

    def __init__(self, params: Any, lr: Any = 2e-3, betas: Any = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 4e-3,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr, eps=eps)
        require_betas(betas)
        require_non_negative(weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                    "momentum_decay": momentum_decay,
                    "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                    "foreach": foreach, "capturable": capturable,
                    "differentiable": differentiable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["mu_product"] = counter(1.0)
        kept["exp_avg"] = zeros_for(parameter)
        kept["exp_avg_sq"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return (read(group, "lr"), read(group, "betas", 0), read(group, "betas", 1),
                read(group, "eps"), decay, read(group, "momentum_decay"),
                group["decoupled_weight_decay"])  # fmt: skip

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled = settings
        step = kept["step"].add_(1).value()
        if weight_decay is not None:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        mu = beta1 * (1.0 - 0.5 * 0.96 ** (step * momentum_decay))
        mu_next = beta1 * (1.0 - 0.5 * 0.96 ** ((step + 1) * momentum_decay))
        product = kept["mu_product"].mul_(mu).value()
        mean = kept["exp_avg"].lerp_(grad, 1 - beta1)
        square = kept["exp_avg_sq"].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        scale = square.div(1 - beta2**step).sqrt_().add_(eps)
        param.addcdiv_(grad, scale, value=-lr * (1.0 - mu) / (1.0 - product))
        param.addcdiv_(mean, scale, value=-lr * mu_next / (1.0 - product * mu_next))
