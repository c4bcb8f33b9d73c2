"""Python callables that check arrays and enter native code, in tens of nanoseconds.

`make` turns a native entry and a list of what it expects into a callable. All callables share
one native function (`objects.ll`, `fastcall.ll`); what differs is a table, so making one
compiles nothing.

The entry is `void entry(ptr pointers, ptr arena)`: a pointer to the data of each argument, then
of each result. With `status=True` it returns an i64, and one that is not zero is handed to the
caller in place of the results. A callable answers with

- None, one new array or a tuple of them, when the entry ran;
- the status, a non-zero int, when the entry gave one;
- NotImplemented, or the answer of the slow path, when an argument is not exactly as expected.
  Nothing has happened then: converting arguments is the slow path's job.

Invariants:
- The table, and what it points to, lives as long as the callable, which holds it as `self`.
- A dtype is compared by identity: an unpickled array's is not NumPy's own, and is declined.
- Where objects cannot be read (`layout.trouble()`, or `WENGERT_FASTCALL=0`) a Python closure
  with the same answers stands in.
"""

from __future__ import annotations

import ctypes
import os
import string
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from . import layout
from .expected import Argument, Array, Call, Fixed, Float, Ignored
from .improving import Improving
from .memory import Arena, arena_code
from .stand_in import stand_in

RELEASE_GIL, STATUS, TUPLE, HOLD = 1, 2, 4, 8
A_FLOAT, AN_OBJECT, A_NUMBER, A_COPY = 1, 2, 3, 4  # kinds of records; 0 is an array
SMALL = 4096  # bytes of a result whose array may be kept for later calls


def make(
    entry: int, arguments: Sequence[Argument], results: Sequence[Array] = (), **options: Any
) -> Callable[..., Any]:
    """A callable for the native function at address `entry`; for the options see `Call`.

    >>> f4 = np.dtype("f4")
    >>> double = make(library.address("double"), [Array(f4, (8,)), Array(f4, (8,), writeable=True)],
    ...               keep=[library])
    >>> double(x, out)
    """
    call = Call(entry, arguments, results, **options)
    if call.arena_size and call.arena is None:
        call = replace(call, arena=Arena())
    return stand_in(call) if reason_for_fallback() else _native(call)


def reason_for_fallback() -> str:
    """Why callables are Python closures here; "" when they are native."""
    if os.environ.get("WENGERT_FASTCALL", "1") == "0":
        return "disabled by WENGERT_FASTCALL"
    return layout.trouble() or _self_test()


# Native callables


class Table(np.ndarray):
    """The words that native code reads, and the owner of what they point to."""

    keep: list[object]

    def __array_finalize__(self, source: Any) -> None:
        self.keep = []


# Backward to leaves is a module of its own: whole training steps do not need it.
CALLS = ("spares.ll", "history.ll", "edges.ll", "fastcall.ll", "effects.ll", "views.ll",
         "entering.ll")  # fmt: skip
BACKWARD = ("leaves.ll",)
EXPORTS = {
    CALLS: ("wengert_call", "wengert_call_packed", "wengert_turn", "wengert_unpack",
            "wengert_unchanged", "wengert_place", "wengert_test"),
    BACKWARD: ("wengert_to_leaves",),
}  # fmt: skip
TEST = """
define void @wengert_test(ptr %pointers, ptr %arena) {
  %from = load ptr, ptr %pointers
  %to.p = getelementptr ptr, ptr %pointers, i64 1
  %to = load ptr, ptr %to.p
  %value = load double, ptr %from
  store double %value, ptr %to
  ret void
}
"""
OF_CALLS = """
declare ptr @wengert_call(ptr, ptr, i64)
declare ptr @wengert_place(ptr)
"""


def places(files: tuple[str, ...]) -> dict[str, int]:
    """What the words of lists are called in the texts."""
    if files is BACKWARD:
        from . import leaves

        return leaves.PLACES
    from . import effects, entering, history, views

    rooms = (history.PLACES, effects.PLACES, effects.STEPS, entering.PLACES, entering.KINDS,
             views.PLACES)  # fmt: skip
    return {name: place for room in rooms for name, place in room.items()}


def last_instruction() -> str:
    from . import history

    return history.LAST_INSTRUCTION


@cache
def text(files: tuple[str, ...] = CALLS) -> str:
    """The LLVM text behind all callables that compute, or behind those that go backward."""
    here = Path(__file__).parent
    parts = "".join((here / name).read_text() for name in ("objects.ll", *files))
    parts += OF_CALLS if files is BACKWARD else TEST + last_instruction()
    return string.Template(parts).substitute(
        REFERENCES=layout.REFERENCES,
        TYPE=layout.TYPE,
        DATA=layout.DATA,
        ND=layout.ND,
        DIMS=layout.DIMS,
        STRIDES=layout.STRIDES,
        BASE=layout.BASE,
        WEAK=layout.WEAK,
        DICT_USED=layout.DICT_USED,
        DICT_VERSION=layout.DICT_VERSION,
        METHOD=layout.METHOD,
        METHOD_SELF=layout.METHOD_SELF,
        METHOD_FUNCTION=layout.METHOD_FUNCTION,
        METHOD_FLAGS=layout.METHOD_FLAGS,
        METH_FASTCALL=layout.METH_FASTCALL,
        TUPLE_SIZE=layout.TUPLE_SIZE,
        TUPLE_COUNT=layout.TUPLE_SIZE // 8,
        TUPLE_ITEMS=layout.TUPLE_ITEMS,
        DESCR=layout.DESCR,
        FLAGS=layout.FLAGS,
        FLOAT=layout.FLOAT,
        INT_SIZE=layout.INT_SIZE,
        INT_DIGIT=layout.INT_DIGIT,
        ONE_DIGIT=layout.one_digit(),
        MOST_DIGIT=layout.MOST_DIGIT,
        RELEASE_GIL=RELEASE_GIL,
        STATUS=STATUS,
        TUPLE=TUPLE,
        HOLD=HOLD,
        A_FLOAT=A_FLOAT,
        AN_OBJECT=AN_OBJECT,
        A_NUMBER=A_NUMBER,
        A_COPY=A_COPY,
        C_ORDER=layout.C_ORDER,
        EQUAL=layout.EQUAL,
        SET_USED=layout.SET_USED,
        WRITEABLE=layout.WRITEABLE,
        OWNED_FLAGS=layout.OWNED | layout.ALIGNED | layout.WRITEABLE,
        WRITEABLE_FLAGS=layout.C_CONTIGUOUS | layout.ALIGNED | layout.WRITEABLE,
        **places(files),
    )


def _imports_of_backward() -> dict[str, int]:
    library = calls.library()
    return layout.imports() | {name: library.address(name) for name in EXPORTS[CALLS]}


calls = Improving(text, EXPORTS[CALLS], lambda: layout.imports() | arena_code().addresses)
backward = Improving(lambda: text(BACKWARD), EXPORTS[BACKWARD], _imports_of_backward)


@cache
def _new_function() -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        layout.python_function("PyCFunction_NewEx")
    )


def _native(call: Call) -> Callable[..., Any]:
    table = _table_of(call)
    table.keep.append(call)
    symbol = "wengert_call" if call.taking is None else "wengert_call_packed"
    return table_function(call.name, symbol, table)


def unchanged(words: Sequence[tuple[int, int]]) -> Callable[[], bool]:
    """A callable that tells whether these words are at these addresses."""
    table = np.array(_listed(words), np.uint64).view(Table)
    return table_function("unchanged", "wengert_unchanged", table)


def table_function(name: str, symbol: str, table: Table) -> Callable[..., Any]:
    """A built-in function whose `self` is a table of words."""
    method = (backward if symbol in EXPORTS[BACKWARD] else calls).method(name, symbol)
    table.keep.append(method)
    return _new_function()(ctypes.addressof(method), table, None)


def listed_function(name: str, symbol: str, what: Any) -> Callable[..., Any]:
    """A built-in function whose table is `what.words`, kept with it."""
    keep: list[object] = [what]
    table = np.array(what.words(partial(_words, keep)), np.uint64).view(Table)
    table.keep += keep
    return table_function(name, symbol, table)


def _words(keep: list[object], values: Sequence[int]) -> int:
    """The address of an array of these words, which is kept."""
    array = np.array([value % 2**64 for value in values or [0]], np.uint64)
    keep.append(array)
    return array.ctypes.data


def _listed(pairs: Sequence[tuple[int, int]]) -> list[int]:
    """How many, and the pairs, as native code reads them."""
    return [len(pairs), *(word for pair in pairs for word in pair)]


def _table_of(call: Call) -> Table:
    keep: list[object] = []
    words = partial(_words, keep)

    def record(expected: Array) -> int:
        return words([*_record(expected, words), -1, 0])

    flags = (
        RELEASE_GIL * call.release_gil
        | STATUS * call.status
        | TUPLE * call.gives_tuple
        | HOLD * any(getattr(a, "holder", None) is not None for a in call.arguments)
    )
    pairs = call.pairs
    head = [
        len(call.arguments),
        len(call.results),
        call.entry,
        flags,
        call.arena.address if call.arena_size else 0,
        call.arena_size,
        id(call.slow) if call.slow else 0,
        len(pairs),
        words([i for pair in pairs for i in pair]),
        1 + max([-1, *call.order, *(place for place, _ in call.bound)]),
        words(_listed(call.bound)),
        words(_listed(call.watched)) if call.watched else 0,
        len(call.held),
        words(call.held),
        0 if call.history is None else words(call.history.words(words, record)),
        call.modes,
        0 if call.counter is None else call.counter.ctypes.data,
        id(call.declined),
        id(call.failed) if call.failed else 0,
        len(call.results) if call.history is None else len(call.history.linked),
        0 if call.taking is None else call.taking.words(words),
        *_afterwards(call, words, record),
    ]
    records = []
    spares = [0] * len(call.arguments) + _spares(call, keep)
    for expected, place, at in zip((*call.arguments, *call.results), call.order, spares):
        records += [*_record(expected, words), place, at]
    table = np.array([word % 2**64 for word in head + records], np.uint64).view(Table)
    table.keep += keep
    return table


def _spares(call: Call, keep: list[object]) -> list[int]:
    """Where two arrays for each result are that a later call may use again, or 0."""
    arrays: list[np.ndarray | None] = [None] * (2 * len(call.results))
    keep.append(arrays)
    at = layout.word_at(id(arrays) + layout.LIST_ITEMS)
    return [at + 16 * k if call.recycles and result.extent[1] <= SMALL else 0
            for k, result in enumerate(call.results)]  # fmt: skip


def _afterwards(call: Call, words: Callable[[Sequence[int]], int],
                record: Callable[[Array], int]) -> list[int]:  # fmt: skip
    """The words of a %Table for what is done beside running."""
    unchanged, renew = call.numbers or (None, None)
    effects = call.effects if call.effects and call.effects.is_located else None
    whose = [x.eager for x in (call.history, effects, call.answer) if x]
    eager = next(filter(None, whose), None)  # if anything says where it comes from
    return [
        0 if unchanged is None else unchanged.__self__.ctypes.data,
        id(renew),
        0 if not call.effects else words(call.effects.words(words)),
        0 if eager is None else words(eager.place_words(call.depth, call.last_code)),
        0 if call.answer is None else words(call.answer.words(words, record)),
        0 if call.states is None else words(call.states.words(words)),
    ]


def _record(expected: Argument, words: Callable[[Sequence[int]], int]) -> list[int]:
    """The words of a %Record; the dtype is kept alive by the Call."""
    if isinstance(expected, Ignored):
        return [0] * 11
    if isinstance(expected, Float):
        return [id(float), 0, A_FLOAT, 0, 0, 0, 0, 0, 0, 0, 0]
    if isinstance(expected, Fixed):
        value = expected.value
        pairs = layout.number_words(value)
        if pairs:
            return [id(type(value)), 0, A_NUMBER, 0, 0, 0, 0, 0, 0, 0, words(_listed(pairs))]
        return [id(type(value)), 0, AN_OBJECT, id(value), 0, 0, 0, 0, 0, 0, 0]
    flags = layout.ALIGNED
    flags |= layout.C_CONTIGUOUS * (expected.strides is None)
    flags |= layout.WRITEABLE * expected.writeable
    cls = expected.holder
    return [
        id(cls or np.ndarray),
        layout.slot_offset(cls, expected.slot) if cls else 0,
        A_COPY * expected.copied,
        id(expected.dtype),
        flags | len(expected.shape) << 32,
        words(expected.shape),
        0 if expected.strides is None else words(expected.strides),
        expected.alignment - 1,
        *expected.extent,
        words(_listed(_slot_pairs(cls, expected))) if cls else 0,
    ]


def _slot_pairs(cls: type, expected: Array) -> list[tuple[int, int]]:
    """What `as_listed` of objects.ll reads."""
    alike = [(layout.slot_offset(cls, slot), id(value)) for slot, value in expected.facts]
    unlike = [(~layout.slot_offset(cls, slot), id(value)) for slot, value in expected.unlike]
    return alike + unlike


@cache
def _self_test() -> str:
    """Calls one callable with arrays that fit and that do not: the last word on the layout."""
    try:
        double = Array(np.dtype(np.float64), (1,))
        entry = calls.library().address("wengert_test")
        copy = _native(Call(entry, [double], [double], "copy", release_gil=True))
        made = copy(np.array([2.5]))
        declined = [copy(), copy(2.5), copy(np.array(2.5)), copy(np.zeros(1, np.float32))]
        if made[0] == 2.5 and declined == [NotImplemented] * 4:
            return ""
        return f"the self-test gave {made!r} and {declined!r}"
    except Exception as error:  # whatever goes wrong, the stand-in works
        return f"the self-test failed: {error!r}"
