"""Ops that read at positions found in index tensors: what they read, and where.

Such an op is folded into the loops of its reader like a view; its position in the source has
dynamic terms, whose values the kernel loads and checks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.graph import Node, Var
from .affine import Expr, delinear, divide, plus, scaled, strides_of

Reads = list[tuple[Var, Expr]]
OPS = ("gather", "index", "index_select", "embedding", "plane_gather")
BOUND = {"gather": RuntimeError}  # what an index out of range raises; IndexError by default


def can(node: Node) -> bool:
    """Is the node one of OPS in a form that has indices and elements?"""
    if node.op.name not in OPS:
        return False
    source, *indices = node.inputs
    return bool(
        source is not None and source.shape and 0 not in source.shape
        and all(i is not None and i.dtype.name in ("int32", "int64") for i in indices)
        and (node.op.name != "gather" or indices[0].shape)  # type: ignore[union-attr]
    )  # fmt: skip


def reads(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    """The source and its position for position `e` of the result; then the indices and theirs."""
    return READERS[node.op.name](node, e, sizes)


def bound(node: Node, k: int) -> int:
    """How many values the k-th index may take."""
    source = node.inputs[0]
    assert source is not None
    if node.op.name == "update":
        return node.attributes["found"][k][2]
    if node.op.name == "plane_gather":
        return math.prod(source.shape[-node.attributes["dims"] :])
    return source.shape[indexed(node)[k]]


def wraps(node: Node) -> bool:
    """Do negative indices count from the end? Else they are out of range."""
    return node.op.name == "index" or bool(node.attributes.get("wraps"))


def indexed(node: Node) -> list[int]:
    """The dimensions of the source that are indexed."""
    attrs = node.attributes
    if "spec" not in attrs:
        return [attrs.get("dim", 0)]
    return [d for d, used in enumerate(attrs["spec"]) if used]


def total(parts: Sequence[Expr], steps: Sequence[int], sizes: Sequence[int]) -> Expr:
    result = Expr((0,) * len(sizes))
    for part, step in zip(parts, steps):
        result = plus(result, scaled(part, step))
    return result


def dynamic(step: int, index: Var, at: Expr, sizes: Sequence[int]) -> Expr:
    return Expr((0,) * len(sizes), 0, ((step, (index, at)),))


def _gather(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    source, index = node.inputs
    assert source is not None and index is not None
    steps = list(strides_of(source.shape))
    dim = node.attributes["dim"]
    parts = delinear(e, index.shape, sizes)
    along, steps[dim] = steps[dim], 0
    at = plus(total(parts, steps, sizes), dynamic(along, index, e, sizes))
    return [(source, at), (index, e)]


def _index(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    source, *indices = node.inputs
    assert source is not None
    places, steps = indexed(node), strides_of(source.shape)
    rank = max(len(i.shape) for i in indices)  # type: ignore[union-attr]
    adjacent = places == list(range(places[0], places[-1] + 1))
    lead = places[0] if adjacent else 0
    parts = delinear(e, node.outputs[0].shape, sizes)
    common, rest = parts[lead : lead + rank], parts[:lead] + parts[lead + rank :]
    kept = [d for d in range(len(source.shape)) if d not in places]
    at, found = total(rest, [steps[d] for d in kept], sizes), []
    for place, index in zip(places, indices):
        assert index is not None
        inner = [s if n != 1 else 0 for s, n in zip(strides_of(index.shape), index.shape)]
        here = total(common[rank - len(inner) :], inner, sizes)
        at = plus(at, dynamic(steps[place], index, here, sizes))
        found.append((index, here))
    return [(source, at), *found]


def _embedding(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    weight, indices = node.inputs
    assert weight is not None and indices is not None
    width = weight.shape[1]
    which, column = divide(e, width, sizes)
    return [(weight, plus(column, dynamic(width, indices, which, sizes))), (indices, which)]


def _plane_gather(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    source, indices = node.inputs
    assert source is not None and indices is not None
    dims = node.attributes["dims"]
    plane, _ = divide(e, math.prod(indices.shape[-dims:]), sizes)
    at = scaled(plane, math.prod(source.shape[-dims:]))
    return [(source, plus(at, dynamic(1, indices, e, sizes))), (indices, e)]


def update_reads(node: Node, e: Expr, sizes: Sequence[int]) -> Reads:
    """What an update reads for position `e` of its source: the source, then its indices."""
    _, src, *indices = node.inputs
    assert src is not None
    parts = delinear(e, src.shape, sizes)
    found = [(i, total(parts, steps, sizes))
             for i, (_, steps, _) in zip(indices, node.attributes["found"])]  # fmt: skip
    return [(src, e), *found]  # type: ignore[list-item]


def update_place(node: Node, e: Expr, sizes: Sequence[int]) -> Expr:
    """Where an update writes for position `e` of its source."""
    attrs = node.attributes
    parts = delinear(e, node.inputs[1].shape, sizes)  # type: ignore[union-attr]
    at = total(parts, attrs["strides"], sizes)
    at = at._replace(offset=at.offset + attrs["offset"])
    for (index, where), (factor, _, _) in zip(update_reads(node, e, sizes)[1:], attrs["found"]):
        at = plus(at, dynamic(factor, index, where, sizes))
    return at


READERS = {
    "gather": _gather,
    "index": _index,
    "index_select": _index,
    "embedding": _embedding,
    "plane_gather": _plane_gather,
}
