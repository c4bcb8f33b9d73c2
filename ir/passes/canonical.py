"""Makes casts and broadcasts explicit, and reductions keep their dimensions.

Afterwards the operands of a pointwise op have one shape and the dtype it computes in, so codegen
never has to know promotion or broadcasting.
"""

from __future__ import annotations

import math
from typing import Any

from ..graph import Graph, Node
from ..op import TABLE
from ..types import broadcast_shapes, float32
from .rewrite import rebuild


def run(graph: Graph) -> Graph:
    fine: set[Any] = set()  # ops with types of operands that are as they should be

    def is_affected(node: Node) -> bool:
        if node.op.kind == "pointwise":
            return (node.op, types_of(node)) not in fine
        return node.op.kind == "reduction" and not node.attributes.get("keepdim", True)

    def canonical(node: Node, operands: list[Any]) -> Any:
        if node.op.kind == "reduction":
            return reduction(node, operands)
        found = pointwise(node, operands)
        if found is None:
            fine.add((node.op, types_of(node)))
        return found

    return rebuild(graph, canonical, about=is_affected)


def types_of(node: Node) -> tuple[Any, ...]:
    return tuple([None if v is None else v.type for v in node.inputs])


def pointwise(node: Node, operands: list[Any]) -> Any:
    """op(a, b) == op(expand(cast(a)), expand(cast(b)))"""
    present = [o for o in operands if o is not None]
    shape = broadcast_shapes(*(o.shape for o in present)) if present else ()
    dtypes = wanted_dtypes(node, operands)
    fitted = [o if o is None else spread(o.to(d), shape) for o, d in zip(operands, dtypes)]
    if all(a is b for a, b in zip(fitted, operands)):
        return None
    result = node.op(*fitted, **dict(node.attrs))
    return result.to(node.outputs[0].dtype) if len(node.outputs) == 1 else result


def wanted_dtypes(node: Node, operands: list[Any]) -> list[Any]:
    """The dtype each operand is computed in; see Note [Numbers beside halves]."""
    op = node.op
    if op.promote is not None:
        common = op.promote([o for o in operands if o is not None])
        exact = any(o is not None and op.reads_exactly(k, o, common)
                    for k, o in enumerate(operands))  # fmt: skip
        return [float32 if exact else common] * len(operands)
    return [None if o is None else o.dtype for o in operands]


def spread(value: Any, shape: tuple[int, ...]) -> Any:
    return value if tuple(value.shape) == shape else TABLE["expand"](value, size=shape)


def reduction(node: Node, operands: list[Any]) -> Any:
    """reduce(x, keepdim=False) == view(reduce(x, keepdim=True))"""
    (var,) = node.outputs
    attrs = {**dict(node.attrs), "keepdim": True}
    attrs.pop("whole", None)
    if not isinstance(attrs.get("dim"), tuple):
        return None
    kept = node.op(operands[0], **attrs)
    if math.prod(var.shape) != math.prod(kept.shape):
        return None
    return TABLE["view"](kept, size=var.shape)
