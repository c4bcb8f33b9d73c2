"""A scalar reader that computes with NumPy: the oracle of the native one.

Values are `Scalar`s: an array in the compute dtype and torch's dtype name. Nothing is fast here;
functions NumPy lacks go through Python's math module, element by element, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .scalar import FLOATS, INTEGERS, compute_dtype, dtype_name


class Scalar(NamedTuple):
    """A value of PythonReader: `array` is in the compute dtype of `dtype`."""

    array: Any
    dtype: str


def round_to_bfloat16(x: Any) -> Any:
    """float32 values rounded to the nearest bfloat16, ties to even; NaN stays NaN."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    return np.where(np.isnan(x), np.float32(np.nan), kept.view(np.float32))


def _elementwise(function: Callable[..., float]) -> Callable[..., Any]:
    """`function` of Python floats as a function of arrays; errors give NaN."""

    def guarded(*values: float) -> float:
        try:
            return function(*map(float, values))
        except (ValueError, ZeroDivisionError):
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(guarded, otypes=[np.float64])


def _digamma(x: float) -> float:
    if math.isinf(x):
        return x if x > 0 else math.nan
    if x == 0:
        return math.copysign(math.inf, -x)
    if x < 0:
        if x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * (x - math.floor(x)))
    total = 0.0
    while x < 12:
        total, x = total - 1 / x, x + 1
    y = 1 / (x * x)
    series = 0.0
    for term in (-691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
        series = y * (term + series)
    return total + math.log(x) - 0.5 / x - series


def _erfinv(y: float) -> float:
    if not -1 < y < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    w = math.log1p(-y * y)
    u = 2 / (math.pi * 0.147) + w / 2
    x = math.copysign(math.sqrt(math.sqrt(u * u - w / 0.147) - u), y)
    for _ in range(3):  # Halley's steps on erf, from an estimate good to 0.2%
        tail = (1 - abs(y) - math.erfc(abs(x))) * math.copysign(1, y)
        error = math.erf(x) - y if abs(y) < 0.5 else tail
        step = error * math.sqrt(math.pi) / 2 * math.exp(x * x)
        x -= step / (1 + x * step)
    return x


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _float_only(function: Callable[..., Any]) -> Callable[..., Scalar]:
    def method(self: PythonReader, *operands: Scalar) -> Scalar:
        first = operands[0]
        if first.dtype not in FLOATS:
            raise TypeError(f"a float function got {first.dtype}; cast first")
        result = function(*(o.array for o in operands))
        return Scalar(np.asarray(result, first.array.dtype), first.dtype)

    return method


def _plain(function: Callable[..., Any]) -> Callable[..., Scalar]:
    def method(self: PythonReader, *operands: Scalar) -> Scalar:
        first = operands[0]
        if any(o.dtype != first.dtype for o in operands):
            raise TypeError(f"operands differ in dtype: {[o.dtype for o in operands]}; cast first")
        result = function(*(o.array for o in operands))
        return Scalar(np.asarray(result, first.array.dtype), first.dtype)

    return method


def _to_bool(function: Callable[..., Any]) -> Callable[..., Scalar]:
    def method(self: PythonReader, *operands: Scalar) -> Scalar:
        return Scalar(np.asarray(function(*(o.array for o in operands)), np.bool_), "bool")

    return method


def _divide(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    quotient = np.floor_divide(a, b)  # truncate: add one where the floor went below
    return quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))


def _int_pow(a: Any, b: Any) -> Any:
    def one(x: int, n: int, bits: int, signed: bool) -> int:
        if n < 0:
            return {1: 1, -1: 1 if n % 2 == 0 else -1}.get(x, 0)
        r = pow(x, n, 1 << bits)
        return r - (1 << bits) if signed and r >= 1 << (bits - 1) else r

    bits, signed = a.dtype.itemsize * 8, a.dtype.kind == "i"
    both = np.broadcast(a, b)
    flat = [one(int(x), int(n), bits, signed) for x, n in both]
    return np.array(flat, a.dtype).reshape(both.shape)


def _pow(a: Any, b: Any) -> Any:
    return np.power(a, b) if a.dtype.kind == "f" else _int_pow(a, b)


def _sign(x: Any) -> Any:
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype) if x.dtype != bool else x


def _shift(left: bool) -> Callable[[Any, Any], Any]:
    def shift(a: Any, n: Any) -> Any:
        bits = a.dtype.itemsize * 8
        outside = (n < 0) | (n >= bits)
        count = np.where(outside, 0, n).astype(a.dtype)
        if left:
            return np.where(outside, 0, np.left_shift(a, count)).astype(a.dtype)
        fill = np.where(a < 0, -1, 0).astype(a.dtype)
        return np.where(outside, fill, np.right_shift(a, count)).astype(a.dtype)

    return shift


class PythonReader:
    """Reads scalar functions with NumPy arrays; `dtype` is what a bare `const` takes."""

    def __init__(self, dtype: Any = "float64"):
        self.dtype = dtype_name(dtype)

    def value(self, array: Any, dtype: Any) -> Scalar:
        """An operand: `array` converted to what `dtype` computes in."""
        name = dtype_name(dtype)
        return Scalar(np.asarray(array).astype(compute_dtype(name)), name)

    def const(self, value: float | bool, dtype: Any = None) -> Scalar:
        name = self.dtype if dtype is None else dtype_name(dtype)
        return Scalar(np.asarray(value, compute_dtype(name)), name)

    def cast(self, x: Scalar, dtype: Any) -> Scalar:
        name = dtype_name(dtype)
        if name == "bool":
            return Scalar(x.array != 0, name)
        if name == "bfloat16":
            return Scalar(round_to_bfloat16(x.array.astype(np.float32)), name)
        if name == "float16":
            return Scalar(x.array.astype(np.float16).astype(np.float32), name)
        if name in INTEGERS and x.dtype in FLOATS:
            wide = np.int64 if name.endswith("64") else np.int32
            return Scalar(x.array.astype(wide).astype(name), name)
        return Scalar(x.array.astype(name), name)

    def select(self, cond: Scalar, a: Scalar, b: Scalar) -> Scalar:
        return Scalar(np.where(cond.array, a.array, b.array), a.dtype)

    def complex(self, a: Scalar, b: Scalar) -> Scalar:
        name = "complex64" if a.dtype == "float32" else "complex128"
        made = np.empty(np.broadcast_shapes(a.array.shape, b.array.shape), name)
        made.real, made.imag = a.array, b.array
        return Scalar(made, name)

    add, sub, mul, div = _plain(np.add), _plain(np.subtract), _plain(np.multiply), _plain(_divide)
    floor_divide, remainder = _plain(np.floor_divide), _plain(np.remainder)
    fmod, pow = _plain(np.fmod), _plain(_pow)
    neg, abs, sign = _plain(np.negative), _plain(np.abs), _plain(_sign)

    sqrt, cbrt = _float_only(np.sqrt), _float_only(np.cbrt)
    rsqrt = _float_only(lambda x: 1 / np.sqrt(x))
    reciprocal = _float_only(lambda x: 1 / x)
    exp, exp2, expm1 = _float_only(np.exp), _float_only(np.exp2), _float_only(np.expm1)
    log, log2 = _float_only(np.log), _float_only(np.log2)
    log10, log1p = _float_only(np.log10), _float_only(np.log1p)
    sin, cos, tan = _float_only(np.sin), _float_only(np.cos), _float_only(np.tan)
    asin, acos, atan = _float_only(np.arcsin), _float_only(np.arccos), _float_only(np.arctan)
    sinh, cosh, tanh = _float_only(np.sinh), _float_only(np.cosh), _float_only(np.tanh)
    asinh, acosh = _float_only(np.arcsinh), _float_only(np.arccosh)
    atanh, sigmoid = _float_only(np.arctanh), _float_only(lambda x: 1 / (1 + np.exp(-x)))
    erf, erfc = _float_only(_elementwise(math.erf)), _float_only(_elementwise(math.erfc))
    erfinv, digamma = _float_only(_elementwise(_erfinv)), _float_only(_elementwise(_digamma))
    lgamma = _float_only(_elementwise(_lgamma))
    atan2, hypot = _float_only(np.arctan2), _float_only(np.hypot)
    copysign, nextafter = _float_only(np.copysign), _float_only(np.nextafter)

    floor, ceil = _plain(np.floor), _plain(np.ceil)
    trunc, round = _plain(np.trunc), _plain(np.rint)
    isnan, isinf, isfinite = _to_bool(np.isnan), _to_bool(np.isinf), _to_bool(np.isfinite)
    minimum, maximum = _plain(np.minimum), _plain(np.maximum)
    fmin, fmax = _plain(np.fmin), _plain(np.fmax)

    eq, ne, lt = _to_bool(np.equal), _to_bool(np.not_equal), _to_bool(np.less)
    le, gt, ge = _to_bool(np.less_equal), _to_bool(np.greater), _to_bool(np.greater_equal)
    logical_and, logical_or = _to_bool(np.logical_and), _to_bool(np.logical_or)
    logical_xor, logical_not = _to_bool(np.logical_xor), _to_bool(np.logical_not)
    bitwise_and, bitwise_or = _plain(np.bitwise_and), _plain(np.bitwise_or)
    bitwise_xor, bitwise_not = _plain(np.bitwise_xor), _plain(np.bitwise_not)
    shl, shr = _plain(_shift(True)), _plain(_shift(False))

    def signbit(self, x: Scalar) -> Scalar:
        negative = np.signbit(x.array) if x.dtype in FLOATS else x.array < 0
        return Scalar(np.asarray(negative), "bool")
