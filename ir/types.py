"""Element types, tensor types and torch's promotion rules.

A `DType` is a singleton per name. `storage` is the NumPy dtype of the bytes, `compute` the one
arithmetic runs in: they differ for bfloat16, which NumPy lacks (kept as uint16 bit patterns,
computed in float32), and for float16 (computed in float32 and rounded, as torch does).
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .bind import epoch
from .formulas import Formula

Shape = tuple[int, ...]

# Categories in promotion order: a higher one wins whatever the sizes.
BOOL, INTEGER, FLOAT, COMPLEX = range(4)


class DType:
    """An element type, e.g. `float32`; compare with `is`."""

    __slots__ = ("category", "compute", "itemsize", "name", "rank", "short", "storage")

    def __init__(self, name: str, short: str, storage: Any, category: int, compute: Any = None):
        self.name, self.short, self.category = name, short, category
        self.storage = np.dtype(storage)
        self.compute = self.storage if compute is None else np.dtype(compute)
        self.itemsize = self.storage.itemsize
        self.rank = 0

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_named, (self.name,)

    @property
    def is_floating_point(self) -> bool:
        return self.category == FLOAT

    @property
    def is_complex(self) -> bool:
        return self.category == COMPLEX

    @property
    def is_signed(self) -> bool:
        return self.category >= FLOAT or (self.category == INTEGER and self.storage.kind == "i")

    @property
    def is_differentiable(self) -> bool:
        return self.category >= FLOAT

    def to_real(self) -> DType:
        return {"complex64": float32, "complex128": float64}.get(self.name, self)

    def to_complex(self) -> DType:
        return {"float32": complex64, "float64": complex128}.get(self.name, self)


DType.__name__ = DType.__qualname__ = "dtype"  # what users call it


bool_ = DType("bool", "b1", np.bool_, BOOL)
uint8 = DType("uint8", "u8", np.uint8, INTEGER)
int8 = DType("int8", "i8", np.int8, INTEGER)
int16 = DType("int16", "i16", np.int16, INTEGER)
int32 = DType("int32", "i32", np.int32, INTEGER)
int64 = DType("int64", "i64", np.int64, INTEGER)
uint16 = DType("uint16", "u16", np.uint16, INTEGER)
uint32 = DType("uint32", "u32", np.uint32, INTEGER)
uint64 = DType("uint64", "u64", np.uint64, INTEGER)
float16 = DType("float16", "f16", np.float16, FLOAT, np.float32)
bfloat16 = DType("bfloat16", "bf16", np.uint16, FLOAT, np.float32)
float32 = DType("float32", "f32", np.float32, FLOAT)
float64 = DType("float64", "f64", np.float64, FLOAT)
complex64 = DType("complex64", "c64", np.complex64, COMPLEX)
complex128 = DType("complex128", "c128", np.complex128, COMPLEX)

DTYPES = (bool_, uint8, int8, int16, int32, int64, uint16, uint32, uint64,
          float16, bfloat16, float32, float64, complex64, complex128)  # fmt: skip
for _rank, _dtype in enumerate(DTYPES):
    _dtype.rank = _rank
BY_NAME = {d.name: d for d in DTYPES}
BY_SHORT = {d.short: d for d in DTYPES}
FROM_NUMPY = {d.storage: d for d in DTYPES if d is not bfloat16}


def dtype_named(name: str) -> DType:
    """The dtype called `name`, e.g. "float32"."""
    return BY_NAME[name]


def type_word(dtype: DType) -> str:
    """torch's C++ name of a dtype, as its errors print it."""
    return {
        "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16",
        "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
        "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
        "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    }[dtype.name]  # fmt: skip


def no_kernel(kernel: str, dtype: DType) -> NotImplementedError:
    """torch's error for a dtype that one of its kernels lacks."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{type_word(dtype)}'; use "
                               "another dtype, as in x.to(torch.float32)")  # fmt: skip


def c_word(dtype: DType) -> str:
    """The C++ type of an element, as other errors of torch's print it."""
    return {
        "float32": "float", "float64": "double", "float16": "c10::Half",
        "bfloat16": "c10::BFloat16", "int64": "long int", "int32": "int", "int16": "short int",
        "int8": "signed char", "uint8": "unsigned char", "complex64": "c10::complex<float>",
        "complex128": "c10::complex<double>",
    }.get(dtype.name, dtype.name)  # fmt: skip


def check_number(value: Any, dtype: DType) -> Any:
    """`value`, a Python number; torch's RuntimeError where `dtype` cannot hold it.

    A negative int may wrap around in an unsigned type, as in C; infinities and NaN are floats.
    """
    if dtype.category == BOOL or fits(value, dtype):
        return value
    word = c_word(dtype) if dtype.category >= FLOAT or dtype is int32 else f"{dtype.name}_t"
    raise RuntimeError(f"value cannot be converted to type {word} without overflow")


def check_run_time(value: Any, dtype: DType) -> None:
    """`check_number` for what holds a number at run time, if so: of integers, where a number that
    does not fit has no value at all. The comparisons are guards."""
    if getattr(value, "wrapped", False) and dtype.category not in (BOOL, FLOAT, COMPLEX):
        check_number(value, dtype)


def fits(value: Any, dtype: DType) -> bool:
    """Can `dtype` hold the number `value`?"""
    if isinstance(value, complex | np.complexfloating):
        return dtype.category == COMPLEX or (value.imag == 0 and fits(value.real, dtype))
    if dtype.category >= FLOAT:
        size = abs(value)  # an int may be larger than any float
        return bool(size <= LARGEST[dtype.to_real().name] or size == float("inf") or size != size)
    low, high = np.iinfo(dtype.storage).min, np.iinfo(dtype.storage).max
    if low == 0 and isinstance(value, int):
        low = -high
    return bool(low <= value <= high)  # not so of infinities and NaN


def held_number(value: Any, dtype: DType) -> Any:
    """A number beside tensors of `dtype` as they hold it: too large is infinite, or wraps."""
    if isinstance(value, complex | np.complexfloating) or dtype.category == BOOL:
        return value
    if fits(value, dtype) or dtype.compute != dtype.storage:  # 16-bit floats are rounded later
        return value
    if dtype.category >= FLOAT:
        with np.errstate(over="ignore"):
            return float(np.float32(value)) if dtype.to_real().itemsize == 4 else value
    if value != value or value in (float("inf"), -float("inf")):
        return value
    low = int(np.iinfo(dtype.storage).min)
    return (int(value) - low) % (1 << 8 * dtype.itemsize) + low


LARGEST = {"float16": 65504.0, "bfloat16": 2.0**127 * (2 - 2.0**-7),
           "float32": float(np.finfo(np.float32).max),
           "float64": float(np.finfo(np.float64).max)}  # fmt: skip


def from_numpy_dtype(dtype: Any) -> DType:
    """The dtype of a NumPy array; TypeError for those torch has not."""
    found = FROM_NUMPY.get(np.dtype(dtype).newbyteorder("="))
    if found is None:
        kind = np.dtype(dtype).type
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{kind.__name__}. The only supported types "
            "are: float64, "
            "float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, "
            "uint16, uint8, and bool."
        )
    return found


class TensorType(NamedTuple):
    """dtype and shape: all that inference may know of a value."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        sizes = (n.quoted() if isinstance(n, Formula) else str(n) for n in self.shape)
        return f"{self.dtype.short}[{','.join(sizes)}]"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        return self.numel * int(self.dtype.itemsize)


class Defaults:
    """The process-wide default dtype; torch's is process-wide too."""

    float: DType = float32


def default_dtype() -> DType:
    return Defaults.float


def set_default_dtype(dtype: DType) -> None:
    if not isinstance(dtype, DType):
        raise TypeError("invalid dtype object: only floating-point types are supported as the "
                        "default type")  # fmt: skip
    if dtype.category != FLOAT:
        raise TypeError(f"only floating-point types are supported as the default type, not {dtype}")
    Defaults.float = dtype
    epoch.advance()


def default_complex() -> DType:
    return Defaults.float.to_complex() if Defaults.float.itemsize > 2 else complex64


def promote_types(a: DType, b: DType) -> DType:
    """The smallest dtype both convert to, by torch's table."""
    if a is b:
        return a
    if a.rank > b.rank:
        a, b = b, a
    if a.category != b.category:
        if b is complex64 and a is float64:
            return complex128
        return b
    if a.category == INTEGER:
        return _promote_integers(a, b)
    if a is float16 and b is bfloat16:
        return float32
    return b


def _promote_integers(a: DType, b: DType) -> DType:
    """`a` ranks below `b`; only uint8 mixes with the signed ones."""
    if b.rank > int64.rank:
        raise RuntimeError(f"Promotion for uint16, uint32, uint64 types is not supported, "
                           f"attempted to promote {a!r} and {b!r}")  # fmt: skip
    if a is uint8 and b is int8:
        return int16
    return b


def scalar_dtype(value: Any) -> DType:
    """What torch takes a Python number for."""
    if isinstance(value, bool | np.bool_):
        return bool_
    if isinstance(value, int | np.integer):
        return int64
    if isinstance(value, float | np.floating):
        return default_dtype()
    return default_complex()


def result_type(operands: Iterable[Any]) -> DType:
    """torch's result type: tensors with dimensions beat 0-d tensors beat Python numbers.

    `operands` are Values (with `dtype` and `ndim`), TensorTypes or numbers. A lower level counts
    only where its category is higher than what the levels above it gave.
    """
    levels: list[DType | None] = [None, None, None]
    wide = False
    for operand in operands:
        if operand is None:
            continue
        if isinstance(operand, int | float | complex | np.number | np.bool_):
            level, dtype = 2, scalar_dtype(operand)
        elif getattr(operand, "wrapped", False):  # a Python float known only at run time
            level, dtype, wide = 2, default_dtype(), True
        else:
            level, dtype = (0 if operand.ndim else 1), operand.dtype
        seen = levels[level]
        levels[level] = dtype if seen is None else promote_types(seen, dtype)
    if wide and levels[0] is None and levels[1] is None:
        return float64  # arithmetic among Python floats
    result = None
    for found in levels:
        if found is not None and (result is None or found.category > result.category):
            result = found if result is None else _lift_category(result, found)
    assert result is not None
    return result


def _lift_category(higher: DType, lower: DType) -> DType:
    """`lower`'s level has the higher category: take it, but keep a wide float's width."""
    if lower is complex64 and higher.category == FLOAT:
        return complex128 if higher is float64 else complex64
    return lower


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """float32 values as bfloat16 bit patterns, rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) >> 16
    patterns = np.where(np.isnan(values), np.uint32(0x7FC0), rounded)
    return patterns.astype(np.uint16).reshape(np.shape(values))


def from_bfloat16(patterns: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns as float32 values, exactly."""
    return (patterns.astype(np.uint32) << np.uint32(16)).view(np.float32)


def same_shape(a: Shape, b: Shape) -> bool:
    """Are they equal? Symbolic sizes are compared only where ranks agree, which saves guards."""
    return len(a) == len(b) and a == b


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape; RuntimeError in torch's words where there is none."""
    if len(shapes) == 2 and same_shape(*shapes):
        return shapes[0]
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        for axis in range(ndim - 1, ndim - len(shape) - 1, -1):  # torch names the last that differs
            size = shape[axis - ndim]
            if size != 1 and result[axis] != size:
                if result[axis] != 1:
                    raise RuntimeError(
                        f"The size of tensor a ({result[axis]}) must match the size of tensor b "
                        f"({size}) at non-singleton dimension {axis}"
                    )
                result[axis] = size
    return tuple(result)


def normalize_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front; IndexError in torch's words."""
    extent = ndim or 1
    if not -extent <= dim < extent:
        raise IndexError(f"Dimension out of range (expected to be in range of "
                         f"[{-extent}, {extent - 1}], but got {dim})")  # fmt: skip
    return dim + extent if dim < 0 else dim


def normalize_dims(dims: Any, ndim: int) -> Shape:
    """Sorted, non-negative, distinct dimensions; all of them for None or ()."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        return (normalize_dim(dims, ndim),) if ndim else (normalize_dim(dims, ndim),)[:0]
    wrapped = [normalize_dim(operator.index(d), ndim) for d in dims]
    if not wrapped:
        return tuple(range(ndim))
    for d in wrapped:
        if wrapped.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(sorted(wrapped)) if ndim else ()
