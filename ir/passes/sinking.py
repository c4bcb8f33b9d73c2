"""Sinks expands and reshapes below pointwise ops, so that these compute each value once.

Equations (exact: the same scalars are computed, of the same operands):

    f(expand(a), expand(b))   == expand(f(a, b))       where a and b together are smaller
    f(view(a), view(b))       == view(f(a, b))         a and b of one shape

Constants go with either side, since they are the same everywhere. An expanded value beside one that
is not keeps its expand: there is no less to compute, and codegen folds it into the reader's
indexing.
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

    def rule(node: Node, operands: list[Any]) -> Any:
        found = below_expands(node, operands, producers)
        return below_views(node, operands, producers) if found is None else found

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
