"""Runs the nodes of a graph by the interpreter on top of the stack: inlines it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .graph import Graph, Var


def inline(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """The outputs of `graph` for `values`, computed by ops that run now."""
    now: dict[Var, Any] = {item.var: value for item, value in zip(graph.inputs, values)}
    for node in graph.nodes:
        operands = [None if v is None else now[v] for v in node.inputs]
        results = node.op(*operands, **dict(node.attrs))
        listed = results if isinstance(results, tuple) else (results,)
        now.update(zip(node.outputs, listed))
    return [now[output.var] for output in graph.outputs]
