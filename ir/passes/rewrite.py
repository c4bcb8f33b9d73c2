"""What most passes are made of: a walk that rebuilds a graph through a Builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..builder import Builder, Symbol
from ..graph import Graph, Node, Output, Var

# Given a node and its operands (Symbols), returns its results (Symbols, one or a tuple), or None to
# keep the node as it is.
Rule = Callable[[Node, list[Any]], Any]


def rebuild(
    graph: Graph,
    rule: Rule,
    producers: dict[Var, Node] | None = None,
    about: Callable[[Node], bool] = lambda node: True,
) -> Graph:
    """A graph with `rule` applied to every node; the same graph if nothing changed.

    `about` tells, of nodes of the old graph, which ones the rule can be about: it need not be asked
    of others, and most are. `producers` is told of every node of the new graph, as soon as it is
    there. Marks of whose memory may be taken are gone: values may be read longer.
    """
    builder = Builder(graph.name)
    builder.inputs = list(graph.inputs)
    nodes = builder.nodes
    now: dict[Var, Var] = {}
    changed = False
    with builder.building():
        for node in graph.unmarked().nodes:
            first, results = len(nodes), None
            if about(node):
                operands = [None if v is None else Symbol(now.get(v, v)) for v in node.inputs]
                builder.place, builder.origin = node.place, node.origin
                results = rule(node, operands)
            if results is None:
                nodes.append(keep(node, now) if now else node)
            else:
                changed = True
                listed = results if isinstance(results, tuple) else (results,)
                now.update((old, new.var) for old, new in zip(node.outputs, listed))
            if producers is not None:
                for made in nodes[first:]:
                    for var in made.outputs:
                        producers[var] = made
    if not changed:
        return graph
    outputs = tuple(Output(now.get(o.var, o.var), o.kind, o.target) for o in graph.outputs)
    return Graph(graph.name, graph.inputs, tuple(nodes), outputs, graph.notes)


def keep(node: Node, now: dict[Var, Var]) -> Node:
    """The node, reading what its operands are `now`."""
    for var in node.inputs:
        if var in now:
            inputs = tuple([None if v is None else now.get(v, v) for v in node.inputs])
            return Node(node.op, inputs, node.outputs, node.attrs, node.place, node.origin)
    return node
