"""Evaluates nodes whose operands are all small constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Graph, Node, Var
from ..interp import evaluate_op
from ..op import TABLE
from .rewrite import rebuild


def run(graph: Graph) -> Graph:
    known = {n.outputs[0]: n for n in graph.nodes if n.op.name in ("constant", "full")}
    values: dict[Var | None, Any] = {}
    for var, node in known.items():
        attrs = node.attributes
        values[var] = attrs["value"] if node.op.name == "constant" else attrs["fill_value"]

    def is_uniform(node: Node) -> bool:
        return all(v in values for v in node.inputs) and foldable(node)

    def fold(node: Node, operands: list[Any]) -> Any:
        result = evaluate(node, [values[v] for v in node.inputs])
        if result is None:
            return None
        (var,) = node.outputs
        made = TABLE["full"](size=var.shape, fill_value=result, dtype=var.dtype)
        values[var] = result
        return made

    return rebuild(graph, fold, about=is_uniform)


def foldable(node: Node) -> bool:
    """Pointwise ops and expansions of uniform values stay uniform."""
    if not node.inputs:
        return False
    if len(node.outputs) != 1 or node.outputs[0].dtype.is_complex:
        return False
    return node.op.kind == "pointwise" or node.op.name in ("expand", "view", "permute")


def evaluate(node: Node, values: list[Any]) -> Any:
    """The uniform value of the result, as a Python number; None if it is not representable."""
    if node.op.kind != "pointwise":
        return values[0]
    types = [v.type._replace(shape=()) for v in node.inputs if v is not None]
    arrays = [np.asarray(v).astype(t.dtype.compute) for v, t in zip(values, types)]
    if any(t.dtype.compute != t.dtype.storage for t in types):
        return None  # 16-bit floats: leave the rounding to the kernel
    out = node.outputs[0].type._replace(shape=())
    with np.errstate(all="ignore"):
        (result,) = evaluate_op(node.op, arrays, types, dict(node.attrs), [out])
    return result.item()
