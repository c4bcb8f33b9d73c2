"""Drops nodes whose results nobody reads.

Note [Unread checks]
    Some ops raise because of what their operands hold: an index is out of range, a matrix is
    singular. Eager raises whether or not somebody reads the result, so `but_checks` keeps such
    nodes, though nobody reads what they give; of indices it keeps a look at them. It does not where
    another node looks at the same: at the index by which forward has gathered, backward scatters.
    Nor does it keep derivatives, which look at what forward has looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..builder import Builder, Symbol
from ..graph import Graph, Node, Var
from ..op import TABLE, Decompose
from ..ops.looking import BELOW, NOT_ZERO
from ..types import TensorType, int64

WHOLE = {"view", "unsqueeze", "squeeze", "expand", "permute", "transpose"}  # show all elements


def run(graph: Graph) -> Graph:
    return keeping(graph, {output.var for output in graph.outputs})


def but_checks(graph: Graph) -> Graph:
    """See Note [Unread checks]."""
    roots = {output.var for output in graph.outputs}
    unread = unread_checks(graph, roots)
    graph = keeping(graph, roots | unread)
    if not unread:
        return graph
    read = {v for node in graph.nodes for v in node.present()}
    nodes: list[Node] = []
    for node in graph.nodes:
        made = [node]
        if not unread.isdisjoint(node.outputs) and read.isdisjoint(node.outputs):
            made = only_looking(node)
            roots.update(n.outputs[0] for n in made)
        nodes += made
    return keeping(graph.replace(nodes=tuple(nodes)), roots)


def only_looking(node: Node) -> list[Node]:
    """Nodes that look at the indices of one, and do nothing else; others must run."""
    looks = node.op.raises(node) if callable(node.op.raises) else []
    if not looks or looks[0][1] == NOT_ZERO:
        return [node]
    if len(looks) == 1 and next(node.present()).type == TensorType(int64, looks[0][1][1:]):
        return [node]  # it does little else
    builder = Builder()
    builder.place = node.place
    with builder.building():
        for index, (kind, size) in looks:
            numbers = TABLE["iota"](size=size, dtype=int64)
            flat = TABLE["view"](Symbol(index), size=(index.type.numel,))
            if kind == BELOW:
                TABLE["gather"](numbers, flat, dim=0)
            else:
                TABLE["index"](numbers, flat, spec=(True,))
    return builder.nodes


def keeping(graph: Graph, needed: set[Var]) -> Graph:
    """The nodes that make what is needed."""
    kept = needed_nodes(graph, needed)
    if len(kept) == len(graph.nodes):
        return graph
    return graph.replace(nodes=tuple(reversed(kept)))


def needed_nodes(graph: Graph, roots: Iterable[Var]) -> list[Node]:
    """The nodes that `roots` are computed by, last first."""
    needed, kept = set(roots), []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(node.present())
            kept.append(node)
    return kept


def unread_checks(graph: Graph, roots: Iterable[Var]) -> set[Var]:
    """The results of nodes that must run for what they look at, where `roots` are what is read."""
    needed = {*needed_nodes(graph, roots)}
    unread = [node for node in graph.nodes
              if node not in needed and node.origin is None and may_raise(node)]  # fmt: skip
    if not unread:
        return set()
    looks = Looks(graph)
    known = {look for node in needed if node.origin is None for look in looks.of(node)}
    found = set()
    for node in unread:
        more = {*looks.of(node)} - known
        if more:
            known |= more
            found.add(node.outputs[0])
    return found


def may_raise(node: Node) -> bool:
    """Can it raise because of what its operands hold?"""
    op = node.op
    if op.raises is not None:
        return op.raises is True or bool(op.raises(node))
    if not isinstance(op.lower, Decompose):
        return False
    from .decompose import expand

    builder = Builder()
    with builder.building():
        expand(node, [None if v is None else Symbol(Var(v.type)) for v in node.inputs])
    return any(map(may_raise, builder.nodes))


class Looks:
    """What nodes of a graph look at."""

    def __init__(self, graph: Graph):
        self.producers = graph.producers()

    def of(self, node: Node) -> list[Any]:
        raises = node.op.raises
        if raises is None or raises is True:
            return [(node.op.name, node.inputs, node.attrs)]
        found = [(self.shown(var), what) for var, what in raises(node) if var.type.numel]
        return [look for look in found if not self.is_known(*look)]

    def shown(self, var: Var) -> Var:
        """The value all of which a view shows."""
        while (node := self.producers.get(var)) is not None and node.op.name in WHOLE:
            (var,) = node.present()
        return var

    def is_known(self, var: Var, what: Any) -> bool:
        """Is it a constant that is as it must be?"""
        node = self.producers.get(var)
        if what != NOT_ZERO or node is None or node.inputs:
            return False
        return bool(node.attributes.get("fill_value", node.attributes.get("value", 0)))
