"""Writing a tensor's elements: copy_, fill_, zero_."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.arguments import must_be
from ..ir.op import TABLE
from ..ir.types import broadcast_shapes, check_run_time
from .convert import _from_array, method, to_dtype
from .inplace import run_inplace
from .tensor import Tensor


@method
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Copies `src`, broadcast and cast, into this tensor."""
    if isinstance(src, int | float | complex | np.number | np.bool_):
        src = _from_array(src)
    if not isinstance(src, Tensor):
        raise must_be("copy_", "other", "Tensor", src, 1)
    return run_inplace(copy, self, (src,), {})


def copy(target: Any, src: Any) -> Any:
    """What `copy_` writes: `src` as a value of the target's type."""
    if tuple(src.shape) != tuple(target.shape):
        shape = broadcast_shapes(tuple(target.shape), tuple(src.shape))
        if shape != tuple(target.shape):
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the "
                               f"broadcast shape {list(shape)}")  # fmt: skip
        src = src.expand(shape)
    src = to_dtype(src, target.dtype)
    return TABLE["copy"](overwritten(target), src)


copy.overlap = "aligned"  # type: ignore[attr-defined]


def overwritten(target: Any) -> Any:
    """The value a write replaces, where it has history of its own."""
    return target if target._requires_grad else None


@method
def fill_(self: Tensor, value: Any) -> Tensor:
    """Sets every element to `value`."""
    run_inplace(fill, each_once(self), (value,), {})
    return self


def each_once(tensor: Tensor) -> Tensor:
    """A view of all its memory that shows no element twice, as an expanded one does."""
    array = tensor._array
    for dim, (size, step) in enumerate(zip(array.shape, array.strides)):
        if size > 1 and step == 0:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def fill(target: Any, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{value.ndim} dimensions."
            )
        check_run_time(value, target.dtype)
        size, value = tuple(target.shape), to_dtype(value, target.dtype)
        return TABLE["fill_tensor"](overwritten(target), value, size=size)
    if not isinstance(value, int | float | complex | np.number | np.bool_):
        raise TypeError(f"fill_(): argument 'value' must be Tensor or Number, not "
                        f"{value.__class__.__name__}")  # fmt: skip
    return TABLE["fill"](target, value=value)


@method
def zero_(self: Tensor) -> Tensor:
    """Sets every element to zero."""
    run_inplace(zero, each_once(self), (), {})
    return self


def zero(target: Any) -> Any:
    return TABLE["zero"](target)
