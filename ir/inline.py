"""Runs the nodes of a graph by the interpreter on top of the stack: inlines it elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .bind import interpreting, state
from .graph import Graph, Node, Var


def run_node(node: Node, operands: Sequence[Any]) -> Any:
    return node.op(*operands, **dict(node.attrs))


def inline(
    graph: Graph, values: Sequence[Any], again: bool = False, run: Any = run_node
) -> list[Any]:
    """The outputs of `graph` for `values`, computed by ops that run now.

    With `again`, the graph ran before: what it draws are the numbers it drew, whoever is on top.
    """
    now: dict[Var, Any] = {item.var: value for item, value in zip(graph.inputs, values)}
    for node in graph.nodes:
        operands = [None if v is None else now[v] for v in node.inputs]
        with interpreting(state.bottom if again and node.op.random else state.top):
            results = run(node, operands)
        listed = results if isinstance(results, tuple) else (results,)
        now.update(zip(node.outputs, listed))
    return [now[output.var] for output in graph.outputs]
