"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from typing import Any, NamedTuple

from .checks import require_non_negative, require_plain_fused
from .hyper import given, read
from .optimizer import Optimizer
from .stepping import add_rows


class Settings(NamedTuple):
    """Hyper-parameters of a step; None where the term is left out."""

    lr: Any
    momentum: Any
    dampening: Any
    weight_decay: Any
    nesterov: bool


class SGD(Optimizer):
    """SGD(params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: Any = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:  # fmt: skip
        require_non_negative(lr=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        require_plain_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable", "fused"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)

    def _wengert_kept(self, group: dict[str, Any], parameter: Any) -> dict[str, Any]:
        return self.state[parameter] if given(group, "momentum") else {}

    def _wengert_settings(self, group: dict[str, Any]) -> Settings:
        return Settings(
            read(group, "lr"),
            read(group, "momentum") if given(group, "momentum") else None,
            read(group, "dampening"),
            read(group, "weight_decay") if given(group, "weight_decay") else None,
            group["nesterov"],
        )

    def _wengert_update(self, h: Settings, param: Any, grad: Any, kept: Any) -> None:
        if h.weight_decay is not None:
            grad = grad.add(param, alpha=h.weight_decay)
        if h.momentum is not None:
            buffer = kept.get("momentum_buffer")
            if buffer is None:
                buffer = kept["momentum_buffer"] = grad.clone()
            else:
                buffer.mul_(h.momentum).add_(grad, alpha=1 - h.dampening)
            grad = grad.add(buffer, alpha=h.momentum) if h.nesterov else buffer
        param.add_(grad, alpha=-h.lr)

    def _wengert_require_sparse(self, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead"
                               ": sparse gradients have no weight_decay.")  # fmt: skip

    def _wengert_update_sparse(self, h: Settings, param: Any, grad: Any, kept: Any) -> None:
        if h.momentum is not None:
            buffer = kept.get("momentum_buffer")
            if buffer is None:
                kept["momentum_buffer"] = grad.clone()
            else:
                kept["momentum_buffer"] = buffer * h.momentum + grad * (1 - h.dampening)
            grad = (
                grad + kept["momentum_buffer"] * h.momentum
                if h.nesterov
                else kept["momentum_buffer"]
            )
        add_rows(param, grad, -h.lr)
