"""What native code needs to give results a node in the graph of eager (history.ll).

`History.words` is the list that native code reads, `FIELDS` says what is where: H_<name> in the
text, as P_<name> are places in `Eager.place_words`. Whatever it points to lives as long as the
History, which a Call keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from . import layout

FIELDS = (
    "class", "slots", "saved_slot", "inputs_slot", "versions_slot", "edges_slot", "sequence_slot",
    "place_slot", "states_slot", "reference", "input_count", "inputs", "wanted_count", "wanted",
    "links", "array", "storage", "node", "number", "view", "leaf", "accumulator", "version", "zero",
    "leaf_class", "leaf_slots", "variable", "counter", "history", "readers", "exposed",
    "forget", "watch", "zeros", "held_count", "held", "held_slot", "storage_class",
    "storage_slots", "root", "unmade", "unmade_class", "unmade_slots", "unmade_slot", "last",
    "last_slot", "kept_count", "kept",
)  # fmt: skip
PLACE_FIELDS = ("depth", "last", "at", "files", "co_filename", "f_lasti", "user_place")
PLACES = {f"H_{name}": place for place, name in enumerate(FIELDS)}
PLACES |= {f"P_{name}": place for place, name in enumerate(PLACE_FIELDS)}
_ZERO, _FILE, _LASTI = 0, "co_filename", "f_lasti"

NOWHERE = -2  # no instruction has this number

Slots = Sequence[tuple[str, object]]
STORAGE_SLOTS: Slots = (("version", _ZERO), ("written", None))  # of a new one, beside its root
UNMADE_SLOTS: Slots = (("accumulator", None),)


@dataclass(frozen=True)
class Eager:
    """The classes and functions of eager's graph, by what native code does with them."""

    tensor: type
    storage: type
    leaf: type
    accumulator: type
    accumulator_slots: Slots
    unmade: type  # stands for an accumulator that nobody asked for yet
    next_sequence: Any
    history: Any
    user_place: Any
    files: dict[str, bool]
    readers: set[Any]
    forget: Any  # removes from `readers`
    exposed: dict[int, Any]

    def place_words(self, depth: int, last: list[Any]) -> list[int]:
        """What native code needs to know where the user is, `depth` frames out or more; `last`, a
        list of two, has his code that was found last, and the last place."""
        return [depth, id(last), NOWHERE, *map(id, (self.files, _FILE, _LASTI, self.user_place))]

    def words(self, listed: Callable[[Sequence[int]], int]) -> dict[str, int]:
        """The words of a History that are the same for all: edges and storages are made of them."""
        place = layout.slot_offset
        found = {
            "storage_class": id(self.storage),
            "storage_slots": listed(slot_words(self.storage, STORAGE_SLOTS)),
            "root": place(self.storage, "root"),
            "version": place(self.storage, "version"),
            "accumulator": place(self.leaf, "accumulator"),
            "zero": id(_ZERO),
            "leaf_class": id(self.accumulator),
            "leaf_slots": listed(slot_words(self.accumulator, self.accumulator_slots)),
            "variable": place(self.accumulator, "variable"),
            "unmade": place(self.leaf, "unmade"),
            "unmade_class": id(self.unmade),
            "unmade_slots": listed(slot_words(self.unmade, UNMADE_SLOTS)),
            "counter": id(self.next_sequence.__self__),
            "history": id(self.history),
        }
        tensor = {"array": "_array", "storage": "_storage", "node": "_node", "number": "_nr",
                  "view": "_view", "leaf": "_leaf"}  # fmt: skip
        return found | {name: place(self.tensor, slot) for name, slot in tensor.items()}


@dataclass(frozen=True)
class Input:
    """A tensor that a call reads: the argument at a place, or this tensor.

    With `number`, an Array, it is a Python float: that argument, or what the double at an address,
    `cell`, says. A tensor like that is made of it.
    """

    place: int = -1
    tensor: Any = None
    cell: int = 0
    number: Any = None

    def words(self, record: Callable[[Any], int]) -> list[int]:
        """A place, or an object or an address; a record or null."""
        fixed = self.cell if self.tensor is None else id(self.tensor)
        return [self.place, fixed, 0 if self.number is None else record(self.number)]


@dataclass(frozen=True)
class History:
    """The node of one kind of call.

    `slots` are those of a new node that are always the same. `inputs`: the tensors that the call
    reads, each an Input. `linked`: which of the results have
    history. `last` has in its slot `edges` what stood for the edges of the last node. `watch`: what
    is called where backward will read memory again, else None, and somebody could write without a
    word. `held`: results that it will read. `kept`: inputs whose arrays are saved, too.
    """

    eager: Eager
    node: type
    slots: Slots
    inputs: Sequence[Input]
    wanted: Sequence[int]
    linked: Sequence[bool]
    last: Any
    watch: Any = None
    held: Sequence[int] = ()
    kept: Sequence[int] = ()

    def words(self, listed: Callable[[Sequence[int]], int],
              record: Callable[[Any], int]) -> list[int]:  # fmt: skip
        """See the module's text; `listed` puts words into memory, `record` an Array's."""
        eager = self.eager
        place = layout.slot_offset
        found = eager.words(listed) | {
            "class": id(self.node),
            "slots": listed(slot_words(self.node, self.slots)),
            "reference": place(self.node, "reference"),
            "input_count": len(self.inputs),
            "zeros": id(_zeros(len(self.inputs))),
            "inputs": listed([word for x in self.inputs for word in x.words(record)]),
            "wanted_count": len(self.wanted),
            "wanted": listed([*self.wanted]),
            "links": listed([place(eager.tensor, "_node") * linked for linked in self.linked]),
            "readers": 0 if self.watch is None else id(eager.readers),
            "held_count": len(self.held),
            "held": listed([*self.held]),
            "held_slot": place(self.node, "held"),
            "exposed": id(eager.exposed),
            "forget": id(eager.forget),
            "last": id(self.last),
            "last_slot": place(type(self.last), "edges"),
            "watch": id(self.watch),
            "kept_count": len(self.kept),
            "kept": listed([*self.kept]),
        }
        for name in ("saved", "inputs", "versions", "edges", "unmade", "sequence", "place",
                     "states"):  # fmt: skip
            found[f"{name}_slot"] = place(self.node, name)
        return [found[name] for name in FIELDS]


@cache
def _zeros(count: int) -> tuple[int, ...]:
    """The versions of tensors that were never written."""
    return (_ZERO,) * count


# Where a frame is; Python 3.10 has no function for it.
LAST_INSTRUCTION = """
declare i32 @PyFrame_GetLasti(ptr)
define internal i64 @last_instruction(ptr %p, ptr %frame) {
  %at = call i32 @PyFrame_GetLasti(ptr %frame)
  %wide = sext i32 %at to i64
  ret i64 %wide
}
""" if layout.TELLS_INSTRUCTION else """
define internal i64 @last_instruction(ptr %p, ptr %frame) {
  %name = call ptr @word(ptr %p, i64 ${P_f_lasti})
  %at = call ptr @PyObject_GetAttr(ptr %frame, ptr %name)
  %wide = call i64 @PyLong_AsLongLong(ptr %at)
  call void @Py_DecRef(ptr %at)
  ret i64 %wide
}
"""  # fmt: skip


def slot_words(cls: type, slots: Slots) -> list[int]:
    """A count, then offsets and objects, as native code reads them."""
    pairs = [(layout.slot_offset(cls, slot), id(value)) for slot, value in slots]
    return [len(pairs), *(word for pair in pairs for word in pair)]
