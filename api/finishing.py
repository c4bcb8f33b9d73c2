"""Writes how a bound call ends: from what native code made to what the caller gets.

It is text for one trace, since most of a short call's time would go to loops over one or two
results, and to asking what kind each is.
"""

from __future__ import annotations

from typing import Any

from .compiled_node import NEW_SLOTS, CompiledFunctionBackward
from .eager_graph import EAGER
from .ir.places import user_place
from .runtime.history import History, Input
from .segments import Context
from .sources import Argument, Captured, Direct, Given, Plain
from .tracer.facts import LastEdges
from .unpacking import Writer, packing

NAMES = {"Context": Context, "Node": CompiledFunctionBackward, "user_place": user_place}


def native_history(split: Any, inputs: list[Input], linked: list[bool]) -> History:
    """As `Split.connect`, by native code."""
    given = {"states"} if split.function.generators else set()  # by the call
    slots = (*(s for s in NEW_SLOTS if s[0] not in given), ("split", split))
    watch = CompiledFunctionBackward.watch if split.watches else None
    return History(EAGER, CompiledFunctionBackward, slots, inputs, split.wanted, linked,
                   LastEdges(), watch, split.function.held, split.kept)  # fmt: skip


class Ending:
    """The lines after `made = call(...)`, and the expression that is the result.

    `made_at` says where results are among what was made; `taken` has named the arguments. The lines
    use NAMES.
    """

    def __init__(self, taken: Writer, made_at: dict[int, int], result_count: int):
        self.result_count = result_count
        self.constant, self.arguments = taken.constant, taken.leaves
        self.lines = [f"r{number} = made[{at}]" for number, at in made_at.items()]
        self.known = set(made_at)
        self.has_context = False
        self.result = "made"

    def is_native(self) -> bool:
        """Is nothing left to do in Python?"""
        return not self.lines and self.result == "made"

    def results(self) -> str:
        """All results, None for those that were put elsewhere."""
        texts = (f"r{k}" if k in self.known else "None" for k in range(self.result_count))
        return f"[{', '.join(texts)}]"

    def note_writes(self, storages: list[tuple[Any, int]], places: list[tuple[int, int]]) -> None:
        """Counts writes: of storages, of arguments."""
        if storages or places:
            self.lines.append("here = user_place()")
        if storages:
            listed = self.constant(storages)
            self.lines.append(f"for storage, count in {listed}: storage.note_write(here, count)")
        for place, count in places:
            self.lines.append(f"{self.arguments[place]}.storage_.note_write(here, {count})")

    def give_history(self, split: Any, sources: list[Any], saved: list[int]) -> None:
        """As `Split.connect`."""
        inputs = [self.source(source) for source in sources]
        kept = ", ".join(f"made[{k}]" for k in saved)
        self.lines.append(f"node = Node({self.constant(split)}, [{', '.join(inputs)}], [{kept}])")
        for number, position in enumerate(split.function.differentiable):
            r = f"r{position}"
            self.lines.append(f"{r}._node = node; {r}._nr = {number}; {r}._requires_grad = True")
        if split.watches:
            self.lines.append(f"node.watch({self.results()})")
        if split.function.generators:
            self.lines.append("node.states = states")

    def source(self, source: Any) -> str:
        """A tensor that the trace reads."""
        if isinstance(source, Argument):
            return self.arguments[source.place]
        if isinstance(source, Captured):
            return self.constant(source.tensor)
        return f"{self.constant(source)}({self.all_arguments()})"

    def all_arguments(self) -> str:
        return f"({''.join(f'{name}, ' for name in self.arguments)})"

    def set_grad(self, owner: Any, maker: Any) -> None:
        value = "None" if maker is None else self.value(maker)
        self.lines.append(f"{self.source(owner)}._grad = {value}")

    def set_flag(self, owner: Any, flag: bool) -> None:
        self.lines.append(f"{self.source(owner)}._requires_grad = {flag}")

    def value(self, maker: Any) -> str:
        """One leaf of the output."""
        if isinstance(maker, Direct) and maker.number in self.known:
            return f"r{maker.number}"
        if isinstance(maker, Plain):
            return self.constant(maker.value)
        if isinstance(maker, Given) and isinstance(maker.source, Argument):
            return self.source(maker.source)
        if not self.has_context:
            self.has_context = True
            self.lines.append(f"context = Context({self.all_arguments()}, {self.results()})")
        return f"{self.constant(maker)}(context)"

    def give(self, structure: Any, makers: list[Any]) -> None:
        leaves = [self.value(maker) for maker in makers]
        self.result = packing(structure, iter(leaves), self.constant)
