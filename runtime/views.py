"""What native code needs to make views of results and arguments (views.ll).

`View.words` is the list that native code reads, `FIELDS` says what is where: V_<name> in the text,
as N_<name> are places in the list of a Node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import layout
from .history import FIELDS as EAGER_FIELDS
from .history import Eager, Slots, slot_words

FIELDS = (
    "record", "offset", "array", "storage", "view", "view_class", "view_slots", "base", "seen",
    "version", "node_count", "nodes", "counter", "node", "mark", "marked", "facts", "slowly",
    "eager",
)  # fmt: skip
NODE_FIELDS = ("class", "slots", "edges", "place", "sequence", "shared", "out")
PLACES = {f"V_{name}": place for place, name in enumerate(FIELDS)}
PLACES |= {f"N_{name}": place for place, name in enumerate(NODE_FIELDS)}


@dataclass(frozen=True)
class Node:
    """A node of a view op: its class, what is in its slots but for edges, place and sequence; which
    of its results is looked at; `shared`: its number among those that several views have."""

    cls: type
    slots: Slots
    out: int
    shared: int = -1

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        offsets = [layout.slot_offset(self.cls, name) for name in ("edges", "place", "sequence")]
        return [id(self.cls), listed(slot_words(self.cls, self.slots)), *offsets, self.shared,
                id(self.out)]  # fmt: skip


@dataclass(frozen=True)
class View:
    """A view of a tensor: an Array in its holder, how many bytes from the tensor's memory on.

    `view`, with `view_slots`: the class that says how it is seen from its base, None where it is
    seen by itself. `marked`: it has the mark of its base. Where the base's slots are not as in
    `facts`, `slowly` is asked for the view.
    """

    eager: Eager
    array: Any
    offset: int
    view: type | None
    view_slots: Slots
    nodes: Sequence[Node]
    marked: bool
    facts: Slots
    slowly: Any

    def words(self, listed: Callable[[Sequence[int]], int],
              record: Callable[[Any], int]) -> list[int]:  # fmt: skip
        """See the module's text; `listed` puts words into memory, `record` an Array's."""
        eager, place = self.eager, layout.slot_offset
        known = eager.words(listed)
        found = {
            "record": record(self.array),
            "offset": self.offset,
            "version": place(eager.storage, "version"),
            "node_count": len(self.nodes),
            "nodes": listed([listed(node.words(listed)) for node in self.nodes]),
            "counter": id(eager.next_sequence.__self__),
            "marked": int(self.marked),
            "facts": listed(slot_words(eager.tensor, self.facts)),
            "slowly": id(self.slowly),
            "eager": listed([known.get(name, 0) for name in EAGER_FIELDS]),
        }
        if self.view is not None:
            found["view_class"] = id(self.view)
            found["view_slots"] = listed(slot_words(self.view, self.view_slots))
            found |= {name: place(self.view, name) for name in ("base", "seen")}
        tensor = {"array": "_array", "storage": "_storage", "view": "_view", "node": "_node",
                  "mark": "_mark"}  # fmt: skip
        found |= {name: place(eager.tensor, slot) for name, slot in tensor.items()}
        return [found.get(name, 0) for name in FIELDS]
