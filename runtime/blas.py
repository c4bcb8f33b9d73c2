"""How many threads NumPy's BLAS may use: as many as our own pool.

Two pools that do not know of each other would take each other's cores: a product of 512x512
matrices on a busy machine took fifty times as long.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

# OpenBLAS in NumPy's wheels, OpenBLAS by itself
NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@cache
def _function(verb: str) -> Any:
    """The library's `set` or `get`, or None where NumPy has another BLAS."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # finds its dependencies too
    except (AttributeError, OSError):
        return None
    for name in NAMES:
        found = getattr(library, name.format(verb), None)
        if found is not None:
            return found
    return None


def set_num_threads(count: int) -> bool:
    """Lets the BLAS use `count` threads; False where it cannot be told."""
    function = _function("set")
    if function is None:
        return False
    function(ctypes.c_int(count))
    return True


def get_num_threads() -> int | None:
    """How many threads the BLAS uses, if it can be asked."""
    function = _function("get")
    return None if function is None else int(function())
