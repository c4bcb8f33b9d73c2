"""Takes gradients that did not arrive out of a backward graph.

Eager backward does not visit the paths from a result that took no part: zeros sent along them would
meet infinite derivatives, and 0 x inf is NaN. A backward graph is linear in its gradients, so what
is computed from absent ones alone is absent, and a sum goes on without the absent term.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..graph import GRADIENT, Graph, Node, Var
from ..ops.views import zeros
from . import dead_code, in_place
from .rewrite import rebuild


def run(
    graph: Graph, given: Collection[int], left: tuple[int, ...] | None = None
) -> tuple[Graph, tuple[int, ...]]:
    """`graph` of the gradients numbered in `given` only, and which of its results are left: those
    that are not absent, unless it is known which, where absent ones are zeros."""
    gradients = [i.var for i in graph.inputs if i.kind == GRADIENT]
    arrived = {var for number, var in enumerate(gradients) if number in given}
    absent = set(gradients) - arrived
    for node in graph.nodes:
        if any(v in arrived for v in node.present()):
            arrived.update(node.outputs)
        elif any(v in absent for v in node.present()):
            absent.update(node.outputs)
    if left is None:
        left = tuple(k for k, output in enumerate(graph.outputs) if output.var not in absent)
    graph = graph.replace(outputs=tuple(graph.outputs[k] for k in left))
    graph = dead_code.run(rebuild(graph, lambda n, operands: without(n, operands, absent)))
    inputs = tuple(i for i in graph.inputs if i.var not in absent)
    return in_place.run(graph.replace(inputs=inputs)), left


def without(node: Node, operands: list[Any], absent: set[Var]) -> Any:
    """x + absent == x;  x - absent == x;  absent - x == -x;  elsewhere absent == 0"""
    if not absent.isdisjoint(node.outputs):
        return tuple(zeros(var.type) for var in node.outputs)
    missing = [var is not None and var in absent for var in node.inputs]
    if not any(missing):
        return None
    if node.op.name in ("add", "sub") and not node.attrs:
        kept = operands[missing.index(False)]
        return -kept if missing[0] and node.op.name == "sub" else kept
    filled = [zeros(s.var.type) if gone else s for s, gone in zip(operands, missing)]
    return node.op(*filled, **dict(node.attrs))
