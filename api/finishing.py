"""Writes the function that ends a bound call: from what native code made to what the caller gets.

It is text for one trace, since most of a short call's time would go to loops over one or two
results, and to asking what kind each is.
"""

from __future__ import annotations

from typing import Any

from .compiled_node import CompiledFunctionBackward
from .ir.texts import function_of
from .segments import Context
from .sources import Argument, Captured, Direct, Given, Plain
from .unpacking import packing


class Ending:
    """The lines of `finish(args, made)`; `made_at` says where results are among what was made."""

    def __init__(self, made_at: dict[int, int], result_count: int):
        self.result_count = result_count
        self.space: dict[str, Any] = {"Context": Context, "Node": CompiledFunctionBackward}
        self.lines = [f"r{number} = made[{at}]" for number, at in made_at.items()]
        self.known = set(made_at)
        self.has_context = False

    def constant(self, value: Any) -> str:
        name = f"c{len(self.space)}"
        self.space[name] = value
        return name

    def results(self) -> str:
        """All results, None for those that were put elsewhere."""
        texts = (f"r{k}" if k in self.known else "None" for k in range(self.result_count))
        return f"[{', '.join(texts)}]"

    def note_writes(self, note: Any) -> None:
        self.lines.insert(0, f"{self.constant(note)}(args)")

    def give_history(self, split: Any, sources: list[Any], saved: list[int]) -> None:
        """As `Split.connect`."""
        inputs = ", ".join(map(self.source, sources))
        kept = ", ".join(f"made[{k}]" for k in saved)
        self.lines.append(f"node = Node({self.constant(split)}, [{inputs}], [{kept}])")
        for number, position in enumerate(split.function.differentiable):
            r = f"r{position}"
            self.lines.append(f"{r}._node = node; {r}._nr = {number}; {r}._requires_grad = True")
        if split.rereads:
            self.lines.append(f"node.watch({self.results()})")

    def source(self, source: Any) -> str:
        """A tensor that the trace reads."""
        if isinstance(source, Argument):
            return f"args[{source.place}]"
        if isinstance(source, Captured):
            return self.constant(source.tensor)
        return f"{self.constant(source)}(args)"

    def set_grad(self, owner: Any, maker: Any) -> None:
        value = "None" if maker is None else self.value(maker)
        self.lines.append(f"{self.source(owner)}._grad = {value}")

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
            self.lines.append(f"context = Context(args, {self.results()})")
        return f"{self.constant(maker)}(context)"

    def function(self, structure: Any, makers: list[Any]) -> Any:
        leaves = [self.value(maker) for maker in makers]
        self.lines.append(f"return {packing(structure, iter(leaves), self.constant)}")
        text = "\n    ".join(["def finish(args, made):", *self.lines])
        return function_of(text, "<wengert finish>", self.space)
