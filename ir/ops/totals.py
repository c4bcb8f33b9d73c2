"""Sums of arrays, as accurate along any axes as NumPy's are along the last one.

Note [Blocked sums]
    NumPy adds pairs of halves along the axis that is innermost in memory. Along others it adds row
    after row, and the error grows with their number: 10,000 times 0.1 is 1000.0 along a row of
    float32, 999.9 along a column. So what lies innermost is left to NumPy, and all other axes are
    cut into at most `BLOCK` parts of neighbouring rows, which are added as wholes, until few rows
    are left. To add wide parts is also faster than to add many narrow rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

ADD: Any = np.add  # NumPy's type stubs refuse a `keepdims` that is not a literal

BLOCK = 16  # parts that are added one after the other
SHORT = 64  # rows that are left to NumPy: to cut them takes longer than to add them


def add_up(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum over axes (all of them if None), in the dtype of `x`; see Note [Blocked sums]."""
    if x.size > SHORT:
        if axis.__class__ is tuple and len(axis) == 1:
            axis = axis[0]
        if axis.__class__ is int:
            if x.shape[axis] > SHORT and x.dtype.kind in "fc":
                return _along(x, axis % x.ndim, keepdims)
        elif x.dtype.kind in "fc":
            return _along_several(x, range(x.ndim) if axis is None else axis, keepdims)
    return ADD.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _along(x: np.ndarray, axis: int, keepdims: bool) -> Any:
    """The sum over one axis, by parts unless it is innermost in memory."""
    last = axis == x.ndim - 1
    plain = last if x.flags.c_contiguous else _innermost(x, {axis})
    return ADD.reduce(x, axis=axis, keepdims=keepdims) if plain else _by_parts(x, axis, keepdims)


def _along_several(x: np.ndarray, axes: Any, keepdims: bool) -> Any:
    """The sum over axes, of which NumPy is given those together that are one run of memory."""
    count = math.prod([x.shape[d] for d in axes])
    trailing = x.flags.c_contiguous and axes[0] == x.ndim - len(axes)
    if count <= SHORT or trailing:
        return ADD.reduce(x, axis=tuple(axes), keepdims=keepdims)
    kept = [1 if d in axes else n for d, n in enumerate(x.shape)]
    left = {d for d in axes if x.shape[d] != 1}
    while left:
        inner = _innermost(x, left)
        if inner:
            x = ADD.reduce(x, axis=inner, keepdims=True)
        else:
            inner = (max(left, key=lambda d: (x.strides[d], d)),)
            x = _by_parts(x, *inner, True)
        left.difference_update(inner)
    return x.reshape(kept if keepdims else [n for d, n in enumerate(kept) if d not in axes])[()]


def _innermost(x: np.ndarray, axes: set[int]) -> tuple[int, ...]:
    """Those axes that are one run of memory with the innermost one; none where NumPy may choose."""
    strides = sorted((abs(x.strides[d]), d) for d, n in enumerate(x.shape) if n != 1)
    found: list[int] = []
    after = strides[0][0]
    for stride, d in strides:
        if d not in axes or stride != after or not stride:
            break
        found.append(d)
        after = stride * x.shape[d]
    return tuple(found)


def _by_parts(x: np.ndarray, axis: int, keepdims: bool) -> Any:
    """The sum over one axis; its rows k, k + size, k + 2 size ... are added first."""
    before = (slice(None),) * axis
    while (rows := x.shape[axis]) > BLOCK:
        size = -(-rows // BLOCK)
        parts = rows // size
        first = x if parts * size == rows else x[(*before, slice(parts * size))]
        split = first.reshape(*x.shape[:axis], parts, size, *x.shape[axis + 1 :])
        total = ADD.reduce(split, axis=axis)
        if first is not x:
            total[(*before, slice(rows - parts * size))] += x[(*before, slice(parts * size, rows))]
        x = total
    return ADD.reduce(x, axis=axis, keepdims=keepdims)
