"""Tensors to Python and NumPy and back; dtype changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.arguments import as_dtype, format_order, kind_of, warn_once
from ..ir.bind import notify, state
from ..ir.op import TABLE
from ..ir.ops.kinds import require_value
from ..ir.types import (
    BY_NAME,
    DType,
    bfloat16,
    check_number,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ..ir.types import bool_ as bool_dtype
from ..ir.value import Value
from .placing import is_meta
from .readers import expose
from .tensor import Tensor, device, require_cpu


def method(function: Any) -> Any:
    """Attaches a function to Tensor under its own name."""
    setattr(Tensor, function.__name__, function)
    return function


# --- to Python -----------------------------------------------------------------------------------


def escape(tensor: Tensor, how: str) -> None:
    """Tells the recording, if one is on, that Python sees the value now."""
    watcher = getattr(state.top, "escaped", None)
    if watcher is not None:
        watcher(tensor, how)


def handed(tensor: Tensor, how: str, value: Any) -> Any:
    """What Python gets by the method `how`: the value, or what stands for it in a recording."""
    watcher = getattr(state.top, "handed", None)
    number = None if watcher is None else watcher(tensor, how, value)
    return value if number is None else number


@method
def item(self: Tensor) -> Any:
    """The value of a tensor with one element, as a Python number."""
    escape(self, "item()")
    if self._array.size != 1:
        raise RuntimeError(
            f"a Tensor with {self._array.size} elements cannot be converted to Scalar"
        )
    return handed(self, "item", self._values_array().item())


@method
def tolist(self: Tensor) -> Any:
    """The elements as (nested) lists of Python numbers."""
    escape(self, "tolist()")
    return handed(self, "tolist", self._values_array().tolist())


@method
def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The elements as an ndarray that shares memory."""
    if self._requires_grad and state.grad_enabled and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use "
                           "tensor.detach().numpy() instead.")  # fmt: skip
    if self.dtype is bfloat16:
        raise TypeError("Got unsupported ScalarType BFloat16; use x.float().numpy()")
    escape(self, "numpy()")
    expose(self._array)
    return handed(self, "numpy", self._array)


@method
def __array__(self: Tensor, dtype: Any = None, copy: Any = None) -> np.ndarray:
    array = numpy(self)
    if dtype is not None:
        return array.astype(dtype, copy=bool(copy))
    return array.copy() if copy else array


@method
def __dlpack__(self: Tensor, **options: Any) -> Any:
    if self._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return numpy(self).__dlpack__(**{"stream": None, **options})


@method
def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return self._array.__dlpack_device__()


@method
def __array_wrap__(
    self: Tensor, array: np.ndarray, context: Any = None, scalar: bool = False
) -> Any:
    array = np.asarray(array)
    if array.dtype == bool:  # as torch has done since it had no bools
        array = array.astype(np.uint8)
    return Tensor._wrap(array, from_numpy_dtype(array.dtype))


def one_element(self: Tensor, what: str) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    escape(self, what)
    return self._values_array().item()


def real_number(value: Any, wanted: DType) -> Any:
    """`value`, a complex one without its imaginary part, which must be 0."""
    return check_number(value, wanted).real if isinstance(value, complex) else value


@method
def __bool__(self: Tensor) -> bool:
    if self._array.size != 1:
        if self._array.size == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous; use numel()")
        raise RuntimeError(
            "Boolean value of Tensor with more than one value is ambiguous; use any() or all()"
        )
    notify("looking", self)
    watcher = getattr(state.top, "branched", None)
    outcome = bool(self._values_array().item())
    if watcher is not None:
        watcher(self, outcome)
    return outcome


Tensor.__nonzero__ = __bool__  # type: ignore[attr-defined]


@method
def __int__(self: Tensor) -> int:
    return handed(self, "__int__", int(real_number(one_element(self, "int()"), int64)))


@method
def __float__(self: Tensor) -> float:
    return handed(self, "__float__", float(real_number(one_element(self, "float()"), float64)))


@method
def __complex__(self: Tensor) -> complex:
    return complex(one_element(self, "complex()"))


@method
def __index__(self: Tensor) -> int:
    if self.dtype.category > 1 or self._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(one_element(self, "index"))


@method
def __contains__(self: Tensor, element: Any) -> bool:
    if isinstance(element, Value | int | float | complex):
        return bool((self == element).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
    )


@method
def __reversed__(self: Tensor) -> Tensor:
    return self.flip(0) if self.ndim else self


def _from_array(array: Any) -> Tensor:
    array = np.asarray(array)
    return Tensor._wrap(array, from_numpy_dtype(array.dtype))


Value._from_array = staticmethod(_from_array)  # type: ignore[attr-defined]


@method
def _constant(self: Tensor, array: np.ndarray) -> Tensor:
    """An index array as a tensor."""
    return _from_array(array)


@method
def _constant_like(self: Tensor, value: Any) -> Tensor:
    """A Python number (or nested list) assigned to elements of this tensor."""
    if isinstance(value, bool | int | float | complex | np.integer):
        check_number(value, self.dtype)
        return TABLE["full"](size=(), fill_value=value, dtype=self.dtype)
    raise TypeError(f"can't assign a {kind_of(value)} to a torch.{type_name(self.dtype)}; "
                    "use a number or a Tensor, as torch.as_tensor gives")  # fmt: skip


# --- dtype changes -------------------------------------------------------------------------------


def type_name(dtype: DType) -> str:
    """The legacy class name, e.g. FloatTensor."""
    return _LEGACY[dtype.name]


_LEGACY = {
    "float32": "FloatTensor", "float64": "DoubleTensor", "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor", "int64": "LongTensor", "int32": "IntTensor",
    "int16": "ShortTensor", "int8": "CharTensor", "uint8": "ByteTensor", "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor", "complex128": "ComplexDoubleTensor",
    "uint16": "UInt16Tensor", "uint32": "UInt32Tensor", "uint64": "UInt64Tensor",
}  # fmt: skip


def to_dtype(value: Any, dtype: Any, copy: bool = False) -> Any:
    """The value in another dtype; itself where it has it already and no copy is asked for."""
    if isinstance(dtype, str):
        dtype = BY_NAME[dtype]
    if value.dtype is dtype:
        return value.clone() if copy else value
    if value.dtype.is_complex and not dtype.is_complex and dtype is not bool_dtype:
        warn_once("Casting complex values to real discards the imaginary part")
    return TABLE["cast"](value, dtype=dtype)


def _to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """to(dtype), to(device, dtype), to(other): on the CPU only dtypes change."""
    given = _to_arguments(args, kwargs)
    if is_meta(given.get("device")):
        from .meta import without_values

        return without_values(self if given.get("dtype") is None else self.to(given["dtype"]))
    require_cpu(given.get("device"))
    dtype = as_dtype(given.get("dtype"))
    cast = to_dtype(self, self.dtype if dtype is None else dtype, bool(given.get("copy", False)))
    order = format_order(given.get("memory_format"), self.ndim)
    return cast if order is None else cast.contiguous(memory_format=given["memory_format"])


_TO_NAMES = ("dtype", "device", "other", "non_blocking", "copy", "memory_format")


def _to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `to` by name: torch has three ways to call it."""
    first = args[0] if args else None
    if isinstance(first, DType | type):
        names: tuple[str, ...] = ("dtype", "non_blocking", "copy")
    elif isinstance(first, Value):
        names = ("other", "non_blocking", "copy")
    else:
        names = ("device", "dtype", "non_blocking", "copy")
    given = {**dict(zip(names, args)), **kwargs}
    where, dtype = given.get("device"), given.get("dtype")
    if (
        len(given) < len(args) + len(kwargs)
        or given.keys() - set(_TO_NAMES)
        or not (where is None or isinstance(where, str | int | device))
        or not all(isinstance(given.get(flag, False), bool) for flag in ("non_blocking", "copy"))
        or not (dtype is None or isinstance(dtype, DType) or dtype in (float, int, bool, complex))
    ):
        kinds = ", ".join([*map(kind_of, args), *(f"{k}={kind_of(v)}" for k, v in kwargs.items())])
        raise TypeError("to() received an invalid combination of arguments - got "
                        f"({kinds}), but expected one of: (dtype), (device, dtype), "
                        "(other)")  # fmt: skip
    if "other" in given:
        given["dtype"] = given["other"].dtype
    return given


Value.to = _to  # type: ignore[attr-defined]


def _caster(name: str, dtype: DType) -> None:
    def cast(self: Any, *, memory_format: Any = None) -> Any:
        return to_dtype(self, dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"to(torch.{dtype.name})."
    setattr(Value, name, cast)


for _name, _dtype in {
    "float": float32, "double": float64, "half": float16, "bfloat16": bfloat16, "long": int64,
    "int": int32, "short": int16, "char": int8, "byte": uint8, "bool": bool_dtype,
    "cfloat": complex64, "cdouble": complex128,
}.items():  # fmt: skip
    _caster(_name, _dtype)


def legacy_type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **_: Any) -> Any:
    """The legacy type string, or a cast to `dtype`."""
    if dtype is None:
        return f"torch.{type_name(self.dtype)}"
    if isinstance(dtype, str):
        short = dtype.removeprefix("torch.")
        for name, legacy in _LEGACY.items():
            if legacy == short:
                return to_dtype(self, BY_NAME[name])
        raise ValueError(f"invalid type: '{dtype}'")
    wanted = getattr(dtype, "legacy_dtype", dtype)
    if not isinstance(wanted, DType):
        raise TypeError("dtype must be a type, str, or dtype object")
    return to_dtype(self, wanted)


Tensor.type = legacy_type  # type: ignore[attr-defined]


def type_as(self: Any, other: Any) -> Any:
    """to(other.dtype)."""
    require_value("type_as", other, "other")
    return to_dtype(self, other.dtype)


Value.type_as = type_as  # type: ignore[attr-defined]


@method
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself: it is on the CPU."""
    return self


@method
def cuda(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Raises, as torch without CUDA does."""
    raise AssertionError("Torch not compiled with CUDA enabled")
