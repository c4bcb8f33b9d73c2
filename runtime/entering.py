"""Callables that take arguments as Python gives them, in a tuple and a dict (entering.ll).

A `Taking` says where the leaves are; `unpacking` makes a callable that finds them. `Turn` goes on
by the truth of a value: `T_<name>` in the text are places in its list, `U_<name>` in that of
`unpacking`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import fastcall, layout

KINDS = {"OF_TUPLE": 0, "OF_LIST": 1, "OF_DICT": 2, "OF_ATTRIBUTES": 3, "OF_SLOTS": 4}
TURN = ("first", "miss", "condition", "array", "enter", "next", "next_if_true")
PLACES = {f"T_{name}": place for place, name in enumerate(TURN)} | {
    "U_inner": 0, "U_how": 1, "U_miss": 2}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Container:
    """A container of exactly a class: its members, each a Container or None for a leaf, and the
    names that they have in a dict or as attributes."""

    cls: type
    members: tuple[Container | None, ...]
    names: tuple[str, ...] = ()

    @property
    def kind(self) -> int:
        if issubclass(self.cls, tuple | list):
            return KINDS["OF_TUPLE" if issubclass(self.cls, tuple) else "OF_LIST"]
        if self.cls is dict:
            return KINDS["OF_DICT"]
        return KINDS["OF_ATTRIBUTES" if self.cls.__dictoffset__ else "OF_SLOTS"]

    @property
    def leaves(self) -> int:
        return sum(1 if member is None else member.leaves for member in self.members)

    def words(self, listed: Callable[[Sequence[int]], int]) -> int:
        """The address of its description."""
        return listed([self.kind, id(self.cls), len(self.members), listed([*map(id, self.names)]),
                       *(0 if m is None else m.words(listed) for m in self.members)])  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Taking:
    """The tuple and the dict of a call."""

    args: Container
    kwargs: Container

    @property
    def is_flat(self) -> bool:
        return all(m is None for m in (*self.args.members, *self.kwargs.members))

    def words(self, listed: Callable[[Sequence[int]], int]) -> int:
        """The address of what native code reads: see `unpacked` in entering.ll."""
        names = self.kwargs.names
        leaves = self.args.leaves + self.kwargs.leaves
        if self.is_flat:
            return listed([0, len(names), *map(id, names)])
        return listed([leaves + 1, self.args.words(listed), self.kwargs.words(listed)])


class Turn:
    """`call` takes arguments, gives them to `first`, and goes on by the truth of its result number
    `condition`: with `enter(outcome, values)`, or with what `learn` was told for that outcome.

    `first` answers with `miss`, or with a tuple in which that is an object of class `holder`, which
    has an array in its slot `slot`; without `holder`, the array itself. What is next is given the
    arguments, then what is in that tuple.
    """

    def __init__(self, first: Any, miss: object, condition: int, holder: type | None, slot: str,
                 enter: Any):  # fmt: skip
        self.kept: list[Any] = [first, miss, enter]
        at = layout.slot_offset(holder, slot) if holder else 0
        words = [id(first), id(miss), condition, at, id(enter), 0, 0]
        self.table = np.array(words, np.uint64).view(fastcall.Table)
        self.table.keep.append(self.kept)
        self.call = fastcall.table_function("turn", "wengert_turn", self.table)

    def learn(self, outcome: bool, following: Any) -> None:
        """From now on it goes on with this for that outcome, for which nothing was known."""
        self.kept.append(following)
        self.table[TURN.index("next") + outcome] = id(following)


def unpacking(inner: Any, taking: Taking, miss: object) -> Any:
    """A callable of a tuple and a dict that calls `inner` with the leaves, or answers `miss`."""
    return fastcall.listed_function("unpacking", "wengert_unpack", _Unpacking(inner, taking, miss))


@dataclasses.dataclass(frozen=True)
class _Unpacking:
    inner: Any
    taking: Taking
    miss: object

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        return [id(self.inner), self.taking.words(listed), id(self.miss)]
