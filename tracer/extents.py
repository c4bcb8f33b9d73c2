"""How arrays lie in memory: the order of their dimensions, and when two are the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np


def order_of(array: np.ndarray) -> Any:
    """The order of dimensions in memory; None for row-major, or where there are gaps."""
    if array.flags.c_contiguous:
        return None
    order = sorted(range(array.ndim), key=lambda k: -array.strides[k])
    return tuple(order) if array.transpose(order).flags.c_contiguous else None


def row_major(array: np.ndarray) -> np.ndarray:
    """The same memory with its dimensions in the order in which they lie there."""
    order = order_of(array)
    return array if order is None else array.transpose(order)


def extent_of(array: np.ndarray) -> Any:
    """What arrays have in common that are the same elements, be it in another order."""
    array = row_major(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
