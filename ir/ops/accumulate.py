"""Where indices point in flat memory, and combining values there.

NumPy's `ufunc.at` is fast in one dimension only (2 ns an element against 20), so every indexed
write that combines goes through flat positions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def scan(ufunc: Any, x: np.ndarray, dim: int) -> np.ndarray:
    """ufunc.accumulate; over whole slices at a time where those are long, 30 times faster.

    The result is contiguous, as torch's is.
    """
    inner = math.prod(x.shape[dim + 1 :])
    if inner < 128 or inner < x.shape[dim] // 8:
        return ufunc.accumulate(  # type: ignore[no-any-return]
            np.asarray(x, order="C"), axis=dim, dtype=x.dtype)  # fmt: skip
    result = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, dim, 0), np.moveaxis(result, dim, 0)
    target[:1] = source[:1]
    for k in range(1, x.shape[dim]):
        ufunc(target[k - 1], source[k], out=target[k])
    return result


def strides_of(shape: tuple[int, ...]) -> list[int]:
    """Elements between neighbours of a contiguous array of `shape`."""
    strides, step = [0] * len(shape), 1
    for k in reversed(range(len(shape))):
        strides[k], step = step, step * shape[k]
    return strides


def wrapped(index: np.ndarray, size: int) -> np.ndarray:
    """Indices in [0, size); negative ones count from the end. IndexError out of range."""
    if not index.size:
        return index
    low, high = int(index.min()), int(index.max())
    if low < -size or high >= size:
        bad = low if low < -size else high
        raise IndexError(f"index {bad} is out of bounds for dimension with size {size}")
    return index if low >= 0 else np.where(index < 0, index + size, index)


def inside(index: np.ndarray, size: int) -> np.ndarray:
    """Indices in [0, size), as they are. IndexError for others, those from the end among them."""
    if index.size and int(index.min()) < 0:
        raise IndexError(f"index {index.min()} is out of bounds for dimension with size {size}")
    return wrapped(index, size)


def positions_along(shape: tuple[int, ...], index: np.ndarray, dim: int) -> np.ndarray:
    """Flat positions in an array of `shape` that a gather index along `dim` addresses."""
    if not shape:
        return inside(index, 1).reshape(-1)
    strides = strides_of(shape)
    total = inside(index, shape[dim]) * strides[dim]
    for k, n in enumerate(index.shape):
        if k != dim:
            line = np.arange(n) * strides[k]
            total = total + line.reshape((n,) + (1,) * (index.ndim - k - 1))
    return total.reshape(-1)


def positions_of(
    shape: tuple[int, ...], indices: Any, spec: tuple[bool, ...]
) -> tuple[np.ndarray, int, int]:
    """Flat positions that x[spec] addresses, common dimensions first.

    Returns them with the number of common dimensions and where these stand in the result.
    """
    strides = strides_of(shape)
    places = [k for k, indexed in enumerate(spec) if indexed]
    common = np.broadcast_arrays(*(wrapped(i, shape[k]) for i, k in zip(indices, places)))
    rest = [k for k in range(len(shape)) if k not in places]
    total = sum(i * strides[k] for i, k in zip(common, places))
    total = np.asarray(total).reshape(common[0].shape + (1,) * len(rest))
    for order, k in enumerate(rest):
        line = np.arange(shape[k]) * strides[k]
        total = total + line.reshape((shape[k],) + (1,) * (len(rest) - order - 1))
    adjacent = places == list(range(places[0], places[-1] + 1))
    return total, common[0].ndim, places[0] if adjacent else 0


def combine_at(ufunc: Any, x: np.ndarray, positions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A copy of `x` with ufunc(x, value) at each flat position, one after the other."""
    result = np.array(x, order="C")
    ufunc.at(result.reshape(-1), positions.reshape(-1),
             np.ascontiguousarray(values, dtype=x.dtype).reshape(-1))  # fmt: skip
    return result


def assign_at(x: np.ndarray, positions: np.ndarray, values: Any) -> np.ndarray:
    """A copy of `x` with `values` at flat positions; the last of several writes stays."""
    result = np.array(x, order="C")
    result.reshape(-1)[positions.reshape(-1)] = values.reshape(-1) if np.ndim(values) else values
    return result


def count_at(shape: tuple[int, ...], positions: np.ndarray) -> np.ndarray:
    """How many positions fall on each element."""
    size = math.prod(shape)
    return np.bincount(positions.reshape(-1), minlength=size)[:size].reshape(shape)


# torch's names of reductions: how values combine, and the value that changes nothing
COMBINE: dict[str, Any] = {
    "sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum,
}  # fmt: skip


def identity(reduce: str, dtype: np.dtype) -> Any:
    """The value that changes nothing when combined by `reduce`."""
    if reduce in ("sum", "mean", "prod"):
        return dtype.type(reduce == "prod")
    if dtype == np.bool_:
        return reduce == "amin"
    if dtype.kind == "f":
        return dtype.type(-np.inf if reduce == "amax" else np.inf)
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max


def reduce_at(
    x: np.ndarray, positions: np.ndarray, values: np.ndarray, reduce: str, include_self: bool
) -> Any:
    """A copy of `x` with the values at each position reduced into it."""
    positions = positions.reshape(-1)
    if not include_self:
        x = assign_at(x, positions, identity(reduce, x.dtype))
    result = combine_at(COMBINE[reduce], x, positions, values)
    if reduce != "mean":
        return result
    count = count_at(x.shape, positions) + (1 if include_self else 0)
    count = np.maximum(count, 1)
    if x.dtype.kind in "fc":
        return result / count.astype(result.real.dtype)
    return result // count.astype(result.dtype)
