"""Matrix products by NumPy, which gives them to a BLAS.

Note [BLAS threads]
    OpenBLAS, which comes with NumPy, wakes its threads for products of more than 2^18
    multiplications (with a vector: 9,216) and has them wait for each other by spinning. For
    products of some tens of microseconds that gains little on an idle machine and costs several
    times the arithmetic where cores are shared, with our own threads among others. So these run on
    one of its threads. Larger ones are native (tracer/large.py), or recorded, also on one thread,
    or run as the BLAS likes.
"""

from __future__ import annotations

import ctypes
import importlib
from functools import cache
from typing import Any

import numpy as np

# multiplications of the products that are kept to one thread
LEAST, LEAST_WITH_VECTOR, MOST = 1 << 18, 9216, 1 << 24


@cache
def _thread_setters() -> tuple[Any, Any] | None:
    """OpenBLAS's functions that get and set the number of its threads, if it is there."""
    core = importlib.import_module("numpy._core._multiarray_umath")
    try:
        library: Any = ctypes.PyDLL(core.__file__)
    except OSError:
        return None
    for pattern in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        found = [getattr(library, pattern.format(word), None) for word in ("get", "set")]
        if None not in found:
            return found[0], found[1]
    return None


def matmul(a: np.ndarray, b: np.ndarray) -> Any:
    """`np.matmul`; see Note [BLAS threads]."""
    columns = b.shape[-1] if b.ndim > 1 else 1
    with_vector = columns == 1 or a.ndim == 1 or a.shape[-2] == 1
    count = a.size * columns
    multiply: Any = np.matmul
    if a.ndim == 2 == b.ndim and a.dtype.char in "fdFD":
        multiply = np.dot  # the same call of the BLAS, at half the price
    if count <= (LEAST_WITH_VECTOR if with_vector else LEAST) or count >= MOST:
        return multiply(a, b)
    with OneThread():
        return multiply(a, b)


class OneThread:
    """Keeps OpenBLAS to one thread for a while; another BLAS runs as it likes."""

    __slots__ = ("threads",)

    def __enter__(self) -> None:
        setters = _thread_setters()
        if setters is not None:
            get_threads, set_threads = setters
            self.threads = get_threads()
            set_threads(1)

    def __exit__(self, *raised: object) -> None:
        setters = _thread_setters()
        if setters is not None:
            setters[1](self.threads)
