"""For `numerics="strict"`: pointwise ops whose bits depend on who computes them are left to eager.

What rounds at most once has one result, and stays native; so do integers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..exact import is_exact
from ..graph import CAPTURED, SCALAR, Graph, Input, Node, Output, Var, freeze
from ..op import TABLE, Decompose
from ..types import FLOAT, DType, TensorType, float32
from . import decompose

_EXACT_FLOATS = ("float32", "float64")


def run(graph: Graph) -> Graph:
    numbers = {item.var for item in graph.inputs if item.kind == SCALAR}
    made: dict[Var, Node] = {}  # numbers of 16 bits, and what makes them
    nodes: list[Node] = []
    for node in graph.nodes:
        if all(v in numbers for v in node.present()) and len(node.outputs) == 1:
            numbers.add(node.outputs[0])
            if node.op.name in ("constant", "cast") and is_half(node.outputs[0]):
                made[node.outputs[0]] = node
        if is_native(node):
            nodes.append(node)
        else:
            nodes += as_eager(node, made)
    return graph.replace(nodes=tuple(nodes))


def is_half(var: Var) -> bool:
    return var.dtype.category == FLOAT and var.dtype.itemsize == 2


def is_native(node: Node) -> bool:
    """Does native code give eager's bits? 16-bit floats stay wide between ops there, so not."""
    if len(node.outputs) != 1 or not is_pointwise(node):
        return True
    vars_ = [v for v in (*node.inputs, *node.outputs) if v is not None]
    floats = [v.dtype for v in vars_ if v.dtype.category >= FLOAT]
    if any(dtype.name not in _EXACT_FLOATS for dtype in floats):
        return False
    return not floats or is_exact(node.op, node.attrs)


def is_pointwise(node: Node) -> bool:
    """Is each element computed of elements alone: by the op itself, or by those it is made of?"""
    if node.op.kind == "pointwise" or not isinstance(node.op.lower, Decompose):
        return node.op.kind == "pointwise"
    inputs = tuple(Input(var, CAPTURED) for var in dict.fromkeys(node.present()))
    alone = Graph(node.op.name, inputs, (node,), tuple(map(Output, node.outputs)))
    kinds = {n.op.kind for n in decompose.run(alone).nodes}
    return "pointwise" in kinds and kinds <= {"pointwise", "view", "creation"}


def as_eager(node: Node, made: dict[Var, Node]) -> list[Node]:
    """The node as eager runs it, after the numbers it takes; see Note [Numbers beside halves]."""
    op, exact = TABLE["as_eager"], node.op.exact_second
    common = node.op.promote([v.type for v in node.present()]) if node.op.promote else None
    before: dict[Var | None, Node] = {}
    for position, var in enumerate(node.present()):
        if var in made:
            if exact:
                before[var] = widened(made[var])
        elif (common is not None and var.dtype is not common and common.itemsize == 2
              and not node.op.reads_exactly(position, var.type, common)):  # fmt: skip
            before[var] = rounded(node, var, common)
    inputs = tuple(before[v].outputs[0] if v in before else v for v in node.inputs)
    settings: dict[str, Any] = {"op": node.op.name, "settings": tuple(node.attrs)}
    if before:
        settings["dtype"] = node.outputs[0].dtype
    return [*before.values(), replace(node, op=op, inputs=inputs, attrs=freeze(settings, op))]


def rounded(node: Node, var: Var, dtype: DType) -> Node:
    """A tensor of another type beside halves is one of them first."""
    cast = TABLE["cast"]
    output = Var(TensorType(dtype, var.shape))
    return replace(node, op=cast, inputs=(var,), outputs=(output,),
                   attrs=freeze({"dtype": dtype}, cast))  # fmt: skip


def widened(node: Node) -> Node:
    """The number that a node makes, in float32."""
    attrs = {**dict(node.attrs), "dtype": float32}
    return replace(node, attrs=freeze(attrs, node.op), outputs=(Var(TensorType(float32, ())),))
