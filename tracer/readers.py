"""Who will read memory again: backward of compiled functions.

Eager's history keeps the values that backward needs. A compiled function's may keep inputs instead,
and compute such values again. Nobody may see that, so whoever writes memory tells first.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from .storage import note_exposure, owner_of

readers: set[weakref.ref[Any]] = set()  # empty nearly always, which is all that fast paths ask


def reads_later(reader: Any) -> weakref.ref[Any]:
    """`reader.before_write(owner)` is called before memory is written, until it is gone."""
    reference = weakref.ref(reader, readers.discard)
    readers.add(reference)
    return reference


def expose(array: np.ndarray) -> None:
    """NumPy's users may write to this memory from now on, and nobody will be told."""
    owner = owner_of(array)
    note_exposure(owner)
    for reference in list(readers):
        reader = reference()
        if reader is not None:
            reader.before_exposure(owner)


def announce_replacement(tensor: Any) -> None:
    """This tensor is about to be given other memory, as if it was written."""
    for reference in list(readers):
        reader = reference()
        if reader is not None and hasattr(reader, "before_replacement"):
            reader.before_replacement(tensor)
    announce_write(tensor._array)


def announce_write(array: np.ndarray) -> None:
    """This memory is about to be written."""
    owner = owner_of(array)
    for reference in list(readers):
        reader = reference()
        if reader is not None:
            reader.before_write(owner)
