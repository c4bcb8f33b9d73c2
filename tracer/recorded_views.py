"""Views that a recorded body wrote.

Note [Written views]
    A view that was written shows the value that was put there. Its history is that of a new view of
    its base, to which the write belongs: gradients pass by its base, but not those of its base by
    it. Where nobody looks at results on the way (tracer/inner_results.py) both come to the same,
    and the value itself is shorter. So an `alias` of it is recorded, which may become one of the
    view.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..ir.bind import interpreting
from ..ir.builder import Symbol
from ..ir.graph import Node, Var
from .inplace import look
from .recorded import Entry


class WrittenViews:
    """The part of a recorder that knows them."""

    builder: Any
    emit: Any
    needing: set[Var]

    def __init__(self) -> None:
        super().__init__()
        self.written_views: list[tuple[int, int, Var]] = []  # their memory, alias, view of the base

    def view_of_memory(self, entry: Entry) -> Var:
        """What an entry shows of its memory as that is now."""
        known = len(self.builder.nodes)
        with interpreting(self.builder):
            var: Var = look(Symbol(entry.memory.var), entry.chain).var
        self.note_needing(known)
        return var

    def note_needing(self, first: int) -> None:
        """Of what was added to the graph since: what requires grad."""
        for node in self.builder.nodes[first:]:
            if not self.needing.isdisjoint(node.inputs):
                self.needing.update(node.outputs)

    def note_written_view(self, entry: Entry) -> None:
        """An entry was written with history."""
        seen = self.view_of_memory(entry)
        entry.var = self.emit("alias", entry.var)
        self.needing.add(entry.var)
        self.written_views.append((id(entry.memory), len(self.builder.nodes) - 1, seen))

    def with_views_of_bases(self, memories: set[int]) -> list[Node]:
        """The nodes, where views that were written in this memory are made of their bases."""
        nodes = list(self.builder.nodes)
        for memory, at, seen in self.written_views:
            if memory in memories:
                nodes[at] = replace(nodes[at], inputs=(seen,))
        return nodes
