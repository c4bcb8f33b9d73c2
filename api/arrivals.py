"""The order in which eager's backward would come to the leaves behind a compiled node.

A compiled backward computes all gradients at once. Where leaves have hooks, these see which other
leaves have got theirs, and one that raises stops the rest: so leaves are served in eager's order,
which the recorded graph tells, for eager has a node for each of its ops.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .ir.graph import RESULT, Graph
from .tracer.engine import Ready


class Stop:
    """A node, or an input, as far as the order goes: newer ones come first, inputs before all."""

    def __init__(self, sequence: int, position: int = -1):
        self.sequence, self.position = sequence, position
        self.edges: list[Stop] = []
        self.waiting = 0


def arrivals(graph: Graph, wanted: Sequence[int], given: Sequence[int],
             silent: frozenset[int]) -> list[int]:  # fmt: skip
    """Positions in `wanted`, as gradients come there from the results in `given`.

    Those in `silent` have no hooks, and are served before others that are ready.
    """
    made = {graph.inputs[k].var: Stop(sys.maxsize, at) for at, k in enumerate(wanted)}
    for number, node in enumerate(graph.nodes):
        edges = [made[var] for var in node.present() if var in made]
        if edges and node.op.name != "stop_gradient":
            stop = Stop(number)
            stop.edges = edges
            made.update((var, stop) for var in node.outputs if var.dtype.is_differentiable)
    results = [o.var for o in graph.outputs if o.kind == RESULT]
    roots = list(dict.fromkeys(made[results[k]] for k in given if results[k] in made))
    count(roots)
    ready, order = Ready(), []
    for root in roots:
        if root.waiting == 0:
            ready.push(root)  # type: ignore[arg-type]
    while ready.nodes:
        stop: Any = ready.pop()
        if stop.position >= 0:
            order.append(stop.position)
        for target in stop.edges:
            target.waiting -= 1
            if target.waiting == 0 and target.position in silent:
                order.append(target.position)
            elif target.waiting == 0:
                ready.push(target)  # type: ignore[arg-type]
    return order


def count(roots: list[Stop]) -> None:
    """How many edges lead to each."""
    seen, stack = set(roots), list(roots)
    while stack:
        for target in stack.pop().edges:
            target.waiting += 1
            if target not in seen:
                seen.add(target)
                stack.append(target)
