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
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import cache as object_cache
from . import jit, layout
from .memory import Arena, arena_code

RELEASE_GIL, STATUS, TUPLE, HOLD = 1, 2, 4, 8
METH_FASTCALL = 0x80


@dataclass(frozen=True)
class Array:
    """An array exactly as the entry expects it.

    `strides` are in bytes; None means C-contiguous. With `holder` the argument is an object of
    exactly that class, which has the array in its slot `slot`.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    writeable: bool = False
    alignment: int = 1
    holder: type | None = None
    slot: str = ""

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
    arena: Arena | None
    arena_size: int
    slow: Callable[..., Any] | None
    keep: tuple[object, ...]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Arguments that must not share memory: what is written, and anything else."""
        if not self.disjoint:
            return []
        arrays = [
            (i, a)
            for i, a in enumerate(self.arguments)
            if isinstance(a, Array) and a.extent != (0, 0)
        ]
        return [
            (i, j)
            for i, a in arrays
            if a.writeable
            for j, b in arrays
            if j != i and not (b.writeable and j < i)
        ]


def make(
    entry: int,
    arguments: Sequence[Array | Float],
    results: Sequence[Array] = (),
    *,
    name: str = "kernel",
    release_gil: bool = False,
    status: bool = False,
    tuple_result: bool | None = None,
    disjoint: bool = True,
    arena: Arena | None = None,
    arena_size: int = 0,
    slow: Callable[..., Any] | None = None,
    keep: Sequence[object] = (),
) -> Callable[..., Any]:
    """A callable for the native function at address `entry`.

    `release_gil`: worth 30 ns if the entry runs much longer. `tuple_result`: default, when there
    are several results. `disjoint`: decline when a writeable argument shares memory with another.
    `keep`: what must live as long as the callable, above all the Library of the entry.

    >>> f4 = np.dtype("f4")
    >>> double = make(library.address("double"), [Array(f4, (8,)), Array(f4, (8,), writeable=True)],
    ...               keep=[library])
    >>> double(x, out)
    """
    for result in results:
        if result.strides is not None or result.holder is not None:
            raise ValueError(f"{name}: results are new C-contiguous arrays, not {result}")
    if arena_size and arena is None:
        arena = Arena()
    call = Call(
        entry,
        tuple(arguments),
        tuple(results),
        name,
        release_gil,
        status,
        len(results) > 1 if tuple_result is None else tuple_result,
        disjoint,
        arena if arena_size else None,
        arena_size,
        slow,
        tuple(keep),
    )
    return _stand_in(call) if reason_for_fallback() else _native(call)


def reason_for_fallback() -> str:
    """Why callables are Python closures here; "" when they are native."""
    if os.environ.get("WENGERT_FASTCALL", "1") == "0":
        return "disabled by WENGERT_FASTCALL"
    return layout.trouble() or _self_test()


# Native callables


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Table(np.ndarray):
    """The words that native code reads, and the owner of what they point to."""

    keep: list[object]

    def __array_finalize__(self, source: Any) -> None:
        self.keep = []


@cache
def _library() -> jit.Library:
    here = Path(__file__).parent
    text = (here / "objects.ll").read_text() + (here / "fastcall.ll").read_text()
    text = string.Template(text).substitute(
        TYPE=layout.TYPE,
        DATA=layout.DATA,
        ND=layout.ND,
        DIMS=layout.DIMS,
        STRIDES=layout.STRIDES,
        DESCR=layout.DESCR,
        FLAGS=layout.FLAGS,
        FLOAT=layout.FLOAT,
        RELEASE_GIL=RELEASE_GIL,
        STATUS=STATUS,
        TUPLE=TUPLE,
        HOLD=HOLD,
    )
    return object_cache.build(
        text, ["wengert_call"], {**layout.imports(), **arena_code().addresses}, options=jit.LIGHT
    )


@cache
def _new_function() -> Callable[..., Any]:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        layout.python_function("PyCFunction_NewEx")
    )


def _native(call: Call) -> Callable[..., Any]:
    table = _table_of(call)
    table.keep.append(call)
    return function(call.name, _library(), "wengert_call", table)


def function(name: str, library: jit.Library, symbol: str, table: Table) -> Callable[..., Any]:
    """A built-in function whose code is `symbol` and whose `self` is a table of words."""
    method = _MethodDef(name.encode(), library.address(symbol), METH_FASTCALL, None)
    table.keep += [method, library]
    return _new_function()(ctypes.addressof(method), table, None)


def _table_of(call: Call) -> Table:
    keep: list[object] = []

    def words(values: Sequence[int]) -> int:
        array = np.array(values or [0], np.int64)
        keep.append(array)
        return array.ctypes.data

    flags = (
        RELEASE_GIL * call.release_gil
        | STATUS * call.status
        | TUPLE * call.tuple_result
        | HOLD * any(getattr(a, "holder", None) is not None for a in call.arguments)
    )
    pairs = call.pairs
    head = [
        len(call.arguments),
        len(call.results),
        call.entry,
        flags,
        call.arena.address if call.arena else 0,
        call.arena_size,
        id(call.slow) if call.slow else 0,
        len(pairs),
        words([i for pair in pairs for i in pair]),
    ]
    records = [
        word for expected in (*call.arguments, *call.results) for word in _record(expected, words)
    ]
    table = np.array(head + records, np.int64).view(Table)
    table.keep += keep
    return table


def _record(expected: Array | Float, words: Callable[[Sequence[int]], int]) -> list[int]:
    """The words of a %Record; the dtype is kept alive by the Call."""
    if isinstance(expected, Float):
        return [id(float), 0, 1, 0, 0, 0, 0, 0, 0, 0]
    flags = layout.ALIGNED
    flags |= layout.C_CONTIGUOUS * (expected.strides is None)
    flags |= layout.WRITEABLE * expected.writeable
    cls = expected.holder
    return [
        id(cls or np.ndarray),
        layout.slot_offset(cls, expected.slot) if cls else 0,
        0,
        id(expected.dtype),
        flags | len(expected.shape) << 32,
        words(expected.shape),
        0 if expected.strides is None else words(expected.strides),
        expected.alignment - 1,
        *expected.extent,
    ]


@cache
def _self_test() -> str:
    """Calls one callable with arrays that fit and that do not: the last word on the layout."""
    text = """
    define void @copy(ptr %pointers, ptr %arena) {
      %from = load ptr, ptr %pointers
      %to.p = getelementptr ptr, ptr %pointers, i64 1
      %to = load ptr, ptr %to.p
      %value = load double, ptr %from
      store double %value, ptr %to
      ret void
    }
    """
    try:
        library = object_cache.build(text, ["copy"], options=jit.LIGHT)
        double = Array(np.dtype(np.float64), (1,))
        copy = _native(
            Call(
                library.address("copy"),
                (double,),
                (double,),
                "copy",
                True,
                False,
                False,
                True,
                None,
                0,
                None,
                (library,),
            )
        )
        made = copy(np.array([2.5]))
        declined = [copy(), copy(2.5), copy(np.array(2.5)), copy(np.zeros(1, np.float32))]
        if made[0] == 2.5 and declined == [NotImplemented] * 4:
            return ""
        return f"the self-test gave {made!r} and {declined!r}"
    except Exception as error:  # whatever goes wrong, the stand-in works
        return f"the self-test failed: {error!r}"


# The stand-in


def _stand_in(call: Call) -> Callable[..., Any]:
    kind = ctypes.CFUNCTYPE if call.release_gil else ctypes.PYFUNCTYPE
    entry = kind(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(call.entry)
    extents = [getattr(expected, "extent", (0, 0)) for expected in call.arguments]
    overlaps = [(i, j, *extents[i], *extents[j]) for i, j in call.pairs]

    def function(*args: object) -> Any:
        # `values` holds floats' boxes and holders' arrays until the entry is done with them.
        values = _unpacked(call, args)
        addresses = [_address(value) for value in values or ()]
        if (
            values is None
            or not _fit(call, addresses)
            or any(
                addresses[i] + i0 < addresses[j] + j1 and addresses[j] + j0 < addresses[i] + i1
                for i, j, i0, i1, j0, j1 in overlaps
            )
        ):
            return call.slow(*args) if call.slow else NotImplemented
        made = [np.empty(result.shape, result.dtype) for result in call.results]
        addresses += map(_address, made)
        pointers = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        with call.arena.borrow(call.arena_size) if call.arena else nullcontext() as scratch:
            code = entry(ctypes.addressof(pointers), scratch)
        if call.status and code:
            return code
        if call.tuple_result:
            return tuple(made)
        return made[0] if made else None

    function.__name__ = call.name
    return function


def _unpacked(call: Call, args: tuple[object, ...]) -> list[Any] | None:
    """The arrays, and floats in boxes; None if one is not as expected."""
    if len(args) != len(call.arguments):
        return None
    found: list[Any] = []
    for expected, value in zip(call.arguments, args):
        if isinstance(expected, Float):
            if type(value) is not float:
                return None
            found.append(ctypes.c_double(value))
            continue
        if expected.holder is not None:
            if type(value) is not expected.holder:
                return None
            value = getattr(value, expected.slot, None)
        if type(value) is not np.ndarray or not _is(expected, value):
            return None
        found.append(value)
    return found


def _is(expected: Array, value: np.ndarray) -> bool:
    flags = value.flags
    return (
        value.dtype is expected.dtype
        and value.shape == expected.shape
        and flags.aligned
        and (flags.writeable or not expected.writeable)
        and (flags.c_contiguous if expected.strides is None else value.strides == expected.strides)
    )


def _fit(call: Call, addresses: list[int]) -> bool:
    return all(
        isinstance(expected, Float) or address % expected.alignment == 0
        for expected, address in zip(call.arguments, addresses)
    )


def _address(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.__array_interface__["data"][0]
    return ctypes.addressof(value)
