"""Expands composite ops to primitive ones, until only ops with a kernel of their own are left."""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Node, Var
from ..op import TABLE, Decompose
from .rewrite import rebuild

ROUNDS = 20  # a decomposition may use composites; a cycle among them is a fault of the catalogue


def run(graph: Graph) -> Graph:
    for _ in range(ROUNDS):
        result = rebuild(graph, expand, about=is_composite)
        if result is graph:
            return graph
        graph = result
    raise RuntimeError("decompositions do not end: " + ", ".join(
        sorted({n.op.name for n in graph.nodes if is_composite(n)})))  # fmt: skip


def is_composite(node: Node) -> bool:
    return isinstance(node.op.lower, Decompose)


def expand(node: Node, operands: list[Any]) -> Any:
    if all(var.type.numel == 0 for var in node.outputs):  # an expansion may reduce over nothing
        return tuple(nothing(var) for var in node.outputs)
    result = node.op.lower.expand(*operands, **node.attributes)
    if result is NotImplemented:  # this form of the op has no expansion; it stays a host call
        return None
    if isinstance(result, tuple):
        return tuple(typed(part, var) for part, var in zip(result, node.outputs))
    return typed(result, node.outputs[0])


def nothing(var: Var) -> Any:
    return TABLE["full"](size=var.shape, fill_value=0, dtype=var.dtype)


def typed(value: Any, var: Var) -> Any:
    """An expansion may promote where the op itself does not (bools become integers)."""
    return value if value.dtype is var.dtype else value.to(var.dtype)
