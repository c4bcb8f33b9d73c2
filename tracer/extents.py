"""How arrays lie in memory: the order of their dimensions, and when two are the same elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.ops.layouts import memory_order


def row_major(array: np.ndarray) -> np.ndarray:
    """The same memory with its dimensions in the order in which they lie there."""
    order = memory_order(array)
    return array if order is None else array.transpose(order)


def extent_of(array: np.ndarray) -> Any:
    """What arrays have in common that are the same elements, be it in another order."""
    array = row_major(array)
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype
