"""Makes ops on 16-bit floats compute in float32, as their evaluation does, and round once.

Reductions and composite ops only: what they are made of would round at every step.
"""

from __future__ import annotations

from typing import Any

from ..graph import Graph, Node
from ..op import Decompose
from ..types import float32
from .rewrite import rebuild


def run(graph: Graph) -> Graph:
    return rebuild(graph, widened, about=accumulates)


def widened(node: Node, operands: list[Any]) -> Any:
    """op(x) == cast(op(cast(x, f32)), dtype of op(x))"""
    if not any(s is not None and is_narrow(s.dtype) for s in operands):
        return None
    wide = [s.to(float32) if s is not None and is_narrow(s.dtype) else s for s in operands]
    results = node.op(*wide, **dict(node.attrs))
    listed = results if isinstance(results, tuple) else (results,)
    return tuple(result.to(var.dtype) for result, var in zip(listed, node.outputs))


def accumulates(node: Node) -> bool:
    op = node.op
    if op.moves_data or op.random or op.kind in ("creation", "view"):
        return False
    return op.kind == "reduction" or isinstance(op.lower, Decompose)


def is_narrow(dtype: Any) -> bool:
    """A 16-bit float: computed in another dtype than it is stored in."""
    return bool(dtype.compute != dtype.storage)
