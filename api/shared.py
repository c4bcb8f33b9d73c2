"""Results of one call that share a part of their history.

Note [Shared histories]
    A backward that does not retain the graph frees what the nodes that it comes to keep. Backward
    from another result raises when it comes to one of those, and not before: it may have come to
    leaves by then. As newer nodes come first, the recorded graph tells to which. Where it is with
    values that nodes keep which are not freed, a compiled node stays able to make them again
    (Note [Errors in backward]): it has the inputs that they are made of, copied before writes.
    Where it is not, it lets go of all that it has, as it does when all results went backward.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .arrivals import Stop, made_by
from .ir.graph import Graph, Node, Var
from .ir.op import saved_keys


class Shared:
    """What is left of the history behind results when gradients of some have come.

    Sets of nodes of the graph are bits of a number.
    """

    def __init__(self, graph: Graph, wanted: Sequence[int], results: Sequence[Var], customs: Any):
        self.graph = graph
        self.every = frozenset(range(len(graph.inputs)))
        made = made_by(graph, wanted)
        keeping = sum(1 << k for k, node in enumerate(graph.nodes) if keeps(node, made, customs))
        walks = [walk(made[var]) if var in made else (0, -1) for var in results]
        self.keeping = [nodes & keeping for nodes, _ in walks]
        self.leaf = [first for _, first in walks]
        self._left: dict[frozenset[int], frozenset[int]] = {}

    def passed(self, came: Collection[int]) -> int:
        """The nodes that backward freed."""
        found = 0
        for number in came:
            found |= self.keeping[number]
        return found

    def is_met(self, came: Collection[int], numbers: Collection[int]) -> bool:
        """Will backward of the gradients in `numbers` come to what is freed?"""
        return bool(self.passed(came) & self.passed(numbers))

    def left(self, came: frozenset[int]) -> frozenset[int]:
        """The inputs of which values are made that backward may read once these have come."""
        found = self._left.get(came)
        if found is None:
            found = self._left[came] = self.find_left(self.passed(came))
        return found

    def find_left(self, passed: int) -> frozenset[int]:
        if not all(nodes & passed for nodes in self.keeping):
            return self.every  # a result can go backward as if nothing were
        nodes = 0
        for number in range(len(self.keeping)):
            nodes |= self.before_error(number, passed)
        return self.read_by(nodes)

    def before_error(self, number: int, passed: int) -> int:
        """The nodes behind a result to which backward comes, if it comes to leaves, before it
        comes to one that is freed."""
        error = (self.keeping[number] & passed).bit_length()
        return self.keeping[number] >> error << error if self.leaf[number] >= error > 0 else 0

    def goes_on(self) -> bool:
        """Is there a result whose backward reads values when that of another freed some?"""
        return any(self.before_error(number, passed)
                   for number in range(len(self.keeping)) for passed in self.keeping)  # fmt: skip

    def read_by(self, nodes: int) -> frozenset[int]:
        """The inputs that values are made of which these nodes keep."""
        read: set[Var] = set()
        for number, node in reversed([*enumerate(self.graph.nodes)]) if nodes else ():
            if nodes >> number & 1 or not read.isdisjoint(node.outputs):
                read.update(node.present())
        return frozenset(k for k, item in enumerate(self.graph.inputs) if item.var in read)


class Together(Shared):
    """Where nothing is known of what eager would keep: all is freed at once."""

    def __init__(self, count: int):
        self.keeping, self.leaf = [1] * count, [-1] * count
        self.every: frozenset[int] = frozenset()
        self._left = {}

    def read_by(self, nodes: int) -> frozenset[int]:
        return frozenset()


def shared_by(split: Any) -> Shared:
    """What the results of a compiled function share."""
    function, count = split.function, len(split.function.differentiable)
    if not function.is_recorded:
        return Together(count)
    return Shared(function.trace, split.wanted, split.values_of(range(count)), function.customs)


def keeps(node: Node, made: dict[Var, Stop], customs: Any) -> bool:
    """Does eager's node keep anything for backward?"""
    if node.op.name == "call":
        call = customs.calls[dict(node.attrs)["backward"].name]
        return call is None or bool(call.saved)
    needs = [var in made and node.op.rule_for(k) is not None for k, var in enumerate(node.inputs)]
    return bool(saved_keys(node.op, needs))


def walk(root: Stop) -> tuple[int, int]:
    """The nodes behind one, and at which of them backward has come to all that leads to a leaf."""
    nodes, lowest = 0, {}
    seen, stack = {root}, [root]
    while stack:
        stop = stack.pop()
        if stop.position >= 0:
            continue
        nodes |= 1 << stop.sequence
        for target in stop.edges:
            if target.position >= 0:
                lowest[target] = min(lowest.get(target, stop.sequence), stop.sequence)
            if target not in seen:
                seen.add(target)
                stack.append(target)
    return nodes, max(lowest.values(), default=-1)
