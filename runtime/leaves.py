"""What native code needs to go backward from a node to leaves in one call (leaves.ll).

`ToLeaves.words` is the list that native code reads, `FIELDS` says what is where: L_<name> in the
text. `to_leaves` makes the callable, of a node, the gradient given or None, and whether to keep the
graph. It answers True when all is done; anything unusual is handed to `slow`, and nothing has
happened then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import fastcall, layout
from .history import Eager

FIELDS = (
    "slow", "call", "before", "exposed", "freed", "held", "came", "numbers", "saved", "edges",
    "versions", "inputs_slot", "reference", "nothing", "none_came", "given", "came_after",
    "is_done", "saved_count", "input_count", "inputs", "array_count", "one", "seed_dtype",
    "tensor", "dtype", "array", "requires_grad", "grad", "view", "storage", "leaf", "accumulator",
    "variable", "extra", "hooks", "post_hooks", "version", "written", "freed_class", "freed_place",
    "readers", "announce", "note", "leaf_count", "leaves", "whence",
    "unmade", "unmade_class", "unmade_accumulator", "wanted", "kept_count",
)  # fmt: skip
PLACES = {f"L_{name}": place for place, name in enumerate(FIELDS)}
MOST_LEAVES = 64  # each is compared with the others
MOST_ADDED = 1 << 14  # elements: NumPy adds more without the GIL
DEPTH = 2  # frames: `at_once` and `backward`


@dataclass(frozen=True)
class Gradient:
    """One of the gradients: the number of its edge, the leaf's dtype, the type of its array."""

    edge: int
    dtype: object
    storage: np.dtype
    shape: tuple[int, ...]

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        """A %Leaf."""
        array = np.empty(self.shape, self.storage)
        native = self.storage in (np.dtype(np.float32), np.dtype(np.float64))
        added = native and array.ndim > 0 and array.size <= MOST_ADDED
        return [self.edge, id(self.dtype), listed(array.strides), id(self.storage),
                array.itemsize if added else 0, array.ndim, listed(array.shape),
                array.size]  # fmt: skip


@dataclass(frozen=True)
class ToLeaves:
    """Backward of one kind of node for the gradient of one result.

    `call`: a native callable of what was saved, the tensors in `inputs` and the gradient. `wanted`:
    the numbers of the tensors at its edges. `inputs`: those of the tensors that it is given again,
    whether their version is looked at, and their classes; arrays of the first ones, as many as
    `kept` says, are the last of what was saved. `one`: the gradient that is implied, or
    None. `came`: the numbers of the gradients that have come afterwards; `is_done`: nothing is left
    to go through. `untouched`: what a new node has in its slots `exposed` and `came`.
    """

    eager: Eager
    node: type
    call: Any
    saved: int
    wanted: Sequence[int]
    inputs: Sequence[tuple[int, bool, type]]
    kept: int
    one: Any
    seed_dtype: object
    gradients: Sequence[Gradient]
    given: tuple[int, ...]
    came: frozenset[int]
    is_done: bool
    untouched: tuple[object, object]
    freed: type
    announce: Any
    note: Any
    slow: Any
    last_code: list[Any] = field(default_factory=lambda: [None, None])  # see `Eager.place_words`

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        """See the module's text; `listed` puts words into memory."""
        place, eager = layout.slot_offset, self.eager
        slots = {
            self.node: ("before", "exposed", "freed", "held", "came", "numbers", "saved", "edges",
                        "versions", "reference", "unmade"),
            eager.leaf: ("hooks", "post_hooks"),
            eager.storage: ("version", "written"),
            eager.accumulator: ("variable", "extra"),
        }  # fmt: skip
        found = {name: place(cls, name) for cls, names in slots.items() for name in names}
        tensor = {"array": "_array", "storage": "_storage", "view": "_view", "leaf": "_leaf",
                  "dtype": "dtype", "requires_grad": "_requires_grad", "grad": "_grad"}  # fmt: skip
        found |= {name: place(eager.tensor, slot) for name, slot in tensor.items()}
        return [{**found, **self.facts(listed)}[name] for name in FIELDS]

    def facts(self, listed: Callable[[Sequence[int]], int]) -> dict[str, int]:
        place, eager = layout.slot_offset, self.eager
        again = [word for k, looked, cls in self.inputs for word in (k, int(looked), id(cls))]
        records = [word for gradient in self.gradients for word in gradient.words(listed)]
        return {
            "slow": id(self.slow),
            "call": id(self.call.__self__),
            "inputs_slot": place(self.node, "inputs"),
            "nothing": id(self.untouched[0]),
            "none_came": id(self.untouched[1]),
            "given": id(self.given),
            "came_after": id(self.came),
            "is_done": int(self.is_done),
            "saved_count": self.saved,
            "input_count": len(self.inputs),
            "inputs": listed(again),
            "kept_count": self.kept,
            "array_count": self.saved + len(self.inputs) - self.kept + 1,
            "one": 0 if self.one is None else id(self.one),
            "seed_dtype": id(self.seed_dtype),
            "tensor": id(eager.tensor),
            "accumulator": id(eager.accumulator),
            "unmade_class": id(eager.unmade),
            "unmade_accumulator": place(eager.unmade, "accumulator"),
            "wanted": listed([*self.wanted]),
            "freed_class": id(self.freed),
            "freed_place": place(self.freed, "place"),
            "readers": id(eager.readers),
            "announce": id(self.announce),
            "note": id(self.note),
            "leaf_count": len(self.gradients),
            "leaves": listed(records),
            "whence": listed(eager.place_words(DEPTH, self.last_code)),
        }


def to_leaves(way: ToLeaves) -> Any:
    """The callable; None where there can be none."""
    if fastcall.reason_for_fallback() or len(way.gradients) > MOST_LEAVES:
        return None
    return fastcall.listed_function("to_leaves", "wengert_to_leaves", way)
