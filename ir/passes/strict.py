"""For `numerics="strict"`: pointwise ops whose bits depend on who computes them are left to eager.

What rounds at most once has one result, and stays native; so do integers.
"""

from __future__ import annotations

from dataclasses import replace

from ..exact import is_exact
from ..graph import Graph, Node, freeze
from ..op import TABLE
from ..types import FLOAT

_EXACT_FLOATS = ("float32", "float64")


def run(graph: Graph) -> Graph:
    return graph.replace(nodes=tuple(node if is_native(node) else as_eager(node)
                                     for node in graph.nodes))  # fmt: skip


def is_native(node: Node) -> bool:
    """Does native code give eager's bits? 16-bit floats stay wide between ops there, so not."""
    if node.op.kind != "pointwise" or len(node.outputs) != 1:
        return True
    vars_ = [v for v in (*node.inputs, *node.outputs) if v is not None]
    floats = [v.dtype for v in vars_ if v.dtype.category >= FLOAT]
    if any(dtype.name not in _EXACT_FLOATS for dtype in floats):
        return False
    return not floats or is_exact(node.op, node.attrs)


def as_eager(node: Node) -> Node:
    op = TABLE["as_eager"]
    attrs = freeze({"op": node.op.name, "settings": tuple(node.attrs)}, op)
    return replace(node, op=op, attrs=attrs)
