"""Keeps the first of several nodes that compute the same value."""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Node, Output, Var


def run(graph: Graph) -> Graph:
    first: dict[Any, Node] = {}
    same: dict[Var, Var] = {}
    nodes = []
    for node in graph.nodes:
        inputs = tuple(v if v is None else same.get(v, v) for v in node.inputs)
        if inputs != node.inputs:
            node = Node(node.op, inputs, node.outputs, node.attrs, node.place, node.origin)
        kept = first.setdefault(key(node), node)
        if kept is node:
            nodes.append(node)
        else:
            same.update(zip(node.outputs, kept.outputs))
    if not same:
        return graph
    outputs = tuple(Output(same.get(o.var, o.var), o.kind, o.target) for o in graph.outputs)
    return graph.replace(nodes=tuple(nodes), outputs=outputs)


def key(node: Node) -> Any:
    """Equal attributes are not enough: 0.0 == -0.0 and 1 == True compare equal."""
    return node.op.name, node.inputs, tuple((k, repr(v)) for k, v in node.attrs)
