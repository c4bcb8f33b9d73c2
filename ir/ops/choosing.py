"""`choose`: NumPy's `where` without branches.

`np.where` mispredicts on every other element of a random mask; taking bits does not. Results are
the same bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SMALL = 16384  # below this `np.where` is done before the views are made
_BITS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def _bits(x: Any, dtype: np.dtype) -> Any:
    return x.view(_BITS[dtype.itemsize])


def choose(mask: Any, a: Any, b: Any) -> Any:
    """`np.where(mask, a, b)`; of two arrays of one dtype by their bits where that is faster."""
    if mask.size < SMALL or mask.dtype != np.bool_:
        return np.where(mask, a, b)
    a, b = np.asarray(a), np.asarray(b)
    dtype = a.dtype
    if dtype != b.dtype or dtype.kind not in "fiu" or dtype.itemsize not in _BITS:
        return np.where(mask, a, b)
    ones = mask.astype(_BITS[dtype.itemsize])  # 0 and 1, then all bits 0 and all bits 1
    first, second = _bits(a, dtype), _bits(b, dtype)
    if not b.ndim and second == 0:
        np.negative(ones, out=ones)
        return (first & ones).view(dtype)
    if not a.ndim and first == 0:
        np.subtract(ones, 1, out=ones)
        return (second & ones).view(dtype)
    np.negative(ones, out=ones)
    change = first ^ second
    if change.shape != np.broadcast_shapes(change.shape, ones.shape):
        return np.where(mask, a, b)
    change &= ones
    change ^= second
    return change.view(dtype)
