"""What native code needs to do what a call does beside running (effects.ll).

`Effects.words` is the list that native code reads, `FIELDS` says what is where: E_<name> in the
text. `Answer` says how what was made becomes the answer, `States` what is kept before. Whatever
they point to lives as long as they do, which a Call keeps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import layout
from .history import Eager, Slots, slot_words
from .views import View

FIELDS = (
    "storage", "make_storage", "write_count", "writes", "version", "written", "gradient_count",
    "gradients", "gradient", "spent_count", "spent", "class", "given_slot", "counter",
    "sequence_slot", "place_slot", "node", "version_count", "versions", "storage_class", "root",
    "array",
)  # fmt: skip
PLACES = {f"E_{name}": place for place, name in enumerate(FIELDS)}
STEPS = {"A_MADE": 0, "AN_ARGUMENT": 1, "A_CONSTANT": 2, "A_TUPLE": 3, "A_LIST": 4, "A_DICT": 5,
         "AN_ANSWER": 6, "A_VIEW": 7, "AN_OBJECT_OF": 8}  # fmt: skip
_storage_of = operator.attrgetter("storage_")


@dataclass(frozen=True)
class Spent:
    """A result whose backward ran: where it is among what was made, what is in the slots of its
    node, and which arguments are in the slot `given`."""

    at: int
    slots: Slots
    given: Sequence[int]

    def words(self, node: type, listed: Callable[[Sequence[int]], int]) -> list[int]:
        """As native code reads them."""
        slots = tuple(slot for slot in self.slots if slot[0] != "given" or not self.given)
        return [self.at, listed(slot_words(node, slots)), len(self.given), listed([*self.given])]


@dataclass(frozen=True)
class Effects:
    """What happens after a call of one kind.

    `writes`: the number of an argument or -1, else a storage, and how often it was written.
    `gradients`: tensors whose `.grad` is set, and to which of what was made, or None. `spent`:
    those of what was made that get a node of class `node`.
    `versions`: those that get a storage with these slots, beside its root.
    """

    eager: Eager
    writes: Sequence[tuple[int, Any, int]] = ()
    gradients: Sequence[tuple[Any, int | None]] = ()
    spent: Sequence[Spent] = ()
    node: type | None = None
    versions: Sequence[tuple[int, Slots]] = ()

    def __bool__(self) -> bool:
        return bool(self.writes or self.gradients or self.spent or self.versions)

    @property
    def is_located(self) -> bool:
        """Does it matter where the user is?"""
        return bool(self.writes or self.spent)

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        """See the module's text; `listed` puts words into memory."""
        eager, place = self.eager, layout.slot_offset
        found = {
            "storage": place(eager.tensor, "_storage"),
            "make_storage": id(_storage_of),
            "write_count": len(self.writes),
            "writes": listed([word for at, storage, times in self.writes
                              for word in (at, id(storage), times)]),
            "version": place(eager.storage, "version"),
            "written": place(eager.storage, "written"),
            "gradient_count": len(self.gradients),
            "gradients": listed([word for owner, at in self.gradients
                                 for word in (id(owner), -1 if at is None else at)]),
            "gradient": place(eager.tensor, "_grad"),
            "spent_count": len(self.spent),
            "spent": 0,
            "class": 0,
            "given_slot": 0,
            "counter": id(eager.next_sequence.__self__),
            "sequence_slot": 0,
            "place_slot": 0,
            "node": place(eager.tensor, "_node"),
            "version_count": len(self.versions),
            "versions": listed([word for at, slots in self.versions
                                for word in (at, listed(slot_words(eager.storage, slots)))]),
            "storage_class": id(eager.storage),
            "root": place(eager.storage, "root"),
            "array": place(eager.tensor, "_array"),
        }  # fmt: skip
        if self.node is not None:
            found["class"] = id(self.node)
            found["spent"] = listed([word for spent in self.spent
                                     for word in spent.words(self.node, listed)])  # fmt: skip
            for name in ("sequence", "place", "given"):
                found[f"{name}_slot"] = place(self.node, name)
        return [found[name] for name in FIELDS]


@dataclass
class Answer:
    """How an answer is put together: steps that push something, or make one of the last few."""

    steps: list[tuple[int, int, Any]] = field(default_factory=list)
    depth: int = 0
    deepest: int = 0
    shared: dict[Any, int] = field(default_factory=dict)  # nodes that several views have
    eager: Eager | None = None  # where nodes are made

    def made(self, at: int) -> None:
        """One of what the call made."""
        self.push("A_MADE", at)

    def argument(self, at: int) -> None:
        """One of the arguments."""
        self.push("AN_ARGUMENT", at)

    def constant(self, value: Any) -> None:
        """Always the same."""
        self.push("A_CONSTANT", 0, value)

    def view(self, view: View) -> None:
        """A view of the last."""
        self.steps.append((STEPS["A_VIEW"], 1, view))
        if view.nodes:
            self.eager = view.eager

    def push(self, kind: str, at: int, value: Any = None) -> None:
        self.steps.append((STEPS[kind], at, value))
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)

    def join(self, kind: type, count: int, keys: Sequence[Any] = ()) -> None:
        """A tuple, list, or dict with these keys."""
        self.steps.append((STEPS[{tuple: "A_TUPLE", list: "A_LIST", dict: "A_DICT"}[kind]], count,
                           keys))  # fmt: skip
        self.depth += 1 - count
        self.deepest = max(self.deepest, self.depth)

    def fields(self, kind: type, names: Sequence[str]) -> None:
        """An object of a class that has the last few as attributes, nothing else being done."""
        self.steps.append((STEPS["AN_OBJECT_OF"], len(names), (kind.__new__, kind, *names)))
        self.depth += 1 - len(names)
        self.deepest = max(self.deepest, self.depth)

    def ask(self, function: Any, count: int) -> None:
        """What a function says to the last few."""
        self.steps.append((STEPS["AN_ANSWER"], count, function))
        self.depth += 1 - count
        self.deepest = max(self.deepest, self.depth)

    def words(self, listed: Callable[[Sequence[int]], int],
              record: Callable[[Any], int]) -> list[int]:  # fmt: skip
        """The depth of the stack, how many nodes are shared, how many steps, and each in three
        words; `record` puts the words of an Array into memory."""
        words = [self.deepest, len(self.shared), len(self.steps)]
        for kind, at, value in self.steps:
            word = id(value)
            if kind in (STEPS["A_DICT"], STEPS["AN_OBJECT_OF"]):
                word = listed([*map(id, value)])
            elif kind == STEPS["A_VIEW"]:
                word = listed(value.words(listed, record))
            words += [kind, at, word]
        return words


@dataclass(frozen=True)
class States:
    """The states of generators, kept before they are drawn from.

    Each is a tuple of class `kind`: a copy of the array in the first of `slots`, which may be an
    older one, the 32-bit word behind its blocks of 64 bytes, then what is in the other slots. Where
    there is no array, `snapshot`, a method of the generator, is called.
    """

    generators: Sequence[Any]
    kind: type
    slots: Sequence[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "slowly", [g.snapshot for g in self.generators])
        object.__setattr__(self, "last", [None for _ in self.generators])

    def words(self, listed: Callable[[Sequence[int]], int]) -> list[int]:
        """See `snapshots` in effects.ll."""
        offsets = [layout.slot_offset(type(self.generators[0]), slot) for slot in self.slots]
        pairs = zip(self.generators, self.slowly)  # type: ignore[attr-defined]
        last = id(self.last)  # type: ignore[attr-defined]
        memory = getattr(self.generators[0], self.slots[0])  # of all, one row of words
        size = 0 if memory is None else memory.nbytes
        assert size == 0 or size % 64 == 4
        return [listed([id(self.kind), size, len(offsets), *offsets]), len(self.generators),
                last, *(id(x) for pair in pairs for x in pair)]  # fmt: skip
