"""Evenly spaced numbers, rounded as torch rounds them."""

from __future__ import annotations

from typing import Any

import numpy as np

# A type in which products with whole numbers, and sums with them, are exact or nearly so.
_WIDER: dict[Any, Any] = {np.float32: np.float64, np.float64: np.longdouble}


def evenly_spaced(first: Any, last: Any, step: Any, count: int) -> Any:
    """`first + k * step` up to the middle, then `last - k * step`: each rounded once.

    torch multiplies and adds in one instruction; floats are widened to the same effect.
    """
    kind = type(first)
    wide = _WIDER.get(kind, kind)
    k = np.arange(count)
    low = wide(first) + wide(step) * k.astype(wide)
    high = wide(last) - wide(step) * (count - k - 1).astype(wide)
    return np.where(k < count // 2, low, high).astype(kind)
