"""A pickle reader that builds data and nothing else.

It reads the opcodes that plain containers, numbers, strings and tensors need, and calls only what
the caller allows. Every other opcode, name or call is refused, so a hostile file can't run code or
change objects of this process: `BUILD` sets attributes of ordered dictionaries and of instances the
caller made, never of functions, classes or shared objects.
"""

from __future__ import annotations

import pickle
import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

UnpicklingError = pickle.UnpicklingError


def _utf8(data: bytes) -> str:
    return str(data, "utf-8", "surrogatepass")


class DataUnpickler:
    """Reads one pickle from bytes. `find(module, name)` gives what may be called."""

    def __init__(
        self,
        data: bytes,
        find: Callable[[str, str], Any],
        persistent_load: Callable[[Any], Any],
        buildable: tuple[type, ...] = (),
    ) -> None:
        self.data, self.place = data, 0
        self.find, self.persistent_load = find, persistent_load
        self.buildable = (OrderedDict, Counter, *buildable)
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.callables: set[int] = set()

    def load(self) -> Any:
        """The object the pickle describes."""
        try:
            while True:
                code = self.take(1)
                if code == b".":
                    return self.stack.pop()
                action = OPCODES.get(code)
                if action is None:
                    raise UnpicklingError(f"opcode {code!r} is not one that data needs")
                action(self)
        except (LookupError, struct.error, ValueError, TypeError, RecursionError) as error:
            raise UnpicklingError(
                f"the pickle is damaged at byte {self.place}: {type(error).__name__}: {error}"
            ) from None

    def take(self, count: int) -> bytes:
        piece = self.data[self.place : self.place + count]
        if len(piece) != count or count < 0:
            raise UnpicklingError(f"the pickle ends early, at byte {len(self.data)}")
        self.place += count
        return piece

    def line(self) -> str:
        end = self.data.find(b"\n", self.place)
        if end < 0:
            raise UnpicklingError(f"the pickle ends early, at byte {len(self.data)}")
        text = self.data[self.place : end]
        self.place = end + 1
        return _utf8(text)

    def number(self, form: str) -> int:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def counted(self, form: str) -> bytes:
        return self.take(self.number(form))

    def to_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    # --- names and calls ---

    def push_global(self, module: str, name: str) -> None:
        found = self.find(module, name)
        self.callables.add(id(found))
        self.stack.append(found)

    def stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            raise UnpicklingError("a name in the pickle is not text")
        self.push_global(module, name)

    def call(self) -> None:
        arguments, function = self.stack.pop(), self.stack[-1]
        if id(function) not in self.callables or not callable(function):
            raise UnpicklingError(f"a call of {function!r} is refused")
        if not isinstance(arguments, tuple):
            raise UnpicklingError("the arguments of a call are not a tuple")
        self.stack[-1] = function(*arguments)

    def new_object(self) -> None:
        arguments, cls = self.stack.pop(), self.stack[-1]
        if id(cls) not in self.callables or not isinstance(cls, type):
            raise UnpicklingError(f"making an object of {cls!r} is refused")
        if cls in (OrderedDict, Counter, set, bytearray) or not hasattr(cls, "__new__"):
            self.stack[-1] = cls(*arguments)
        else:
            self.stack[-1] = cls.__new__(cls, *arguments)

    def build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if not isinstance(target, self.buildable) or isinstance(target, type):
            raise UnpicklingError(f"setting attributes of a {type(target).__name__} is refused")
        if hasattr(type(target), "__setstate__"):
            target.__setstate__(state)
        elif isinstance(state, dict) and all(isinstance(key, str) for key in state):
            target.__dict__.update(state)
        else:
            raise UnpicklingError(f"the state of a {type(target).__name__} is not a dictionary")

    # --- containers ---

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"can't append to a {type(target).__name__}")
        target.extend(items)

    def add_items(self) -> None:
        items = self.to_mark()
        target = self.stack[-1]
        if type(target) is not set:
            raise UnpicklingError(f"can't add to a {type(target).__name__}")
        target.update(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, dict):
            raise UnpicklingError(f"can't set items of a {type(target).__name__}")
        for k in range(0, len(items), 2):
            target[items[k]] = items[k + 1]

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def tuple_of(self, count: int) -> None:
        values = tuple(self.stack[len(self.stack) - count :])
        if len(values) != count:
            raise UnpicklingError("a tuple in the pickle has too few items")
        del self.stack[len(self.stack) - count :]
        self.stack.append(values)

    def push_tuple(self) -> None:
        items = self.to_mark()
        self.stack.append(tuple(items))

    def push_frozenset(self) -> None:
        items = self.to_mark()
        self.stack.append(frozenset(items))

    def pair(self) -> list[Any]:
        value, key = self.stack.pop(), self.stack.pop()
        return [key, value]

    def pop(self) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.to_mark()


def _push(make: Callable[[DataUnpickler], Any]) -> Callable[[DataUnpickler], None]:
    return lambda reader: reader.stack.append(make(reader))


def _remember(make: Callable[[DataUnpickler], int]) -> Callable[[DataUnpickler], None]:
    return lambda reader: reader.memo.__setitem__(make(reader), reader.stack[-1])


OPCODES: dict[bytes, Callable[[DataUnpickler], Any]] = {
    b"\x80": lambda r: r.take(1),  # PROTO
    b"\x95": lambda r: r.take(8),  # FRAME
    b"(": lambda r: r.mark(),
    b"0": lambda r: r.pop(),
    b"1": lambda r: r.to_mark(),
    b"N": _push(lambda r: None),
    b"\x88": _push(lambda r: True),
    b"\x89": _push(lambda r: False),
    b"J": _push(lambda r: r.number("<i")),
    b"K": _push(lambda r: r.number("<B")),
    b"M": _push(lambda r: r.number("<H")),
    b"\x8a": _push(lambda r: int.from_bytes(r.counted("<B"), "little", signed=True)),
    b"G": _push(lambda r: r.number(">d")),
    b"X": _push(lambda r: _utf8(r.counted("<I"))),
    b"\x8c": _push(lambda r: _utf8(r.counted("<B"))),
    b"\x8d": _push(lambda r: _utf8(r.counted("<Q"))),
    b"B": _push(lambda r: r.counted("<I")),
    b"C": _push(lambda r: r.counted("<B")),
    b"\x8e": _push(lambda r: r.counted("<Q")),
    b"U": _push(lambda r: r.counted("<B").decode("latin-1")),  # SHORT_BINSTRING of Python 2
    b"}": _push(lambda r: {}),
    b"]": _push(lambda r: []),
    b")": _push(lambda r: ()),
    b"\x8f": _push(lambda r: set()),
    b"\x85": lambda r: r.tuple_of(1),
    b"\x86": lambda r: r.tuple_of(2),
    b"\x87": lambda r: r.tuple_of(3),
    b"t": lambda r: r.push_tuple(),
    b"a": lambda r: r.append([r.stack.pop()]),
    b"e": lambda r: r.append(r.to_mark()),
    b"s": lambda r: r.set_items(r.pair()),
    b"u": lambda r: r.set_items(r.to_mark()),
    b"\x90": lambda r: r.add_items(),
    b"\x91": lambda r: r.push_frozenset(),
    b"q": _remember(lambda r: r.number("<B")),
    b"r": _remember(lambda r: r.number("<I")),
    b"\x94": _remember(lambda r: len(r.memo)),
    b"h": _push(lambda r: r.memo[r.number("<B")]),
    b"j": _push(lambda r: r.memo[r.number("<I")]),
    b"c": lambda r: r.push_global(r.line(), r.line()),
    b"\x93": lambda r: r.stack_global(),
    b"R": lambda r: r.call(),
    b"\x81": lambda r: r.new_object(),
    b"b": lambda r: r.build(),
    b"Q": _push(lambda r: r.persistent_load(r.stack.pop())),
}
