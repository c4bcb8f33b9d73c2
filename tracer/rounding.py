"""Roundings that NumPy lacks: fused multiply-add, bfloat16, and torch's narrowing casts.

Torch's CPU kernels are compiled with fused multiply-add, so `x * scale + shift` rounds once.
The functions here give the same bits from separate NumPy operations.

Invariants:
* results are correctly rounded for finite operands whose products neither overflow nor underflow;
* bfloat16 values live in float32 arrays whose low 16 bits are zero;
* a float64 reaches float16 and bfloat16 through float32 (two roundings), as torch's casts do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray

# Long enough to hide the cost of a NumPy call, short enough for its temporaries to stay in cache.
CHUNK = 16384

STORAGE = {
    "bool": np.dtype(np.bool_),
    "uint8": np.dtype(np.uint8),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(np.float32),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}


def dtype_name(dtype: str | np.dtype | type) -> str:
    """The name torch gives a dtype: a name is kept, a NumPy dtype gives its own."""
    name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    if name not in STORAGE:
        raise TypeError(f"no dtype is named {name!r}; known are {', '.join(STORAGE)}")
    return name


def round_to_bfloat16(values: Array) -> Array:
    """The nearest bfloat16 of each value, ties to even, held in a float32 array."""
    single = np.asarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    kept = (bits >> 16) & 1
    rounded = ((bits + (kept + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.asarray(np.where(np.isnan(single), np.float32(np.nan), rounded))


def cast(values: Array, name: str) -> Array:
    """Values converted to the dtype of that name, by torch's route."""
    if values.dtype.name == name:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if name == "bfloat16":
            return round_to_bfloat16(values.astype(np.float32, copy=False))
        if name == "float16":
            return values.astype(np.float32, copy=False).astype(np.float16)
        return values.astype(STORAGE[name], copy=False)


def scale_and_shift(values: Array, scale: float, shift: float) -> Array:
    """`values * scale + shift` rounded once, in the dtype of values (float32 or float64)."""
    if scale == 1 and shift == 0:
        return values + 0  # -0.0 becomes 0.0, as it does below
    kind = values.dtype.type
    factor, term = kind(scale), kind(shift)
    # A product by a power of two is exact and so is a sum with zero: one rounding is left anyway.
    if term == 0 or abs(np.frexp(factor)[0]) == 0.5 or not np.isfinite([factor, term]).all():
        with np.errstate(all="ignore"):
            return values * factor + term
    fused = _fused32 if kind is np.float32 else _fused64
    return _by_chunks(lambda part: fused(part, factor, term), values)


def _by_chunks(function: Callable[[Array], Array], values: Array) -> Array:
    flat = values.reshape(-1)
    if flat.size <= CHUNK:
        return function(flat).reshape(values.shape)
    out = np.empty_like(flat)
    for start in range(0, flat.size, CHUNK):
        out[start : start + CHUNK] = function(flat[start : start + CHUNK])
    return out.reshape(values.shape)


def _fused32(x: Array, scale: np.float32, shift: np.float32) -> Array:
    product = x.astype(np.float64) * np.float64(scale)  # exact: 24 bits times 24 bits
    return _odd_sum(product, np.float64(shift)).astype(np.float32)


def _fused64(x: Array, scale: np.float64, shift: np.float64) -> Array:
    # Boldo and Melquiond, "Emulation of FMA and correctly rounded sums" (2008), algorithm 5.
    high, low = _two_product(x, scale)
    inner_high, inner_low = _two_sum(low, shift)
    outer_high, outer_low = _two_sum(high, inner_high)
    return outer_high + _odd_sum(inner_low, outer_low)


def _two_sum(a: Array, b: Array | np.float64) -> tuple[Array, Array]:
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


def _two_product(a: Array, b: np.float64) -> tuple[Array, Array]:
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def _halves(x: Array | np.float64) -> tuple[Array, Array]:
    spread = x * np.float64(134217729.0)  # 2^27 + 1
    high = spread - (spread - x)
    return high, x - high


def _odd_sum(a: Array, b: Array | np.float64) -> Array:
    """a + b, where an inexact sum becomes its neighbour with an odd last bit.

    A later rounding to fewer bits then sees on which side of a tie the true sum lies.
    """
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)
    bits += np.where((error != 0) & (bits & 1 == 0), step, 0)
    return total
