"""Making tensors: from data, constants, ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.bind import notify, state
from ..ir.op import TABLE
from ..ir.ops.creation import arange_values, shape_of
from ..ir.types import (
    BY_NAME,
    FLOAT,
    DType,
    bfloat16,
    default_complex,
    default_dtype,
    from_numpy_dtype,
    to_bfloat16,
)
from .data import from_data, infer_dtype, plain
from .scalars import plain_number
from .tensor import Tensor, require_cpu


def finish(result: Tensor, requires_grad: bool) -> Tensor:
    notify("made", result)
    if requires_grad and result.dtype.category < FLOAT:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return result.requires_grad_() if requires_grad else result


def as_dtype(dtype: Any) -> DType | None:
    """A dtype argument checked; None means "infer"."""
    if dtype is None or isinstance(dtype, DType):
        return dtype
    if dtype in _PYTHON_TYPES:
        return BY_NAME[_PYTHON_TYPES[dtype]]
    raise TypeError(f"dtype must be a torch.dtype, not {dtype!r}")


_PYTHON_TYPES: dict[Any, str] = {float: "float64", int: "int64", bool: "bool"}


def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`."""
    require_cpu(device)
    if state.top is not state.bottom:
        data = plain_number(data)  # a run-time number is no tensor for the user
    if isinstance(data, Tensor):
        import warnings

        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        fresh = data.detach().clone()
        return finish(fresh if dtype is None else fresh.to(dtype), requires_grad)
    return finish(from_data(data, as_dtype(dtype)), requires_grad)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor of `data`, sharing memory with tensors and arrays where it can."""
    require_cpu(device)
    dtype = as_dtype(dtype)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(dtype)
    if isinstance(data, np.ndarray):
        shared = from_numpy(data)
        return shared if dtype is None else shared.to(dtype)
    return from_data(data, dtype)


def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None,
            requires_grad: bool = False) -> Tensor:  # fmt: skip
    """A tensor of `obj`; `copy=True` never shares memory."""
    result = tensor(obj, dtype=dtype) if copy and not isinstance(obj, Tensor) else as_tensor(
        obj, dtype)  # fmt: skip
    if copy and isinstance(obj, Tensor):
        result = result.clone()
    return finish(result, requires_grad)


def from_numpy(array: Any) -> Tensor:
    """A tensor on the array's own memory."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    dtype = from_numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. "
                         "Conversion between byte orders is currently not supported.")  # fmt: skip
    result = Tensor._wrap(array.view(np.ndarray), dtype)
    notify("from_array")
    from .storage import Storage, expose, owner_of

    result._storage = Storage(owner_of(array))
    expose(array)
    return result


# --- constants -----------------------------------------------------------------------------------


def _filled(name: str, value: int) -> Any:
    def function(*size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
                 layout: Any = None, pin_memory: bool = False, memory_format: Any = None,
                 out: Any = None, **named: Any) -> Tensor:  # fmt: skip
        require_cpu(device)
        size = (named.pop("size"),) if "size" in named else size
        shape = shape_of(size)
        if named:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
        if out is not None:
            from .inplace import copy_out

            copy_out(TABLE["full"](size=shape, fill_value=value, dtype=out.dtype), out, name)
            return out
        result = TABLE["full"](
            size=shape, fill_value=value, dtype=as_dtype(dtype) or default_dtype()
        )
        return finish(result, requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(*size, dtype=None, requires_grad=False)."
    return function


zeros = _filled("zeros", 0)
ones = _filled("ones", 1)
empty = _filled("empty", 0)


def full(
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    out: Any = None,
    **_: Any,
) -> Tensor:
    """full(size, fill_value): the dtype is the value's unless given."""
    require_cpu(device)
    shape = shape_of((size,))
    if isinstance(fill_value, Tensor):
        own = default_dtype() if getattr(fill_value, "wrapped", False) else fill_value.dtype
        result = fill_value.to(as_dtype(dtype) or own).expand(shape).clone()
        return finish(result.detach(), requires_grad)
    inferred = as_dtype(dtype) or infer_dtype(plain(fill_value))
    return finish(TABLE["full"](size=shape, fill_value=fill_value, dtype=inferred), requires_grad)


def _like(name: str, value: int) -> Any:
    def function(
        input: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        check_like(name, input)
        require_cpu(device)
        return full_like(input, value, dtype=dtype, requires_grad=requires_grad)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input): of the input's shape and dtype."
    return function


def check_like(name: str, input: Any) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not "
                        f"{type(input).__name__}")  # fmt: skip


zeros_like = _like("zeros_like", 0)
ones_like = _like("ones_like", 1)
empty_like = _like("empty_like", 0)


def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    memory_format: Any = None,
) -> Tensor:
    """full_like(input, fill_value)."""
    check_like("full_like", input)
    result = TABLE["full"](size=tuple(input.shape), fill_value=fill_value,
                           dtype=as_dtype(dtype) or input.dtype)  # fmt: skip
    return finish(result, requires_grad)


# --- ranges --------------------------------------------------------------------------------------


def number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor | np.generic) else value


def arange(*bounds: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False,
           layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
    """arange(end), arange(start, end), arange(start, end, step)."""
    require_cpu(device)
    values = [number(b) for b in bounds]
    start, end, step = {1: [0, *values, 1], 2: [*values, 1], 3: values}.get(len(values), [0, 0, 1])
    start, end, step = (number(named.get("start", start)), number(named.get("end", end)),
                        number(named.get("step", step)))  # fmt: skip
    for value in (start, end, step):
        if isinstance(value, float) and not np.isfinite(value):
            raise RuntimeError(f"unsupported range: {start} -> {end}")
    count, dtype = arange_values(start, end, step, as_dtype(dtype))
    result = TABLE["iota"](size=count, start=start, step=step, dtype=dtype)
    return finish(result, requires_grad)


def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    out: Any = None,
) -> Tensor:
    """linspace(start, end, steps): evenly spaced, both ends included."""
    require_cpu(device)
    if not hasattr(steps, "__index__"):
        raise TypeError(f"linspace() received an invalid combination of arguments: steps must be "
                        f"int, not {type(steps).__name__}")  # fmt: skip
    steps = steps.__index__()
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    start, end = number(start), number(end)
    complex_ = isinstance(start, complex) or isinstance(end, complex)
    dtype = as_dtype(dtype) or (default_complex() if complex_ else default_dtype())
    array = symmetric_range(start, end, steps, dtype)
    return finish(Tensor._wrap(array, dtype), requires_grad)


def symmetric_range(start: Any, end: Any, steps: int, dtype: DType) -> np.ndarray:
    """torch counts from both ends towards the middle, in the result's precision."""
    compute = dtype.compute.type if dtype.category >= FLOAT else np.float64
    if steps == 1:
        values = np.array([start], dtype=compute)
    else:
        step = compute(compute(end) - compute(start)) / compute(max(steps - 1, 1))
        k = np.arange(steps)
        low = compute(start) + step * k.astype(compute)
        high = compute(end) - step * (steps - k - 1).astype(compute)
        values = np.where(k < steps // 2, low, high)
    if dtype is bfloat16:
        return to_bfloat16(values)
    return values.astype(dtype.storage)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
) -> Tensor:
    """logspace(start, end, steps, base=10.0)."""
    dtype = as_dtype(dtype) or default_dtype()
    exponents = linspace(start, end, steps, dtype=BY_NAME["float64"])._array
    values = np.power(float(base), exponents)
    result = Tensor._wrap(values, BY_NAME["float64"]).to(dtype)
    return finish(result, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None,
        requires_grad: bool = False, layout: Any = None, out: Any = None) -> Tensor:  # fmt: skip
    """eye(n, m=None): ones on the diagonal."""
    require_cpu(device)
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    wanted = as_dtype(dtype) or default_dtype()
    array = np.eye(n, m, dtype=wanted.compute)
    array = to_bfloat16(array) if wanted is bfloat16 else array.astype(wanted.storage, copy=False)
    return finish(Tensor._wrap(array, wanted), requires_grad)


# --- the legacy constructor ----------------------------------------------------------------------


def legacy_tensor(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.Tensor(2, 3)` is uninitialised memory, `torch.Tensor([2, 3])` holds data."""
    require_cpu(kwargs.get("device"))
    dtype = getattr(cls, "legacy_dtype", None) or default_dtype()
    if not args:
        made = zeros(0, dtype=dtype)
    elif all(isinstance(a, int) and not isinstance(a, bool) for a in args):
        made = zeros(*args, dtype=dtype)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        made = args[0].detach()
        made = made if made.dtype is dtype or cls is not Tensor else made.to(dtype)
    elif len(args) == 1 and type(args[0]).__name__ == "Size":
        made = zeros(*args[0], dtype=dtype)
    else:
        made = from_data(args[0], dtype)
    if cls is Tensor or hasattr(cls, "legacy_dtype"):
        return made
    return Tensor._make_subclass(cls, made)
