"""Values from nothing: constants, ranges, identity; and filling."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import as_dtype, fill_number, must_be, sizes
from ..op import Decompose, Scalar, define
from ..types import (
    DType,
    TensorType,
    check_number,
    check_run_time,
    default_dtype,
    float64,
    from_numpy_dtype,
    int64,
    scalar_dtype,
)
from ..value import Value, public


def _full(*, size: Any, fill_value: Any, dtype: DType, order: Any = None) -> np.ndarray:
    if order is not None:  # dimensions from the slowest to the fastest in memory
        turned = _full(size=[size[d] for d in order], fill_value=fill_value, dtype=dtype)
        return turned.transpose(np.argsort(order))
    if fill_value == 0 and not isinstance(fill_value, float):
        return np.zeros(size, dtype.compute)
    return np.full(size, in_dtype(fill_value, dtype), dtype.compute)


def in_dtype(value: Any, dtype: DType) -> Any:
    """A Python number as a NumPy scalar of `dtype`, where it fits; 16-bit floats hold any."""
    wide = dtype if dtype.compute == dtype.storage else float64
    return np.asarray(check_number(value, wide)).astype(dtype.compute)


full = define(
    "full", "-> result", numpy=_full, kind="creation",
    infer=lambda *, size, fill_value, dtype, order=None: TensorType(dtype, size),
    lower=Scalar(lambda s, *, size, fill_value, dtype, order=None: (
        s.const(fill_value, dtype.name))),
)  # fmt: skip
constant = define(
    "constant", "-> result", kind="creation",
    numpy=lambda *, value, dtype: np.asarray(value).astype(dtype.compute),
    infer=lambda *, value, dtype: TensorType(dtype, ()),
    lower=Scalar(lambda s, *, value, dtype: s.const(value, dtype.name)),
)  # fmt: skip
iota = define(
    "iota", "-> result", kind="creation",
    numpy=lambda *, size, start=0, step=1, dtype: _iota(size, start, step, dtype),
    infer=lambda *, size, start=0, step=1, dtype: TensorType(dtype, (size,)),
)  # fmt: skip


def _iota(size: int, start: Any, step: Any, dtype: DType) -> Any:
    if dtype.is_floating_point:  # torch computes start + k * step in the wide type
        return (start + np.arange(size, dtype=np.float64) * step).astype(dtype.compute)
    return (np.arange(size) * int(step) + int(start)).astype(dtype.compute)


zeros_like = define(
    "zeros_like", "self -> result", moves_data=True, kind="creation",
    numpy=lambda x: np.zeros(x.shape, x.dtype), infer=lambda self: self,
    lower=Decompose(lambda self: full(size=tuple(self.shape), fill_value=0, dtype=self.dtype)),
)  # fmt: skip


# What `copy_`, `fill_` and `zero_` write, with torch's node names.
# `self`, the overwritten value, is named only where it has history: its gradient is zero.
copy = define(
    "copy", "self? src -> result", moves_data=True, kind="creation", node="CopyBackwards",
    numpy=lambda x, src: src, infer=lambda self, src: src,
    lower=Decompose(lambda self, src: src),
    samples=lambda rng: [((None, rng.standard_normal((3, 4))), {})],
    vjp=dict(self=lambda grad: grad.new_zeros(grad.shape), src=lambda grad: grad),
)  # fmt: skip
fill_tensor = define(
    "fill_tensor", "self? value -> result", kind="creation",
    node=lambda attrs: f"FillBackward{attrs.get('form', 3)}",  # 3 in place, 1 not
    numpy=lambda x, value, *, size, form=3: np.broadcast_to(value, size),
    infer=lambda self, value, *, size, form=3: TensorType(value.dtype, size),
    lower=Decompose(lambda self, value, *, size, form=3: value.expand(size)),
    samples=lambda rng: [((None, rng.standard_normal(())), {"size": (2, 3)})],
    vjp=dict(self=lambda grad: grad.new_zeros(grad.shape), value=lambda grad: grad),
)  # fmt: skip
fill = define(
    "fill", "self -> result", kind="creation",
    node=lambda attrs: f"FillBackward{attrs.get('form', 2)}",  # 2 in place, 0 not
    numpy=lambda x, *, value, form=2: np.full(
        x.shape, in_dtype(value, from_numpy_dtype(x.dtype)), x.dtype),
    infer=lambda self, *, value, form=2: self,
    lower=Decompose(lambda self, *, value, form=2: full(
        size=tuple(self.shape), fill_value=value, dtype=self.dtype)),
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {"value": 1.5})],
    vjp=dict(self=lambda grad: grad.new_zeros(grad.shape)),
)  # fmt: skip
zero = define(
    "zero", "self -> result", moves_data=True, kind="creation",
    numpy=lambda x: np.zeros(x.shape, x.dtype), infer=lambda self: self,
    lower=Decompose(lambda self: full(size=tuple(self.shape), fill_value=0, dtype=self.dtype)),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {})],
    vjp=dict(self=lambda grad: grad.new_zeros(grad.shape)),
)  # fmt: skip


def shape_of(name: str, values: Any, position: int = 1) -> tuple[int, ...]:
    """The argument `size` of the factory `name`, called f(2, 3) or f((2, 3))."""
    size = sizes(name, tuple(values), position)
    for n in size:
        if n < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative. Got "
                                   f"{list(size)}")  # fmt: skip
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
    return size


def shape_in(name: str, size: Any, position: int = 1) -> tuple[int, ...]:
    """The argument `size` of a factory that takes one sequence."""
    if not isinstance(size, list | tuple):
        raise must_be(name, "size", "tuple of ints", size, position)
    return shape_of(name, (size,), position)


def filled(name: str, shape: tuple[int, ...], fill_value: Any, dtype: DType,
           order: Any = None) -> Any:  # fmt: skip
    """A constant of a shape; the value may be held by a tensor without dims."""
    value = fill_number(name, fill_value)
    if isinstance(value, Value):
        check_run_time(value, dtype)
        row = value.to(dtype).expand(shape or (1,))
        # a row in between: what is made of numbers alone is a number, and this is a tensor
        return (row if shape else row.view(())).clone()
    layout = {} if order is None else {"order": order}
    return full(size=shape, fill_value=value, dtype=dtype, **layout)


@public("new_full", spaces="")
def new_full(
    input: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Any:
    """new_full(size, fill_value): of this tensor's dtype."""
    shape = shape_in("new_full", size)
    wanted = as_dtype(dtype, "new_full") or input.dtype
    made = filled("new_full", shape, fill_value, wanted)
    result = input._beside(made)
    return result.requires_grad_() if requires_grad else result


def _new(name: str, value: int) -> None:
    def function(input: Any, *size: Any, dtype: Any = None, device: Any = None,
                 requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
                 **named: Any) -> Any:  # fmt: skip
        if not size and "size" not in named:
            raise TypeError(f'{name}() missing 1 required positional argument: "size"')
        shape = shape_of(name, named.get("size", size))
        return new_full(input, shape, value, dtype=dtype, requires_grad=requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*size): of this tensor's dtype."
    public(name, spaces="")(function)


_new("new_zeros", 0)
_new("new_ones", 1)
_new("new_empty", 0)


def arange_values(start: Any, end: Any, step: Any, dtype: DType | None) -> tuple[int, DType]:
    """The length and dtype of arange."""
    if dtype is None:
        wide = any(isinstance(v, float) for v in (start, end, step))
        dtype = default_dtype() if wide else scalar_dtype(1)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0) != (end >= start) and end != start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype is int64:  # the only one whose length torch counts in whole steps
        start, end, step = (v if isinstance(v, int) else int(v) for v in (start, end, step))
        if step == 0:
            raise ValueError("step must be nonzero")
    if all(isinstance(v, int) for v in (start, end, step)):
        return max(0, -((start - end) // step)), dtype
    return max(0, int(np.ceil((end - start) / step))), dtype
