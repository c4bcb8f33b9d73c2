"""Algebraic simplification.

Laws for rules: directional, never worsen code, and hold for NaN, infinities and -0.0 without
exception. Each carries its equation. Constants stand on either side; `x` is any value.
"""

from __future__ import annotations

import math
from typing import Any

from ..builder import Symbol
from ..graph import Graph, Node, Var
from ..op import TABLE
from ..types import FLOAT
from .rewrite import rebuild


def run(graph: Graph) -> Graph:
    producers: dict[Var, Node] = {}

    def rule(node: Node, operands: list[Any]) -> Any:
        return RULES[node.op.name](node, operands, producers)

    return rebuild(graph, rule, producers, about=lambda node: node.op.name in RULES)


def uniform(symbol: Any, producers: dict[Var, Node]) -> Any:
    """The number a value is everywhere, or None."""
    node = producers.get(symbol.var)
    while node is not None and node.op.name in ("expand", "view", "permute"):
        node = producers.get(node.inputs[0])  # type: ignore[arg-type]
    if node is None or node.op.name not in ("constant", "full"):
        return None
    return node.attributes["value" if node.op.name == "constant" else "fill_value"]


def same_type(symbol: Any, node: Node) -> bool:
    return bool(symbol.var.type == node.outputs[0].type)


def is_one(value: Any) -> bool:
    return value is not None and value == 1


def simplify_mul(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """x * 1 == x"""
    a, b = operands
    if is_one(uniform(b, producers)) and same_type(a, node):
        return a
    if is_one(uniform(a, producers)) and same_type(b, node):
        return b
    return None


def simplify_div(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """x / 1 == x;  x / c == x * (1 / c) where c is a power of two, so that 1 / c is exact"""
    a, b = operands
    value = uniform(b, producers)
    if is_one(value) and same_type(a, node):
        return a
    if isinstance(value, int | float) and value and node.outputs[0].dtype.is_floating_point:
        mantissa, exponent = math.frexp(abs(float(value)))
        if mantissa == 0.5 and abs(exponent) < 100:
            inverse = TABLE["full"](size=tuple(b.shape), fill_value=1.0 / float(value),
                                    dtype=node.outputs[0].dtype)  # fmt: skip
            return TABLE["mul"](a, inverse)
    return None


def simplify_add(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """x + (-0.0) == x;  for integers x + 0 == x"""
    a, b = operands
    if dict(node.attrs).get("alpha", 1) != 1:
        return None
    for x, other in ((a, b), (b, a)):
        value = uniform(other, producers)
        if value is None or value != 0 or not same_type(x, node):
            continue
        negative_zero = isinstance(value, float) and math.copysign(1.0, value) < 0
        if negative_zero or not (x.dtype.is_floating_point or x.dtype.is_complex):
            return x
    return None


def simplify_sub(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """x - 0.0 == x"""
    a, b = operands
    value = uniform(b, producers)
    if value is None or value != 0 or not same_type(a, node) or dict(node.attrs):
        return None
    positive = not isinstance(value, float) or math.copysign(1.0, value) > 0
    return a if positive else None


def simplify_exp(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """exp(a - log(s)) == exp(a) * (1 / s) where a = x - max(x) and s = sum(exp(a))

    Only there: 1 <= s <= n or s is NaN, so nothing overflows. 16-bit floats keep the logarithm,
    because eager rounds it.
    """
    difference = made_by("sub", operands[0].var, producers)
    if difference is None or node.outputs[0].dtype.itemsize < 4:
        return None
    shifted = difference.inputs[0]
    log = made_by("log", spread_from(difference.inputs[1], producers), producers)
    total = None if log is None else made_by("sum", log.inputs[0], producers)
    powers = None if total is None else made_by("exp", total.inputs[0], producers)
    if powers is None or powers.inputs[0] is not shifted:
        return None
    if not is_less_its_maximum(shifted, total.attributes["dim"], producers):  # type: ignore
        return None
    inverse = TABLE["reciprocal"](Symbol(total.outputs[0]))  # type: ignore[union-attr]
    inverse = TABLE["expand"](inverse, size=node.outputs[0].shape)
    return TABLE["mul"](Symbol(powers.outputs[0]), inverse)


def is_less_its_maximum(var: Any, dim: Any, producers: dict[Var, Node]) -> bool:
    """Is the value x - max(x, dim)?"""
    difference = made_by("sub", var, producers)
    if difference is None:
        return False
    largest = made_by("amax", spread_from(difference.inputs[1], producers), producers)
    same = largest is not None and largest.inputs[0] is difference.inputs[0]
    return same and largest.attributes["dim"] == dim  # type: ignore[union-attr]


def made_by(name: str, var: Any, producers: dict[Var, Node]) -> Node | None:
    """The node that makes a value, if it is one of that op; not a difference with a factor."""
    node = producers.get(var)
    if node is None or node.op.name != name or dict(node.attrs).get("alpha", 1) != 1:
        return None
    return node


def spread_from(var: Any, producers: dict[Var, Node]) -> Any:
    """The value that is expanded to this one, or itself."""
    node = made_by("expand", var, producers)
    return var if node is None else node.inputs[0]


def simplify_neg(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """-(-x) == x"""
    source = through("neg", operands[0], producers)
    return None if source is operands[0] else source


def simplify_cast(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """cast(x, dtype of x) == x;  cast(cast(x, wider float), d) == cast(x, d)"""
    if same_type(operands[0], node):
        return operands[0]
    source = through("cast", operands[0], producers)
    return source.to(node.outputs[0].dtype) if widens(source.dtype, operands[0].dtype) else None


def widens(narrow: Any, wide: Any) -> bool:
    """Does every value of a floating dtype stay itself in another?"""
    if not (narrow.is_floating_point and wide.is_floating_point):
        return False
    return bool(wide.itemsize > narrow.itemsize)


def simplify_power(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """x ** 1 == x"""
    exponent = node.attributes["exponent"]
    return operands[0] if is_one(exponent) and same_type(operands[0], node) else None


def simplify_same(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """clone(x) == x: nothing is written in a graph, and it is differentiated before passes run"""
    return operands[0]


def simplify_view(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """view(x, shape of x) == x;  view(view(x)) == view(x)"""
    source = through("view", operands[0], producers)
    if same_type(source, node):
        return source
    return None if source is operands[0] else TABLE["view"](source, size=node.outputs[0].shape)


def through(name: str, symbol: Any, producers: dict[Var, Node]) -> Any:
    """What a value is made of if `name` made it, else itself."""
    inner = producers.get(symbol.var)
    if inner is None or inner.op.name != name:
        return symbol
    return Symbol(inner.inputs[0])  # type: ignore[arg-type]


def simplify_expand(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """expand(x, shape of x) == x;  expand(expand(x)) == expand(x)"""
    source = through("expand", operands[0], producers)
    if same_type(source, node):
        return source
    return None if source is operands[0] else TABLE["expand"](source, size=node.outputs[0].shape)


def simplify_permute(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """permute(x, identity) == x;  permute(permute(x, p), q) == permute(x, p[q])"""
    dims = node.attributes["dims"]
    source = through("permute", operands[0], producers)
    if source is not operands[0]:
        first = producers[operands[0].var].attributes["dims"]
        dims = tuple(first[d] for d in dims)
    if dims == tuple(range(len(dims))):
        return source
    return None if source is operands[0] else TABLE["permute"](source, dims=dims)


def simplify_extremum(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """amax(x, dim) == x where every dimension of `dim` has size 1"""
    kept = node.attributes.get("keepdim") and same_type(operands[0], node)
    return operands[0] if kept else None


def simplify_sum(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """sum(x, dim) == x + 0.0 where every summed dimension has size 1: sums begin with 0.0"""
    x = simplify_extremum(node, operands, producers)
    if x is None or x.dtype.category < FLOAT:
        return x
    return TABLE["add"](x, TABLE["full"](size=x.shape, fill_value=0.0, dtype=x.dtype))


RULES = {
    "mul": simplify_mul,
    "div": simplify_div,
    "add": simplify_add,
    "sub": simplify_sub,
    "exp": simplify_exp,
    "neg": simplify_neg,
    "cast": simplify_cast,
    "clone": simplify_same,
    "pow_scalar": simplify_power,
    "stop_gradient": simplify_same,
    "view": simplify_view,
    "expand": simplify_expand,
    "permute": simplify_permute,
    "sum": simplify_sum,
    "amax": simplify_extremum,
    "amin": simplify_extremum,
}
