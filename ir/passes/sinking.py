"""Sinks expands, reshapes and permutes below pointwise ops.

These compute each value once then, and permutes come to others, which cancel them: gradients of a
weight that is used in several places are added up as they lie in memory.

Equations (exact: the same scalars are computed, of the same operands):

    f(expand(a), expand(b))   == expand(f(a, b))       where a and b together are smaller
    f(view(a), view(b))       == view(f(a, b))         a and b of one shape
    f(permute(a), permute(b)) == permute(f(a, b))      alike, where all that reads it permutes

Constants go with either side, since they are the same everywhere. An expanded value beside one that
is not keeps its expand: there is no less to compute, and codegen folds it into the reader's
indexing. So do permutes that would meet others on their way: what is read in one order by some ops
and in another by others is not read once.
"""

from __future__ import annotations

import math
from typing import Any

from ..builder import Symbol
from ..graph import Graph, Node, Var
from ..op import TABLE
from ..types import broadcast_shapes
from .rewrite import rebuild
from .simplify import uniform

Producers = dict[Var, Node]


def run(graph: Graph) -> Graph:
    producers: Producers = {}
    cancelled = permutes_cancelled(graph)

    def rule(node: Node, operands: list[Any]) -> Any:
        found = below_expands(node, operands, producers)
        if found is None:
            found = below_views(node, operands, producers)
        if found is None and node.outputs[0] in cancelled:
            found = below_permutes(node, operands, producers)
        return found

    return rebuild(graph, rule, producers, about=is_pointwise)


def is_pointwise(node: Node) -> bool:
    return node.op.kind == "pointwise" and len(node.outputs) == 1


def below_expands(node: Node, operands: list[Any], producers: Producers) -> Any:
    """f(expand(a), expand(b)) == expand(f(a, b))"""
    sources = sources_of("expand", operands, producers)
    if sources is None:
        return None
    (var,) = node.outputs
    small = broadcast_shapes(*(tuple(s.shape) for s in sources if s is not None))
    if math.prod(small) >= var.type.numel:
        return None
    fitted = [fit(symbol, source, small, producers) for symbol, source in zip(operands, sources)]
    return TABLE["expand"](node.op(*fitted, **dict(node.attrs)), size=var.shape)


def below_views(node: Node, operands: list[Any], producers: Producers) -> Any:
    """f(view(a), view(b)) == view(f(a, b))"""
    sources = sources_of("view", operands, producers)
    if sources is None:
        return None
    shape, *others = {tuple(s.shape) for s in sources if s is not None}
    if others:
        return None
    fitted = [fit(symbol, source, shape, producers) for symbol, source in zip(operands, sources)]
    return TABLE["view"](node.op(*fitted, **dict(node.attrs)), size=node.outputs[0].shape)


def below_permutes(node: Node, operands: list[Any], producers: Producers) -> Any:
    """f(permute(a), permute(b)) == permute(f(a, b))

    One operand beside constants keeps its permute, unless another pointwise op made it: a product
    before it is computed as such.
    """
    sources = sources_of("permute", operands, producers)
    if sources is None:
        return None
    permuted = [(symbol, source) for symbol, source in zip(operands, sources) if source is not None]
    (_, first), *more = permuted
    maker = producers.get(first.var)
    if not more and (maker is None or not is_pointwise(maker)):
        return None
    dims, *others = {producers[symbol.var].attributes["dims"] for symbol, _ in permuted}
    if others:
        return None
    shape = tuple(first.shape)
    fitted = [fit(symbol, source, shape, producers) for symbol, source in zip(operands, sources)]
    return TABLE["permute"](node.op(*fitted, **dict(node.attrs)), dims=dims)


def permutes_cancelled(graph: Graph) -> set[Var]:
    """Results of pointwise ops whose operands are permuted alike, and which are permuted again, or
    lead to such ones alone."""
    readers, orders = readers_of(graph), permuted_by(graph)
    found: set[Var] = set()
    handed_out = {o.var for o in graph.outputs}
    for node in reversed(graph.nodes):
        var = node.outputs[0]
        if var not in orders or node.op.name == "permute" or var in handed_out:
            continue
        if all(reader.op.name == "permute" or reader.outputs[0] in found
               for reader in readers[var]):  # fmt: skip
            found.add(var)
    return found


def permuted_by(graph: Graph) -> dict[Var, Any]:
    """Values that are permuted, or computed of such alone: in which order."""
    producers, found = graph.producers(), dict[Var, Any]()
    for node in graph.nodes:
        if node.op.name == "permute":
            found[node.outputs[0]] = node.attributes["dims"]
        elif is_pointwise(node):
            orders = {found.get(v) for v in node.present() if uniform(Symbol(v), producers) is None}
            if len(orders) == 1 and None not in orders:
                found[node.outputs[0]] = orders.pop()
    return found


def readers_of(graph: Graph) -> dict[Var, list[Node]]:
    found: dict[Var, list[Node]] = {v: [] for v in graph.vars()}
    for node in graph.nodes:
        for var in node.present():
            found[var].append(node)
    return found


def sources_of(name: str, operands: list[Any], producers: Producers) -> list[Any] | None:
    """What each operand is made of by op `name`, None for constants; None if one is not."""
    found: list[Any] = []
    for symbol in operands:
        made = None if symbol is None else producers.get(symbol.var)
        if symbol is None or uniform(symbol, producers) is not None:
            found.append(None)
        elif made is not None and made.op.name == name:
            found.append(Symbol(made.inputs[0]))  # type: ignore[arg-type]
        else:
            return None
    return found if any(source is not None for source in found) else None


def fit(symbol: Any, source: Any, shape: tuple[int, ...], producers: Producers) -> Any:
    """An operand in the shape that is computed in."""
    if symbol is None:
        return None
    if source is None:
        value = uniform(symbol, producers)
        return TABLE["full"](size=shape, fill_value=value, dtype=symbol.dtype)
    return source if tuple(source.shape) == shape else TABLE["expand"](source, size=shape)
