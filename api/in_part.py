"""Backwards that come to a part only of what a compiled node stands for.

Note [Freed in part]
    A backward that does not retain the graph frees the ops that it comes to. It may not come to
    all: a hook of a leaf raises, or gradients of some inputs only were asked for. The others can
    still be gone through, so the node keeps what it was given, and how far backward came. It goes
    on by its ops from then on (Note [Errors in backward]), of which those are freed. Where a hook
    that ran before another raised has written what the node was given, all is freed: else a copy of
    each parameter would have to be kept for optimizers that step in hooks.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .tracer.engine import Ready
from .tracer.reaching import count_dependencies


class Part:
    """How far a backward came.

    `needed` are the edges that it was to take, None where nobody asked for some; `is_all` says that
    these are all. `last` is the edge to a leaf whose hook raised.
    """

    __slots__ = ("is_all", "kept", "last", "needed", "numbers", "versions")

    def __init__(self, node: Any, needed: Collection[int] | None, is_all: bool):
        self.needed, self.numbers, self.last = needed, node.numbers, None
        self.is_all = is_all
        self.kept: Any = (node.inputs, node.held, node.before, node.spent)
        self.versions = self.versions_now(node)

    def versions_now(self, node: Any) -> list[int]:
        """Of the inputs that eager's saved values are made of."""
        read = node.split.as_eager.read_inputs
        return [0 if t._storage is None else t._storage.version
                for k, t in enumerate(self.kept[0]) if k in read]  # fmt: skip

    def settle(self, node: Any) -> None:
        """No hook will run: the node takes back what its next backward needs, if one can be."""
        if not self.is_all and self.versions == self.versions_now(node):
            node.inputs, node.held, node.before, node.spent = self.kept
            node.expansion = self
            node.watch_inputs()
        self.kept = None

    def stop(self, node: Any, last: int) -> None:
        """A hook raised while the leaf of that edge was served."""
        self.last, self.is_all = last, False
        self.settle(node)

    def free(self, node: Any, edges: list[Any]) -> None:
        """Frees the ops that backward came to; `edges` lead to them from the results."""
        for inner in self.reached(node.edges, [edges[k] for k in self.numbers]):
            inner.release(node.freed)

    def reached(self, outside: Any, roots: list[Any]) -> list[Any]:
        """The nodes between `roots` and `outside` that the engine would have run."""
        ends = {edge[0] for edge in outside if edge is not None}
        waiting = count_dependencies(list(dict.fromkeys(roots)), ends)
        goals = self.goals(outside, ends, waiting)
        last = None if self.last is None else outside[self.last][0]
        ready, found = Ready(), []
        for node in dict.fromkeys(root for root, _ in roots):
            if waiting[node] == 0 and node in goals:
                ready.push(node)
        while ready.nodes:
            node = ready.pop()
            if node is last:
                break
            if node in ends:
                continue
            found.append(node)
            for edge in node.edges:
                if edge is not None:
                    waiting[edge[0]] -= 1
                    if waiting[edge[0]] == 0 and edge[0] in goals:
                        ready.push(edge[0])
        return found

    def goals(self, outside: Any, ends: set[Any], nodes: Any) -> set[Any]:
        """Those of `nodes` from which backward was to come to an edge that is needed."""
        if self.needed is None:
            return set(nodes)
        found = {outside[k][0] for k in self.needed}
        for node in sorted(set(nodes) - ends, key=lambda node: node.sequence):  # oldest first
            if any(edge is not None and edge[0] in found for edge in node.edges):
                found.add(node)
        return found
