"""Adagrad."""

from __future__ import annotations

from typing import Any

from ..tracer.creation import full_like
from ..tracer.tensor import Tensor
from .adam import tensor_steps
from .checks import require_non_negative, require_plain_fused
from .hyper import given, read
from .optimizer import Optimizer, counter
from .stepping import add_rows


class Adagrad(Optimizer):
    """Adagrad(params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, ...)."""

    def __init__(self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10,
                 foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:  # fmt: skip
        require_non_negative(
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                    "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                    "maximize": maximize, "differentiable": differentiable,
                    "fused": fused}  # fmt: skip
        super().__init__(params, defaults)
        require_plain_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for parameter in group["params"]:
                self._wengert_start(group, parameter, parameter, self.state[parameter])

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in (("foreach", None), ("maximize", False), ("fused", None),
                                ("differentiable", False)):  # fmt: skip
                group.setdefault(name, value)
            tensor_steps(self, group)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        start = self.defaults["initial_accumulator_value"]
        kept["step"] = counter()
        kept["sum"] = full_like(
            parameter, complex(start, start) if parameter.is_complex() else start
        )

    def share_memory(self) -> None:
        """Nothing to do: threads share memory anyway."""

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return read(group, "lr"), read(group, "lr_decay"), read(group, "eps"), decay

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, lr_decay, eps, weight_decay = settings
        step = kept["step"].add_(1).value()
        if weight_decay is not None:
            grad = grad.add(param, alpha=weight_decay)
        rate = lr / (1 + (step - 1) * lr_decay)
        total = kept["sum"].addcmul_(grad, grad, value=1)
        param.addcdiv_(grad, total.sqrt().add_(eps), value=-rate)

    def _wengert_require_sparse(self, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")

    def _wengert_update_sparse(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, lr_decay, eps, _ = settings
        kept["step"] += 1
        rate = lr / (1 + (kept["step"].item() - 1) * lr_decay)
        grad = grad.coalesce()  # the square of a sum
        add_rows(kept["sum"], grad.pow(2), 1)
        root = kept["sum"][tuple(grad.indices())].sqrt().add_(eps)
        add_rows(param, grad.like(grad.values() / root), -rate)
