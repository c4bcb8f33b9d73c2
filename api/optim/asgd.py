"""ASGD: stochastic gradient descent that averages its path."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from .checks import require_non_negative
from .hyper import given, read
from .optimizer import Optimizer, counter, zeros_for


class ASGD(Optimizer):
    """ASGD(params, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr, weight_decay=weight_decay)
        defaults = {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0,
                    "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
                    "differentiable": differentiable, "capturable": capturable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        kept["eta"] = counter(float(group["lr"]))
        kept["mu"] = counter(1.0)
        kept["ax"] = zeros_for(parameter)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return (read(group, "lr"), read(group, "lambd"), read(group, "alpha"), read(group, "t0"),
                decay)  # fmt: skip

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, lambd, alpha, t0, weight_decay = settings
        step = kept["step"].add_(1).value()
        if weight_decay is not None:
            grad = grad.add(param, alpha=weight_decay)
        eta, average = kept["eta"].value(), kept["ax"]
        param.mul_(1 - lambd * eta)
        param.add_(grad, alpha=-eta)
        difference = param.add(average, alpha=-1)
        average.add_(difference.mul_(kept["mu"].value()))
        kept["eta"].copy_(lr / (1 + lambd * lr * step) ** alpha)
        waited = step - t0
        kept["mu"].copy_(
            1 / (waited.clamp(min=1) if isinstance(waited, Tensor) else max(1, waited))
        )
