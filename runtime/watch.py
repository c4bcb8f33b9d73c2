"""Watching Python values for change: a few words of memory, compared natively.

What a dict, list, closure cell or object holds is tied to words of memory that differ when it
does: a dict's version, a list's items, the value in a cell. `Watch(words)` is a callable that
answers whether they are all as they were, in some tens of nanoseconds for a hundred of them.

Invariants:
- An answer of True is final: nothing watched was changed. False only says "look yourself".
- Watched objects must outlive the Watch; the maker keeps them.
- Values inside are compared by identity, so only immutable ones are covered.
- Where memory is not laid out as expected (`trouble()`) nothing can be watched.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from . import fastcall, layout
from .layout import DICT_KEYS, DICT_USED, DICT_VERSION, HEAD, KEYS_ENTRIES, SET_USED, word_at

Words = list[tuple[int, int]]  # addresses, and what is there

CLASS = HEAD - 8
CELL_VALUE = HEAD
LIST_SIZE, LIST_ITEMS = HEAD, HEAD + 8
SET_MASK, SET_TABLE = HEAD + 16, HEAD + 24
FUNCTION_WORDS = 8  # globals, builtins, two names, code, defaults, named defaults, closure


class Unwatchable(TypeError):
    """The value is not kept as this module expects."""


def watch(words: Words) -> Callable[[], bool] | None:
    """A callable that answers whether all words are as given; None where there can be none."""
    if trouble():
        return None
    return fastcall.unchanged(words)


def of_dict(value: dict[Any, Any]) -> Words:
    """All entries of a dict: any assignment changes its version."""
    return _now(id(value) + DICT_VERSION)


def of_entry(space: dict[Any, Any], name: str) -> Words:
    """One entry of a dict that changes all the time, such as a module's globals."""
    keys = word_at(id(space) + DICT_KEYS)
    value = id(space[name])
    key = next(id(k) for k in space if k == name)
    size = space.__sizeof__() - dict.__basicsize__
    table = (ctypes.c_uint64 * (size // 8)).from_address(keys)
    for at in range(len(table) - 1):
        if table[at] == key and table[at + 1] == value:
            return [*_now(id(space) + DICT_KEYS), (keys + 8 * (at + 1), value)]
    raise Unwatchable(f"entry {name!r}")


def of_names(space: dict[Any, Any]) -> Words:
    """Which names a dict has, whatever their values."""
    keys = word_at(id(space) + DICT_KEYS)
    return _now(id(space) + DICT_KEYS, id(space) + DICT_USED, keys + KEYS_ENTRIES)


def of_cell(cell: Any) -> Words:
    """A variable of a closure."""
    return _now(id(cell) + CELL_VALUE)


def of_list(value: list[Any]) -> Words:
    """All items of a list."""
    items = word_at(id(value) + LIST_ITEMS)
    return [*_now(id(value) + LIST_SIZE, id(value) + LIST_ITEMS),
            *_now(*(items + 8 * k for k in range(len(value))))]  # fmt: skip


def of_size(value: set[Any]) -> Words:
    """How many items a set has."""
    return _now(id(value) + SET_USED)


def of_set(value: set[Any]) -> Words:
    """All items of a set: its counts, where its table is, and the table's keys."""
    table = word_at(id(value) + SET_TABLE)
    keys = range(table, table + 16 * (word_at(id(value) + SET_MASK) + 1), 16)
    return _now(*range(id(value) + HEAD, id(value) + SET_TABLE + 8, 8), *keys)


def of_attributes(owner: Any) -> Words:
    """All attributes that an object has in its `__dict__`."""
    attributes = owner.__dict__
    # CPython keeps the dict's address before the head or, with an offset, behind it
    for at in (-24, -8, -16, -32, *range(HEAD, type(owner).__basicsize__, 8)):
        if word_at(id(owner) + at) == id(attributes):
            return [(id(owner) + at, id(attributes)), *of_dict(attributes)]
    raise Unwatchable(type(owner).__name__)


def of_class(owner: Any) -> Words:
    """Which class an object is of."""
    return _now(id(owner) + CLASS)


def of_function(function: Any) -> Words:
    """A function's code and the defaults of its parameters."""
    values = (function.__code__, function.__defaults__, function.__kwdefaults__)
    words = _now(*range(id(function) + HEAD, id(function) + HEAD + 8 * FUNCTION_WORDS, 8))
    if not {id(v) for v in values if v is not None} <= {word for _, word in words}:
        raise Unwatchable("function")
    return [*words, *(of_dict(values[2]) if values[2] is not None else ())]


def of_slot(owner: Any, slot: str) -> Words:
    """An attribute that an object has in a slot."""
    try:
        return _now(id(owner) + layout.slot_offset(type(owner), slot))
    except TypeError as error:
        raise Unwatchable(slot) from error


def of_array(array: np.ndarray) -> Words:
    """Where an ndarray's data is, and its flags."""
    return _now(id(array) + layout.DATA, id(array) + layout.FLAGS)


def of_body(owner: Any) -> Words:
    """All slots of an object that is referred to from one place only."""
    size = type(owner).__basicsize__
    return [(id(owner), 1), *_now(*range(id(owner) + 8, id(owner) + size, 8))]


def renew(unchanged: Any) -> None:
    """From now on the callable compares with what is in memory now."""
    table = unchanged.__self__
    table[2::2] = [word_at(address) for address in table[1::2].tolist()]


_modes: dict[Any, tuple[np.ndarray, Any]] = {}  # for good: there are few


def modes(state: Any, **wanted: Any) -> int:
    """The address of words that say what attributes a thread's `state` must have; for Calls."""
    key = (id(state), *wanted, *map(id, wanted.values()))
    if key not in _modes:
        names = [sys.intern(name) for name in ("__dict__", *wanted)]
        pairs = [id(x) for pair in zip(names[1:], wanted.values()) for x in pair]
        nobody = 2**64 - 1  # no thread has this number
        words = [nobody, 0, 0, id(state), id(names[0]), len(wanted), *pairs]
        _modes[key] = np.array(words, np.uint64), (state, names, wanted)
    return int(_modes[key][0].ctypes.data)


def _now(*addresses: int) -> Words:
    return [(address, word_at(address)) for address in addresses]


# --- is memory as expected? ----------------------------------------------------------------------


@cache
def trouble() -> str:
    """Why values cannot be watched here; "" if they can."""
    if sys.version_info >= (3, 13):
        return "dicts of this Python have no version"
    try:
        return fastcall.reason_for_fallback() or _self_test()
    except Exception as error:  # an unknown interpreter may fail in any way: that is an answer
        return f"the self-test failed: {error!r}"


def _self_test() -> str:
    for name, words, change in _changes():
        unchanged = fastcall.unchanged(words)
        before = unchanged(), unchanged()
        change()
        if before != (True, True) or unchanged():
            return f"a change of {name} was not seen"
    return ""


class _Owner:
    value = 0


class _Other(_Owner):
    pass


def _exchange(items: set[Any], one: Any, other: Any) -> None:
    items.discard(one)
    items.add(other)


def _changes() -> Iterable[tuple[str, Words, Callable[[], Any]]]:
    """Values of each kind, and a way to change each."""
    counter = 1000

    def set_cell() -> None:
        nonlocal counter
        counter += 1

    yield "a closure variable", of_cell(set_cell.__closure__[0]), set_cell  # type: ignore[index]
    numbers = {"a": 1000, "b": 2000}
    yield "a dict", of_dict(numbers), lambda: numbers.update(a=1001)
    yield "a new key", of_dict(numbers), lambda: numbers.update(c=1)
    yield "an entry", of_entry(numbers, "b"), lambda: numbers.update(b=2001)
    yield "a table", of_entry(numbers, "b"), lambda: numbers.update((str(k), k) for k in range(99))
    yield "a name", of_names(numbers), lambda: numbers.update(new=2)
    yield "another name", of_names(numbers), lambda: numbers.update(newer=numbers.pop("new"))
    items = [1000, 2000]
    yield "an item", of_list(items), lambda: items.__setitem__(1, 2001)
    yield "a list", of_list(items), lambda: items.append(3000)
    names = {"a"}
    yield "a set", of_size(names), lambda: names.add("b")
    yield "a smaller set", of_size(names), lambda: names.discard("a")
    numbers_seen = {1000, 2000}
    yield "a set's item", of_set(numbers_seen), lambda: _exchange(numbers_seen, 1000, 3000)
    yield "a set's size", of_set(numbers_seen), lambda: numbers_seen.add(4000)
    yield "a large set", of_set(numbers_seen), lambda: numbers_seen.update(range(99))
    yield "a set's end", of_set(numbers_seen), numbers_seen.clear
    yield "defaults", of_function(set_cell), lambda: setattr(set_cell, "__defaults__", (1,))
    owner = _Owner()

    def set_attribute() -> None:
        owner.value = owner.value + 1000

    for _ in range(2):  # before the interpreter specialises the store, and after
        yield "an attribute", of_attributes(owner), set_attribute
        for _ in range(40):
            set_attribute()
    yield "the class", of_class(owner), lambda: setattr(owner, "__class__", _Other)
    yield "all attributes", of_attributes(owner), lambda: setattr(owner, "__dict__", {})
