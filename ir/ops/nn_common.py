"""What the nn.functional files share: argument checks, in-place calls, reductions of losses."""

from __future__ import annotations

import warnings
from typing import Any

from .. import value as value_module
from ..types import FLOAT, DType, type_word
from ..value import Value


def check_value(name: str, **values: Any) -> None:
    """TypeError in torch's words for arguments that must be Tensors and are not."""
    for position, (argument, value) in enumerate(values.items(), 1):
        if not isinstance(value, Value):
            raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be "
                            f"Tensor, not {type(value).__name__}")  # fmt: skip


def floats_only(kernel: str, dtype: DType, complex_too: bool = False) -> None:
    """Refuses dtypes that a kernel of torch's has not, in its words."""
    if dtype.category < FLOAT or (dtype.is_complex and not complex_too):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(dtype)}'")


def maybe_inplace(function: Any, inplace: bool, input: Any, *args: Any) -> Any:
    """`function(input, *args)`, written into `input` where the user asked for it."""
    if not inplace:
        return function(input, *args)
    assert value_module.run_inplace is not None
    return value_module.run_inplace(function, input, args, {})


def as_tuple(value: Any, count: int, name: str, argument: str) -> tuple[int, ...]:
    """An int or a sequence as `count` ints; one value stands for all."""
    listed = (value,) if not isinstance(value, list | tuple) else tuple(value)
    ints = tuple(int(v) for v in listed)
    if len(ints) == 1:
        return ints * count
    if len(ints) != count:
        raise RuntimeError(f"{name}() argument '{argument}' must be a single int or a tuple of "
                           f"{count} ints, got {list(ints)}")  # fmt: skip
    return ints


# --- reductions of losses ------------------------------------------------------------------------


def reduction_name(reduction: str, size_average: Any = None, reduce: Any = None) -> str:
    """The reduction asked for, by name or by the two arguments that preceded it."""
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        whole = True if reduce is None else reduce
        reduction = "none" if not whole else "mean" if average else "sum"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduce_loss(loss: Any, reduction: str) -> Any:
    """`loss` summed or averaged over all its elements, or as it is."""
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def spread_loss(grad: Any, shape: tuple[int, ...], reduction: str) -> Any:
    """The gradient of a reduced loss as one that broadcasts over `shape`."""
    if reduction != "mean":
        return grad
    count = 1
    for size in shape:
        count *= size
    return grad / count
