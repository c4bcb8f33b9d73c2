"""Sliding windows over the trailing dimensions of arrays, in NumPy: for convolutions and pools.

A window has `kernel` positions per dimension, `dilation` apart; windows start `stride` apart.
Arrays are (batch, channel, *spatial); `windows` gives (batch, channel, *kernel, *out).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

Ints = tuple[int, ...]


def plain_ints(argument: str, values: tuple[Any, ...], name: str = "") -> Ints:
    """Values that stand for ints as ints; words stand for none."""
    for value in values:
        if isinstance(value, str):
            where = f"{name}(): " if name else ""
            raise TypeError(f"{where}argument '{argument}' must be tuple of ints, not str")
    return tuple(int(n) for n in values)


Pads = tuple[tuple[int, int], ...]  # before and after, per spatial dimension


def out_size(
    size: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool = False
) -> Ints:
    """How many windows fit; with `ceil` the last may hang over, if it starts inside."""
    result = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        count = -(-room // s) + 1 if ceil else room // s + 1
        if ceil and (count - 1) * s >= n + p:
            count -= 1
        result.append(count)
    return tuple(result)


def pad_spatial(x: np.ndarray, pads: Pads, value: Any = 0) -> np.ndarray:
    """`x` with `value` around its trailing dimensions; negative pads cut."""
    if not any(before or after for before, after in pads):
        return x
    lead = x.ndim - len(pads)
    shape = x.shape[:lead] + tuple(n + b + a for n, (b, a) in zip(x.shape[lead:], pads))
    make = np.zeros if value == 0 else np.empty
    result = make(shape, x.dtype)
    if value != 0:
        result.fill(value)
    sizes = x.shape[lead:]
    inner: Any = [slice(max(b, 0), n + b + min(a, 0)) for n, (b, a) in zip(sizes, pads)]
    source: Any = [slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(sizes, pads)]
    place: Any = (..., *inner)
    seen: Any = (..., *source)
    result[place] = x[seen]
    return result


def symmetric(padding: Ints) -> Pads:
    return tuple((p, p) for p in padding)


def windows(x: np.ndarray, kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> np.ndarray:
    """The view (batch, channel, *kernel, *out) of a padded array."""
    steps = x.strides[-len(kernel) :]
    return as_strided(
        x, (*x.shape[: -len(kernel)], *kernel, *out),
        (*x.strides[: -len(kernel)], *(n * d for n, d in zip(steps, dilation)),
         *(n * s for n, s in zip(steps, stride))), writeable=False,
    )  # fmt: skip


def offsets(
    kernel: Ints, stride: Ints, dilation: Ints, out: Ints
) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
    """Per kernel position: its index and the place its elements have in the padded array."""
    for position in itertools.product(*map(range, kernel)):
        place = tuple(slice(i * d, i * d + (n - 1) * s + 1, s)
                      for i, d, n, s in zip(position, dilation, out, stride))  # fmt: skip
        yield position, (..., *place)


def add_windows(target: np.ndarray, columns: Any, stride: Ints, dilation: Ints) -> None:
    """The adjoint of `windows`: adds each position of (batch, channel, *kernel, *out) back."""
    dims = len(stride)
    kernel, out = columns.shape[-2 * dims : -dims], columns.shape[-dims:]
    lead = (slice(None),) * (columns.ndim - 2 * dims)
    for position, place in offsets(kernel, stride, dilation, out):
        target[place] += columns[lead + tuple(position)]


def crop(x: np.ndarray, pads: Pads) -> np.ndarray:
    """The inner part of a padded array."""
    return pad_spatial(x, tuple((-b, -a) for b, a in pads)) if any(map(any, pads)) else x
