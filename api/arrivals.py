"""The order in which eager's backward would come to the leaves behind a compiled node.

A compiled backward computes all gradients at once. Where leaves have hooks, these see which other
leaves have got theirs, and one that raises stops the rest: so leaves are served in eager's order,
which the recorded graph tells, for eager has a node for each of its ops.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from .ir.graph import Graph, Var
from .tracer.engine import Ready


class Stop:
    """A node, or an input, as far as the order goes: newer ones come first, inputs before all."""

    def __init__(self, sequence: int, position: int = -1):
        self.sequence, self.position = sequence, position
        self.edges: list[Stop] = []
        self.waiting = 0


def arrivals(graph: Graph, wanted: Sequence[int], given: Sequence[Var],
             silent: frozenset[int]) -> list[int]:  # fmt: skip
    """Positions in `wanted`, as gradients come there from the values in `given`.

    Those in `silent` have no hooks, and are served before others that are ready.
    """
    return [stop.position for stop in stops(graph, wanted, given, silent) if stop.position >= 0]


class Reads(NamedTuple):
    """The inputs of which values are made that eager has for nodes, when a leaf is served: for
    those to which it has not come, and for those through which it came there."""

    left: frozenset[int]
    on_the_way: frozenset[int]


def left_to_read(graph: Graph, wanted: Sequence[int], given: Sequence[Var],
                 silent: frozenset[int], position: int) -> Reads:  # fmt: skip
    """What is read when the leaf at that position is served."""
    nodes = [stop for stop in made_by(graph, wanted).values() if stop.position < 0]
    left = {stop.sequence for stop in nodes}
    for stop in stops(graph, wanted, given, silent):
        if stop.position == position:
            break
        left.discard(stop.sequence)
    leading = set(left)
    for stop in nodes:  # oldest first
        if any(target.sequence in leading for target in stop.edges):
            leading.add(stop.sequence)
    return Reads(made_of(graph, left), made_of(graph, leading - left))


def made_of(graph: Graph, numbers: Collection[int]) -> frozenset[int]:
    """The inputs that values are made of which these nodes have."""
    read: set[Var] = set()
    for number, node in reversed([*enumerate(graph.nodes)]) if numbers else ():
        if number in numbers or not read.isdisjoint(node.outputs):
            read.update(node.present())
    return frozenset(k for k, item in enumerate(graph.inputs) if item.var in read)


def stops(graph: Graph, wanted: Sequence[int], given: Sequence[Var],
          silent: frozenset[int]) -> Iterator[Stop]:  # fmt: skip
    """What eager's backward comes to, in order."""
    made = made_by(graph, wanted)
    roots = list(dict.fromkeys(made[var] for var in given if var in made))
    count(roots)
    ready = Ready()
    for root in roots:
        if root.waiting == 0:
            ready.push(root)  # type: ignore[arg-type]
    while ready.nodes:
        stop: Any = ready.pop()
        yield stop
        for target in stop.edges:
            target.waiting -= 1
            if target.waiting == 0 and target.position in silent:
                yield target
            elif target.waiting == 0:
                ready.push(target)  # type: ignore[arg-type]


def made_by(graph: Graph, wanted: Sequence[int]) -> dict[Var, Stop]:
    """The node or input that gradients of each value come to."""
    made = {graph.inputs[k].var: Stop(sys.maxsize, at) for at, k in enumerate(wanted)}
    for number, node in enumerate(graph.nodes):
        edges = [made[var] for var in node.present() if var in made]
        if edges and node.op.name != "stop_gradient":
            stop = Stop(number)
            stop.edges = edges
            made.update((var, stop) for var in node.outputs if var.dtype.is_differentiable)
    return made


def count(roots: list[Stop]) -> None:
    """How many edges lead to each."""
    seen, stack = set(roots), list(roots)
    while stack:
        for target in stack.pop().edges:
            target.waiting += 1
            if target not in seen:
                seen.add(target)
                stack.append(target)
