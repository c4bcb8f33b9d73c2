"""More ways to make tensors: ranges, identity, triangle indices, buffers, permuted memory."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

import numpy as np

from ..ir.arguments import as_dtype, plain_number, whole_number
from ..ir.numerics.spacing import evenly_spaced
from ..ir.op import TABLE
from ..ir.ops import questions
from ..ir.ops.creation import arange_values, filled
from ..ir.types import (
    BOOL,
    FLOAT,
    INTEGER,
    DType,
    bfloat16,
    c_word,
    default_complex,
    default_dtype,
    int64,
    no_kernel,
    to_bfloat16,
    type_word,
)
from .creation import deliver, finish
from .placing import placed
from .scalars import RunTimeNumber
from .strided import empty_strided
from .tensor import Size, Tensor, require_cpu

questions.make_size = Size


# --- ranges --------------------------------------------------------------------------------------


@placed
def arange(*bounds: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           layout: Any = None, pin_memory: bool = False, out: Any = None,
           **named: Any) -> Tensor:  # fmt: skip
    """arange(end), arange(start, end), arange(start, end, step)."""
    require_cpu(device, pin_memory)
    start, end, step = _bounds(bounds, named)
    for value in (start, end, step):
        if isinstance(value, complex):
            raise RuntimeError("value cannot be converted to type double without overflow")
        if isinstance(value, float) and not math.isfinite(value):
            raise RuntimeError(f"unsupported range: {start} -> {end}; both must be finite")
    given = as_dtype(dtype) or (None if out is None else out.dtype)
    count, wanted = arange_values(start, end, step, given)
    refuse_bool("arange_cpu", wanted)
    result = TABLE["iota"](size=count, start=start, step=step, dtype=wanted)
    return deliver(result, requires_grad, out, "arange")


def _bounds(bounds: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
    """start, end and step of arange, however they were given."""
    names = ("end",) if len(bounds) == 1 else ("start", "end", "step")
    given = {**dict(zip(names, bounds)), **named}
    if "end" not in given or len(bounds) > 3 or given.keys() - {"start", "end", "step"}:
        raise TypeError("arange() received an invalid combination of arguments: give end; or "
                        "start and end; or start, end and step")  # fmt: skip
    return [plain_number("arange", name, given.get(name, default), max(len(bounds), 1))
            for name, default in (("start", 0), ("end", None), ("step", 1))]  # fmt: skip


def refuse_bool(kernel: str, dtype: DType) -> None:
    """Ranges of bools are none."""
    if dtype.category == BOOL:
        raise no_kernel(kernel, dtype)


@placed
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
             out: Any = None) -> Tensor:  # fmt: skip
    """linspace(start, end, steps): evenly spaced, both ends included."""
    require_cpu(device, pin_memory)
    array, wanted = _spaced("linspace", start, end, steps, dtype, out)
    refuse_bool("linspace_cpu", wanted)
    return deliver(Tensor._wrap(stored(array, wanted), wanted), requires_grad, out, "linspace")


@placed
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None,
             device: Any = None, requires_grad: bool = False, layout: Any = None,
             pin_memory: bool = False, out: Any = None) -> Tensor:  # fmt: skip
    """logspace(start, end, steps, base=10.0): base to the powers of evenly spaced exponents."""
    require_cpu(device, pin_memory)
    array, wanted = _spaced("logspace", start, end, steps, dtype, out)
    refuse_bool("logspace_cpu", wanted)
    wide = np.complex128 if wanted.is_complex else np.float64
    values = np.power(wide(base), array.astype(wide))
    return deliver(Tensor._wrap(stored(values, wanted), wanted), requires_grad, out, "logspace")


def _spaced(name: str, start: Any, end: Any, steps: Any, dtype: Any,
            out: Any) -> tuple[np.ndarray, DType]:  # fmt: skip
    """The evenly spaced numbers of linspace, and the dtype to store them in."""
    for word, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.ndim:
            raise RuntimeError(f"{name} only supports 0-dimensional start and end tensors, but got "
                               f"{word} with {value.ndim} dimension(s).")  # fmt: skip
    start, end = plain_number(name, "start", start, 1), plain_number(name, "end", end, 2)
    steps = whole_number(name, "steps", steps, 3)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    complex_ = isinstance(start, complex) or isinstance(end, complex)
    default = default_complex() if complex_ else default_dtype()
    wanted = as_dtype(dtype) or (default if out is None else out.dtype)
    if complex_ and not wanted.is_complex:
        raise RuntimeError(f"torch.{name}(): inferred dtype {c_word(default)} can't be safely cast "
                           f"to passed dtype {type_word(wanted)}")  # fmt: skip
    if wanted.category < FLOAT and wanted.name != "bool":  # torch's ends are of the dtype
        start, end = int(start), int(end)
    wide = name == "logspace" and wanted.category <= FLOAT
    return symmetric_range(start, end, steps, wanted, wide), wanted


def symmetric_range(start: Any, end: Any, steps: int, dtype: DType, wide: bool) -> np.ndarray:
    """torch counts from both ends towards the middle, in the result's precision unless `wide`."""
    compute = np.float64 if wide or dtype.category < FLOAT else dtype.compute.type
    low_bits = dtype.itemsize == 2 and dtype.category == FLOAT and not wide

    def rounded(value: Any) -> Any:
        if not low_bits:
            return value
        return Tensor._wrap(stored(np.asarray(value), dtype), dtype)._values_array().astype(compute)

    first, last = rounded(compute(start)), rounded(compute(end))
    if steps == 1:
        return np.array([first], dtype=compute)
    step = rounded(rounded(last - first) / compute(max(steps - 1, 1)))
    if not low_bits:
        return evenly_spaced(first, last, step, steps)
    k = np.arange(steps)
    low = first + rounded(step * k.astype(compute))
    high = last - rounded(step * (steps - k - 1).astype(compute))
    return np.where(k < steps // 2, low, high)


def stored(values: np.ndarray, dtype: DType) -> np.ndarray:
    return to_bfloat16(values) if dtype is bfloat16 else values.astype(dtype.storage)


@placed
def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None,
        requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
        out: Any = None) -> Tensor:  # fmt: skip
    """eye(n, m=None): ones on the diagonal."""
    require_cpu(device, pin_memory)
    n = whole_number("eye", "n", n, 1)
    m = n if m is None else whole_number("eye", "m", m, 2)
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    wanted = as_dtype(dtype) or (default_dtype() if out is None else out.dtype)
    array = stored(np.eye(n, m, dtype=wanted.compute), wanted)
    return deliver(Tensor._wrap(array, wanted), requires_grad, out, "eye")


# --- others --------------------------------------------------------------------------------------


def _triangle_indices(name: str, keep: Any) -> Any:
    def function(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        require_cpu(device)
        for word, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{word} must be non-negative, got{size}")
        wanted = as_dtype(dtype) or int64
        if wanted.category != INTEGER:
            raise no_kernel(name, wanted)
        mask = keep(np.ones((row, col), np.bool_), offset)
        indices = np.stack(np.nonzero(mask)).astype(wanted.storage)
        return finish(Tensor._wrap(indices, wanted), False)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(row, col, offset=0): rows and columns of a triangle's elements."
    return function


tril_indices = _triangle_indices("tril_indices", np.tril)
triu_indices = _triangle_indices("triu_indices", np.triu)


def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
    layout: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """range(start=0, end, step=1): as arange, with the end included (deprecated)."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    start, end, step = (plain_number("range", word, value, k) for k, (word, value) in enumerate(
        (("start", start), ("end", end), ("step", step)), 1))  # fmt: skip
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}; both must be finite")
    count = math.floor((end - start) / step) + 1
    wanted = as_dtype(dtype) or default_dtype()
    return arange(start, start + count * step - step / 2, step, dtype=wanted, device=device,
                  requires_grad=requires_grad)  # fmt: skip


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, layout: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """scalar_tensor(s): a tensor without dimensions, of the default dtype unless given."""
    require_cpu(device)
    wanted = as_dtype(dtype) or default_dtype()
    value = s if type(s) is RunTimeNumber else plain_number("scalar_tensor", "s", s, 1)
    return finish(filled("scalar_tensor", (), value, wanted), requires_grad)


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """frombuffer(buffer, *, dtype, count=-1, offset=0): a vector on the buffer's memory."""
    size = memoryview(buffer).nbytes
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < max(size, 1):
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({size} bytes) minus 1")  # fmt: skip
    if count < 0 and (size - offset) % dtype.itemsize:
        raise ValueError(f"buffer length ({size} bytes) after offset ({offset} bytes) must be a "
                         f"multiple of element size ({dtype.itemsize})")  # fmt: skip
    array = np.frombuffer(buffer, dtype.storage, count, offset)
    return finish(Tensor._wrap(array, dtype), requires_grad)


def empty_permuted(size: Any, physical_layout: Any, **more: Any) -> Tensor:
    """empty_permuted(size, physical_layout): dense memory whose dimensions lie in this order."""
    size, order = tuple(size), tuple(physical_layout)
    if sorted(order) != list(builtins.range(len(size))):
        raise RuntimeError(f"Number of dimensions in size does not match the length of the "
                           f"physical_layout: {list(size)} and {list(order)}")  # fmt: skip
    stride, step = [0] * len(size), 1
    for d in reversed(order):
        stride[d], step = step, step * size[d]
    return empty_strided(size, stride, **more)
