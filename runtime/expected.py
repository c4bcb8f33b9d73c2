"""What native callables expect of their arguments and make as results; see fastcall.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .memory import Arena


@dataclass(frozen=True)
class Array:
    """An array exactly as the entry expects it.

    `strides` are in bytes; None means C-contiguous. With `holder` the argument is an object of
    exactly that class, which has the array in its slot `slot`, and in the slots of `facts` these
    very objects; a result is put into a new object like that.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    writeable: bool = False
    alignment: int = 1
    holder: type | None = None
    slot: str = ""
    facts: tuple[tuple[str, object], ...] = ()

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte and the byte after the last, counted from the data pointer."""
        if 0 in self.shape:
            return 0, 0
        if self.strides is None:
            return 0, self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        steps = [(n - 1) * step for n, step in zip(self.shape, self.strides)]
        return (
            sum(step for step in steps if step < 0),
            sum(step for step in steps if step > 0) + self.dtype.itemsize,
        )


@dataclass(frozen=True)
class Float:
    """A Python float; the entry gets a pointer to its double."""


@dataclass(frozen=True)
class Call:
    """All that a callable is made of; see `make`."""

    entry: int
    arguments: tuple[Array | Float, ...]
    results: tuple[Array, ...]
    name: str
    release_gil: bool
    status: bool
    tuple_result: bool
    disjoint: bool
    apart: bool
    arena: Arena | None
    arena_size: int
    slow: Callable[..., Any] | None
    keep: tuple[object, ...]
    places: tuple[int, ...]
    bound: tuple[tuple[int, int], ...]
    watched: tuple[tuple[int, int], ...]
    held: tuple[int, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Arguments that must not share memory: what is written and anything else, or any two."""
        arrays = [
            (i, a)
            for i, a in enumerate(self.arguments)
            if isinstance(a, Array) and a.extent != (0, 0)
        ]
        return [
            (i, j)
            for i, a in arrays
            for j, b in arrays
            if i < j and (self.apart or (self.disjoint and (a.writeable or b.writeable)))
        ]
