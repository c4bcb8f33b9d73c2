"""Adafactor: second moments kept as one row and one column per matrix."""

from __future__ import annotations

from typing import Any

from ..facts import finfo
from ..ir.bind import state
from ..tracer.tensor import Tensor
from .hyper import given, read
from .optimizer import counter, zeros_for
from .tensorwise import TensorwiseOptimizer, require_at_least


class Adafactor(TensorwiseOptimizer):
    """Adafactor(params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, *,
    foreach=None, maximize=False)."""

    def __init__(self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
                 eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None,
                 maximize: bool = False) -> None:  # fmt: skip
        require_at_least(0, Learning__rate=lr)
        if beta2_decay > 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        require_at_least(0, epsilon1=eps[0] or 0.0, epsilon2=eps[1])
        require_at_least(1, Clipping__threshold__d=d)
        require_at_least(0, weight_decay=weight_decay)
        defaults = {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                    "weight_decay": weight_decay, "foreach": foreach,
                    "maximize": maximize}  # fmt: skip
        super().__init__(params, defaults)

    def _wengert_start(self, group: Any, parameter: Tensor, grad: Tensor, kept: Any) -> None:
        kept["step"] = counter()
        if grad.ndim > 1:
            kept["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
            kept["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
        else:
            kept["variance"] = zeros_for(grad)

    def _wengert_settings(self, group: dict[str, Any]) -> Any:
        decay = read(group, "weight_decay") if given(group, "weight_decay") else None
        return read(group, "lr"), group["beta2_decay"], group["eps"], group["d"], decay

    def _wengert_update(self, settings: Any, param: Any, grad: Any, kept: Any) -> None:
        lr, beta2_decay, (eps1, eps2), d, weight_decay = settings
        eps1 = finfo(param.dtype).eps if eps1 is None else eps1
        step = number(kept["step"].add_(1))
        rate = at_most(lr, step**-0.5)
        size = at_least(eps2, number(param.norm(2)) / param.numel() ** 0.5)
        if weight_decay is not None:
            param.mul_(1 - lr * weight_decay)
        variance = _variance(grad, kept, step**beta2_decay, eps1)
        update = variance.clamp_(min=eps1 * eps1).rsqrt_().mul_(grad)
        excess = at_least(1.0, number(update.norm(2)) / (update.numel() ** 0.5 * d))
        param.add_(update, alpha=-size * rate / excess)


def number(tensor: Tensor) -> Any:
    """The number in a 0-d tensor; in a recording, a 0-d double that stands for it."""
    return tensor.item() if state.top is state.bottom else tensor.double()


def at_most(limit: Any, value: Any) -> Any:
    return value.clamp(max=limit) if isinstance(value, Tensor) else min(limit, value)


def at_least(limit: float, value: Any) -> Any:
    return value.clamp(min=limit) if isinstance(value, Tensor) else max(limit, value)


def _variance(grad: Any, kept: dict[str, Any], weight: float, eps: float) -> Any:
    """The running second moment; of matrices, the product of its row and its column."""
    if grad.ndim < 2:
        return kept["variance"].lerp_(grad * grad, weight).clone()
    for name, dim in (("row_var", -1), ("col_var", -2)):
        mean = grad.norm(dim=dim, keepdim=True).square_().div_(grad.shape[dim])
        kept[name].lerp_(mean, weight)
    row = kept["row_var"]
    return (row @ kept["col_var"]).div_(row.mean(dim=-2, keepdim=True).clamp_(min=eps))
