"""Catalogue ops with skeletons of their own, said in the scheduler's ops.

A rule gives the op's meaning in catalogue ops and those of private.py, or None where it has no
native form, and the node stays as it is. So they fuse with what is around them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Input, Node, Output, Var
from ..ir.op import TABLE
from ..ir.passes import canonical, decompose
from ..ir.scalar import HALVES
from ..ir.types import float32
from .affine import strides_of
from .classify import HOST, kind_of, native_types
from .private import COORDINATE, JOINED, PRODUCT, WINDOW, Ints, numel, region, slices

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers an expansion: it takes the operands and all attributes."""

    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


def expand(node: Node) -> list[Node]:
    """The node in ops that codegen has; itself if there is nothing to expand."""
    nodes = _expanded(node, RULES.get(node.op.name))
    if not any(v.dtype.name in HALVES for v in node.present()) or native(nodes):
        return nodes
    wide = _expanded(node, partial(widened, node))
    return wide if native(wide) else nodes


def native(nodes: list[Node]) -> bool:
    return all(kind_of(n) != HOST for n in nodes)


def widened(node: Node, *operands: Any, **attributes: Any) -> Any:
    """16-bit floats are computed in float32 and rounded at the end, as eager does."""
    wide = [x if x is None or x.dtype.name not in HALVES else x.to(float32) for x in operands]
    results = node.op(*wide, **attributes)
    listed = results if isinstance(results, tuple) else (results,)
    return tuple(r.to(v.dtype) for r, v in zip(listed, node.outputs))


def _expanded(node: Node, function: Rule | None) -> list[Node]:
    if function is None or not native_types(node):
        return [node]

    def results() -> Any:
        operands = [None if v is None else Symbol(v) for v in node.inputs]
        return function(*operands, **node.attributes)

    found = built(node.present(), results, node)
    return [node] if found is None else _renamed(*found, node)


def built(inputs: list[Var], function: Callable[[], Any], node: Node) -> Any:
    """What `function` computes for a node: nodes in ops that codegen has, and the results."""
    builder = Builder("expansion")
    builder.place, builder.origin = node.place, node.origin
    with builder.building():
        results = function()
    if results is None:
        return None
    listed = results if isinstance(results, tuple | list) else (results,)
    graph = Graph("expansion", tuple(map(Input, dict.fromkeys(inputs))), tuple(builder.nodes),
                  tuple(Output(s.var) for s in listed))  # fmt: skip
    graph = canonical.run(decompose.run(graph))
    nodes = [n for inner in graph.nodes for n in expand(inner)]
    return nodes, [o.var for o in graph.outputs]


def _renamed(nodes: list[Node], results: list[Var], node: Node) -> list[Node]:
    """The nodes, with the results under the names the node's outputs have."""
    names = dict(zip(results, node.outputs))
    made = {v for n in nodes for v in n.outputs}
    if len(names) < len(results) or not made >= set(results):
        copies = [Node(TABLE["clone"], (v,), (o,), (), node.place)
                  for v, o in zip(results, node.outputs)]  # fmt: skip
        return nodes + copies
    return [Node(n.op, tuple(None if v is None else names.get(v, v) for v in n.inputs),
                 tuple(names.get(v, v) for v in n.outputs), n.attrs, n.place or node.place,
                 n.origin) for n in nodes]  # fmt: skip


def turned(nodes: list[Node], outputs: set[Var]) -> list[Node]:
    """transpose(a @ b) == transpose(b) @ transpose(a), where nobody else wants a @ b."""
    uses: dict[Var, int] = {}
    makers = {v: n for n in nodes for v in n.outputs}
    for node in nodes:
        for var in node.present():
            uses[var] = uses.get(var, 0) + 1
    gone: set[Var] = set()
    result = []
    for node in nodes:
        product = makers.get(node.inputs[0]) if node.inputs else None  # type: ignore[arg-type]
        if product is None or not _swaps(node) or product.op.name not in PRODUCTS or (
                uses[product.outputs[0]] > 1 or product.outputs[0] in outputs):  # fmt: skip
            result.append(node)
            continue
        a, b = (_swapped(node, v) for v in product.inputs)
        gone.add(product.outputs[0])
        result += [a, b, Node(PRODUCT, (b.outputs[0], a.outputs[0]), node.outputs, (),
                              product.place, product.origin)]  # fmt: skip
    return [n for n in result if n.outputs[0] not in gone]


PRODUCTS = ("mm", "bmm", "product")


def _swaps(node: Node) -> bool:
    """Does it transpose the last two dimensions and nothing else?"""
    if node.op.name != "permute":
        return False
    dims = node.attributes["dims"]
    n = len(dims)
    return n > 1 and dims == (*range(n - 2), n - 1, n - 2)


def _swapped(permute: Node, var: Var | None) -> Node:
    assert var is not None
    shape = (*var.shape[:-2], var.shape[-1], var.shape[-2])
    made = Var(var.type._replace(shape=shape))
    return Node(permute.op, (var,), (made,), permute.attrs, permute.place)


# --- joining -------------------------------------------------------------------------------------


def filled(shape: Ints, value: Any, dtype: Any) -> Any:
    return TABLE["full"](size=tuple(shape), fill_value=value, dtype=dtype)


@rule("cat")
def cat(*tensors: Any, dim: int) -> Any:
    size = list(tensors[0].shape)
    size[dim] = sum(t.shape[dim] for t in tensors)
    parts, start = [], 0
    for t in tensors:
        parts.append((t, tuple(start if d == dim else 0 for d in range(len(size)))))
        start += t.shape[dim]
    return joined(tuple(size), parts)


def joined(size: Ints, parts: list[tuple[Any, Ints]]) -> Any:
    """Parts at their places; those without elements are left out."""
    parts = [(part, place) for part, place in parts if numel(part.shape)] or parts[:1]
    return JOINED(*(part for part, _ in parts), size=size,
                  regions=tuple(region(size, place) for _, place in parts))  # fmt: skip


@rule("constant_pad_nd")
def constant_pad(x: Any, *, pad: Ints, value: Any) -> Any:
    pairs = [(0, 0)] * (len(x.shape) - len(pad) // 2)
    pairs += [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    return padded(x, pairs, value)


def padded(x: Any, pairs: list[tuple[int, int]], value: Any) -> Any:
    """x with a border of `value`; negative widths cut."""
    shape = tuple(x.shape)
    if not numel(shape) or not any(a or b for a, b in pairs):
        return None if not numel(shape) else x.clone()
    starts = tuple(max(0, -a) for a, _ in pairs)
    stops = tuple(n - max(0, -b) for n, (_, b) in zip(shape, pairs))
    if any(b <= a for a, b in zip(starts, stops)):
        return None
    inner = slices(x, starts, stops)
    size = tuple(n + a + b for n, (a, b) in zip(shape, pairs))
    low = tuple(max(0, a) for a, _ in pairs)
    high = tuple(n - max(0, b) for n, (_, b) in zip(size, pairs))
    parts = [(inner, low)]
    for d in range(len(size)):  # a slab before and one after, inside the slabs of dimensions before
        for a, b in ((0, low[d]), (high[d], size[d])):
            place = (*low[:d], a, *(0,) * (len(size) - d - 1))
            slab = (*(h - l for l, h in zip(low[:d], high[:d])), b - a, *size[d + 1 :])
            parts.append((filled(slab, value, x.dtype), place))
    return joined(size, parts)


@rule("flip")
def flip(x: Any, *, dims: Ints) -> Any:
    shape, steps = tuple(x.shape), list(strides_of(tuple(x.shape)))
    offset = 0
    for d in dims:
        offset += max(0, shape[d] - 1) * steps[d]
        steps[d] = -steps[d]
    return WINDOW(x, size=shape, strides=tuple(steps), offset=offset) if numel(shape) else None


@rule("roll")
def roll(x: Any, *, shifts: Ints, dims: Ints) -> Any:
    if not numel(x.shape):
        return None
    if not dims:  # all of it, in row-major order
        flat = x.view((numel(x.shape),))
        return roll(flat, shifts=shifts, dims=(0,)).view(tuple(x.shape))
    for shift, d in zip(shifts, dims):
        size = tuple(x.shape)
        k = shift % size[d]
        if not k:
            continue
        cut = tuple(size[d] - k if e == d else 0 for e in range(len(size)))
        zero = (0,) * len(size)
        head = slices(x, cut, size)
        tail = slices(x, zero, tuple(size[d] - k if e == d else n for e, n in enumerate(size)))
        x = joined(
            size, [(head, zero), (tail, tuple(k if e == d else 0 for e in range(len(size))))]
        )
    return x


# --- extrema with indices ------------------------------------------------------------------------


def first_place(x: Any, best: Any, dim: Any) -> Any:
    """The least position along `dim` (flat if None) where x is its extremum, or NaN."""
    shape = tuple(x.shape)
    steps = strides_of(shape) if dim is None else tuple(int(d == dim) for d in range(len(shape)))
    here = COORDINATE(size=shape, strides=steps, offset=0)
    hit = x.eq(best.expand(shape))
    if x.dtype.is_floating_point:
        hit = hit.logical_or(x.isnan())
    far = filled(shape, numel(shape), here.dtype)
    dims = tuple(range(len(shape))) if dim is None else (dim,)
    return TABLE["amin"](here.where(hit, far), dim=dims, keepdim=True)


def _extremum(name: str, values: bool) -> Rule:
    def rule_(x: Any, *, dim: Any, keepdim: bool) -> Any:
        shape = tuple(x.shape)
        if not shape or not numel(shape) or x.dtype.name == "bool":
            return None
        dims = tuple(range(len(shape))) if dim is None else (dim,)
        best = TABLE[name](x, dim=dims, keepdim=True)
        place = first_place(x, best, dim)
        kept = tuple(1 if d in dims else n for d, n in enumerate(shape))
        size = kept if keepdim else tuple(n for d, n in enumerate(shape) if d not in dims)
        place = place.view(size)
        return (best.view(size), place) if values else place

    return rule_


RULES["max_dim"], RULES["min_dim"] = _extremum("amax", True), _extremum("amin", True)
RULES["argmax"], RULES["argmin"] = _extremum("amax", False), _extremum("amin", False)


@rule("linalg_vector_norm")
def vector_norm(x: Any, *, ord: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    if not x.ndim or not numel(x.shape) or ord not in (1, 2, float("inf")):
        return None
    shape = tuple(x.shape)
    dims = tuple(range(len(shape))) if dim is None else tuple(dim)
    size = x.abs() if ord != 2 else x * x
    result = TABLE["amax" if ord == float("inf") else "sum"](size, dim=dims, keepdim=True)
    result = result.sqrt() if ord == 2 else result
    kept = tuple(n for d, n in enumerate(shape) if d not in dims)
    return result if keepdim else result.view(kept)
