"""What native code needs to give results a node in the graph of eager (history.ll).

`History.words` is the list that native code reads, `FIELDS` says what is where: H_<name> in the
text, as P_<name> are places in `Eager.place_words`. Whatever it points to lives as long as the
History, which a Call keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import layout

FIELDS = (
    "class", "slots", "saved_slot", "inputs_slot", "versions_slot", "edges_slot", "sequence_slot",
    "place_slot", "states_slot", "reference", "input_count", "inputs", "wanted_count", "wanted",
    "links", "array", "storage", "node", "number", "view", "leaf", "accumulator", "version", "zero",
    "leaf_class", "leaf_slots", "variable", "counter", "history", "readers", "holds", "exposed",
    "forget", "watch",
)  # fmt: skip
PLACE_FIELDS = ("depth", "last", "files", "co_filename", "f_lasti", "user_place")
PLACES = {f"H_{name}": place for place, name in enumerate(FIELDS)}
PLACES |= {f"P_{name}": place for place, name in enumerate(PLACE_FIELDS)}
_ZERO, _FILE, _AT = 0, "co_filename", "f_lasti"

Slots = Sequence[tuple[str, object]]


@dataclass(frozen=True)
class Eager:
    """The classes and functions of eager's graph, by what native code does with them."""

    tensor: type
    storage: type
    leaf: type
    accumulator: type
    accumulator_slots: Slots
    next_sequence: Any
    history: Any
    user_place: Any
    files: dict[str, bool]
    readers: set[Any]
    forget: Any  # removes from `readers`
    exposed: dict[int, Any]

    def place_words(self, depth: int, last: list[Any]) -> list[int]:
        """What native code needs to know where the user is, `depth` frames out or more; `last`, a
        list of one, has his code that was found last."""
        return [depth, *map(id, (last, self.files, _FILE, _AT, self.user_place))]


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
    history. `watch`: what is called where backward will read memory again, else None; `holds`:
    always, else only where somebody could write without a word.
    """

    eager: Eager
    node: type
    slots: Slots
    inputs: Sequence[Input]
    wanted: Sequence[int]
    linked: Sequence[bool]
    watch: Any = None
    holds: bool = False

    def words(self, listed: Callable[[Sequence[int]], int],
              record: Callable[[Any], int]) -> list[int]:  # fmt: skip
        """See the module's text; `listed` puts words into memory, `record` an Array's."""
        eager = self.eager
        place = layout.slot_offset
        found = {
            "class": id(self.node),
            "slots": listed(slot_words(self.node, self.slots)),
            "reference": place(self.node, "reference"),
            "input_count": len(self.inputs),
            "inputs": listed([word for x in self.inputs for word in x.words(record)]),
            "wanted_count": len(self.wanted),
            "wanted": listed([*self.wanted]),
            "links": listed([place(eager.tensor, "_node") * linked for linked in self.linked]),
            "version": place(eager.storage, "version"),
            "accumulator": place(eager.leaf, "accumulator"),
            "zero": id(_ZERO),
            "leaf_class": id(eager.accumulator),
            "leaf_slots": listed(slot_words(eager.accumulator, eager.accumulator_slots)),
            "variable": place(eager.accumulator, "variable"),
            "counter": id(eager.next_sequence.__self__),
            "history": id(eager.history),
            "readers": 0 if self.watch is None else id(eager.readers),
            "holds": int(self.holds),
            "exposed": id(eager.exposed),
            "forget": id(eager.forget),
            "watch": id(self.watch),
        }
        for name in ("saved", "inputs", "versions", "edges", "sequence", "place", "states"):
            found[f"{name}_slot"] = place(self.node, name)
        tensor = {"array": "_array", "storage": "_storage", "node": "_node", "number": "_nr",
                  "view": "_view", "leaf": "_leaf"}  # fmt: skip
        found |= {name: place(eager.tensor, slot) for name, slot in tensor.items()}
        return [found[name] for name in FIELDS]


def slot_words(cls: type, slots: Slots) -> list[int]:
    """A count, then offsets and objects, as native code reads them."""
    pairs = [(layout.slot_offset(cls, slot), id(value)) for slot, value in slots]
    return [len(pairs), *(word for pair in pairs for word in pair)]
