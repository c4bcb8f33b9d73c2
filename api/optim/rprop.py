"""Rprop: step sizes grow while gradients keep their sign and shrink when they change it."""

from __future__ import annotations

from typing import Any

from ..tracer.creation import full_like
from ..tracer.tensor import Tensor
from .checks import require_non_negative
from .hyper import read
from .optimizer import Optimizer, counter, zeros_for


class Rprop(Optimizer):
    """Rprop(params, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50), ...)."""

    def __init__(self, params: Any, lr: Any = 1e-2, etas: Any = (0.5, 1.2),
                 step_sizes: Any = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False) -> None:  # fmt: skip
        require_non_negative(lr=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}; they must be in (0, 1) "
                             "and above 1")  # fmt: skip
        defaults = {"lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
                    "maximize": maximize, "differentiable": differentiable,
                    "capturable": capturable}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        lr = float(group["lr"])
        kept["step"] = counter()
        kept["prev"] = zeros_for(parameter)
        kept["step_size"] = full_like(grad, complex(lr, lr) if parameter.is_complex() else lr)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        return tuple(read(group, name, k) for name in ("etas", "step_sizes") for k in (0, 1))

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        shrink, grow, smallest, largest = settings
        kept["step"].add_(1)
        agreement = grad.mul(kept["prev"])
        opposed = agreement < 0
        ones = agreement.mul(0).add_(1)
        factor = ones.mul(grow).where(agreement > 0, ones)
        factor = ones.mul(shrink).where(opposed, factor)
        size = kept["step_size"].mul_(factor).clamp_(smallest, largest)
        grad = grad.mul(0).where(opposed, grad)  # after a change of sign the step is left out
        param.addcmul_(grad.sign(), size, value=-1)
        kept["prev"].copy_(grad)
