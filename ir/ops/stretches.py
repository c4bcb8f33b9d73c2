"""Which reshapes share memory: a question of strides, asked in terms of sizes.

A recording for all sizes hears the comparisons, so that other answers are other traces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bind import notify


def can_view(input: Any, size: tuple[int, ...]) -> bool:
    """Would a reshape share memory? Only eager values have strides; IR values always may."""
    array = getattr(input, "_layout", None)
    if array is None:
        return True
    notify("layout_asked", input)
    return bool(array.flags.c_contiguous) or splits(stretches(array, tuple(input.shape)), size)


def stretches(array: np.ndarray, shape: tuple[int, ...]) -> list[int]:
    """How many elements lie evenly in memory, stretch by stretch, the last dimensions first.

    `shape` is the array's, in terms of symbolic sizes where a recording is for all sizes.
    """
    found: list[int] = []
    following = None  # the stride of a dimension that would continue the stretch
    for stride, number, size in zip(array.strides[::-1], array.shape[::-1], shape[::-1]):
        if number == 1:
            continue
        if stride == following:
            found[-1] = found[-1] * size
        else:
            found.append(size)
        following = stride * number
    return found


def splits(counts: list[int], size: tuple[int, ...]) -> bool:
    """Do the dimensions of `size`, the last ones first, divide each stretch by itself?"""
    rest = list(size)
    for count in counts:
        covered = 1
        while rest and covered < count:
            covered = covered * rest.pop()
        if covered != count:
            return False
    return True
