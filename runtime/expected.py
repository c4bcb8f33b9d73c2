"""What native callables expect of their arguments and make as results; see fastcall.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .effects import Answer, Effects, States
from .history import History
from .memory import Arena


@dataclass(frozen=True)
class Array:
    """An array exactly as the entry expects it.

    `strides` are in bytes; None means C-contiguous. With `copied`, the entry gets a C-contiguous
    copy. With `holder` the argument is an object of
    exactly that class, which has the array in its slot `slot`, in the slots of `facts` these
    very objects, and in those of `unlike` any but these; a result is put into a new object like
    that.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    writeable: bool = False
    alignment: int = 1
    holder: type | None = None
    slot: str = ""
    facts: tuple[tuple[str, object], ...] = ()
    unlike: tuple[tuple[str, object], ...] = ()
    copied: bool = False

    def laid_out_as(self, array: np.ndarray) -> Array:
        """The same for arrays like this one: copied, if it is not C-contiguous."""
        if array.flags.c_contiguous:
            return self
        return replace(self, strides=array.strides, copied=True)

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


@dataclass(frozen=True, eq=False)
class Fixed:
    """This very object; or a float or a short int that equals it, bit by bit."""

    value: object


@dataclass(frozen=True)
class Ignored:
    """Anything: somebody else looked at it, or nobody needs to."""


Argument = Array | Float | Fixed | Ignored


@dataclass(frozen=True)
class Call:
    """All that a callable is made of; see `fastcall.make`.

    `release_gil`: worth 30 ns if the entry runs much longer. `tuple_result`: default, when there
    are several results. `disjoint`: decline when a writeable argument shares memory with another;
    `apart`: when any argument does. `slow`: what answers calls that are declined. `keep`: what must
    live as long as the callable, above all the Library of the entry.

    `places`: where the entry wants the pointer of each argument and result; default, in order.
    A negative place: it is checked and not passed on. `bound`: places with pointers that are the
    same at each call. `watched`: addresses with words that must be there for the call to be
    accepted (see watch.py). `held`: addresses of objects that a call must keep alive while the
    GIL is released; the watched words must have shown that they live. `history`: what results get;
    the first of them are shown, the others saved. `modes`: of `watch.modes`. `counter`: an int64
    that counts the calls that ran. `recycles`: arrays of small results are used again when nobody
    else holds them (spares.ll). `declined`: the answer where there is no slow path. `failed` is
    given a status, and answers for it. `taking`: it is called with a tuple of arguments and a dict,
    which it takes apart like that. `numbers`: a callable of `watch.watch`, and one
    that is asked where its words differ; the call is declined where it says no. `effects`: what is
    done after a run. `depth`: how many frames of Python are never the user's. `answer`: how the
    answer is put together. `states`: of generators, before the run, which the history gets. All of
    these need native code.
    """

    entry: int
    arguments: Sequence[Argument]
    results: Sequence[Array] = ()
    name: str = "kernel"
    release_gil: bool = False
    status: bool = False
    tuple_result: bool | None = None
    disjoint: bool = True
    apart: bool = False
    arena: Arena | None = None
    arena_size: int = 0
    slow: Callable[..., Any] | None = None
    keep: Sequence[object] = ()
    places: Sequence[int] | None = None
    bound: Sequence[tuple[int, int]] = ()
    watched: Sequence[tuple[int, int]] = ()
    held: Sequence[int] = ()
    history: History | None = None
    modes: int = 0
    counter: np.ndarray | None = None
    declined: object = NotImplemented
    failed: Callable[[int], Any] | None = None
    taking: Any = None
    numbers: tuple[Any, Any] | None = None
    effects: Effects | None = None
    depth: int = 0
    answer: Answer | None = None
    states: States | None = None
    recycles: bool = False
    last_code: list[Any] = field(default_factory=lambda: [None, None])  # see `Eager.place_words`

    def __post_init__(self) -> None:
        for argument in self.arguments:
            if isinstance(argument, Array) and argument.copied and argument.writeable:
                raise ValueError(f"{self.name}: what is written can't be a copy: {argument}")
        for result in self.results:
            if result.strides is not None:
                raise ValueError(f"{self.name}: results are new C-contiguous arrays, not {result}")

    @property
    def gives_tuple(self) -> bool:
        return len(self.results) > 1 if self.tuple_result is None else self.tuple_result

    @property
    def order(self) -> Sequence[int]:
        """The places of all pointers."""
        count = len(self.arguments) + len(self.results)
        return range(count) if self.places is None else self.places

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Arguments that must not share memory: what is written and anything else, or any two."""
        arrays = {
            i: a
            for i, a in enumerate(self.arguments)
            if isinstance(a, Array) and a.extent != (0, 0)
        }
        if self.apart:
            return list(itertools.combinations(arrays, 2))
        written = [i for i, a in arrays.items() if self.disjoint and a.writeable]
        return sorted({(min(i, j), max(i, j)) for i in written for j in arrays if i != j})
