"""Memory shared by a tensor and its views, and its version counter."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np


class Storage:
    """The array that owns the bytes (`root`) and how often they were written in place.

    A tensor and its views share one Storage. `x.data` has one of its own on the same root: it
    shares the bytes, not the counter. `written` is where the user wrote last, for errors.

    Note [Lazy storage]
        Results of ops get theirs when first needed (a view is made, an output is saved, a write
        happens), since most never need one. A tensor without a storage is at version 0.
    """

    __slots__ = ("__weakref__", "root", "version", "written")

    def __init__(self, root: np.ndarray, version: int = 0, written: Any = None):
        self.root = root
        self.version = version
        self.written = written

    def note_write(self, place: Any, times: int = 1) -> None:
        """The bytes were written, at the user's `place`."""
        self.version += times
        self.written = place

    @property
    def pointer(self) -> int:
        """The address of the first byte."""
        return int(self.root.__array_interface__["data"][0])

    @property
    def nbytes(self) -> int:
        """The size of the whole memory."""
        return int(self.root.nbytes)


class AsHigh(int):
    """A version that equals another but is not that very object, by which native code sees it."""

    __slots__ = ()


class Renewed(Storage):
    """That of a tensor whose memory was replaced (`x.data = y`); `formers` counted writes before.

    Views of the tensor that were made before keep the old memory.
    """

    __slots__ = ("formers",)

    def __init__(self, root: np.ndarray, version: int, before: Storage):
        super().__init__(root, AsHigh(version))
        known = before.formers if isinstance(before, Renewed) else ()
        self.formers = (*[f for f in known if f() is not None], weakref.ref(before))

    def former(self, array: np.ndarray) -> Storage | None:
        """The one that counted writes to this memory, if anybody holds it still."""
        owner = owner_of(array)
        known = (f() for f in self.formers)
        return next((s for s in known if s is not None and owner_of(s.root) is owner), None)


class View:
    """How a tensor was viewed from its base: a chain of view ops.

    `chain` holds (op, attrs, position) steps from `base` on. `seen` is the storage version for
    which the tensor's history is right; when the base was written since, it is derived anew.
    `origin` says how the view came to be, where that forbids in-place writes later.
    """

    __slots__ = ("base", "chain", "origin", "seen")

    def __init__(self, base: Any, chain: tuple[Any, ...], seen: int, origin: str = ""):
        self.base, self.chain, self.seen, self.origin = base, chain, seen, origin


exposed: dict[int, weakref.ref[Any]] = {}  # owners of memory that NumPy's users hold too, by id


def note_exposure(owner: np.ndarray) -> None:
    """From now on `is_exposed`; see `readers.expose`."""
    number = id(owner)
    exposed[number] = weakref.ref(owner, lambda _: exposed.pop(number, None))


def is_exposed(owner: np.ndarray) -> bool:
    """May somebody else write to memory with this owner?"""
    return owner.base is not None or id(owner) in exposed


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array at the bottom of a chain of NumPy views."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
