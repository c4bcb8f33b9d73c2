"""What codegen can do with a node: inline it, fold it into indexing, reduce, or call the host."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..ir.graph import Node
from ..ir.op import Reduce, Scalar, Template, View
from . import indirect
from .private import Own
from .scalar import REGISTER, LLVMReader

MAP, FREE, VIEW, REDUCE, TEMPLATE, HOST = "map", "free", "view", "reduce", "template", "host"
GATHER, JOIN, UPDATE = "gather", "join", "update"
OWN = {"coordinate": FREE, "joined": JOIN, "update": UPDATE}

CONTIGUOUS: set[str] = set()  # templates whose operands must be in row-major order
TEMPLATES: dict[str, Any] = {}  # name -> function(node) that says whether it has a kernel


def kind_of(node: Node) -> str:
    """MAP: a scalar expression of its operands; FREE: of nothing, so it is never stored for reuse;
    VIEW: folded into indexing; GATHER: with indices from memory; TEMPLATE: a skeleton of its own;
    JOIN, UPDATE: see private.py; HOST: the rest."""
    lower = node.op.lower
    if isinstance(lower, View):
        return VIEW
    if not native_types(node):
        return HOST
    if isinstance(lower, Own):
        return OWN[lower.kind]
    if isinstance(lower, Scalar):
        return scalar_kind(node)
    if node.op.name == "iota":
        return FREE
    if isinstance(lower, Reduce) and node.attributes.get("keepdim", True):
        return reduction_kind(node)
    if indirect.can(node):
        return GATHER
    if isinstance(lower, Template) and lower.name in TEMPLATES and TEMPLATES[lower.name](node):
        return TEMPLATE
    return HOST


def native_types(node: Node) -> bool:
    return all(v is None or v.dtype.name in REGISTER for v in (*node.inputs, *node.outputs))


def reduction_kind(node: Node) -> str:
    """A reduction of nothing is a constant, one over dimensions of size 1 is pointwise."""
    shape = node.inputs[0].shape  # type: ignore[union-attr]
    if 0 in shape:
        return FREE
    return REDUCE if any(shape[d] != 1 for d in node.attributes["dim"]) else MAP


def scalar_kind(node: Node) -> str:
    if len(node.outputs) != 1:
        return HOST
    if not node.inputs:
        return FREE
    dtypes = tuple(None if v is None else v.dtype.name for v in node.inputs)
    return MAP if emits(node.op, dtypes, node.attrs, node.outputs[0].dtype.name) else HOST


@lru_cache(maxsize=4096)
def emits(op: Any, dtypes: tuple[str | None, ...], attrs: Any, result: str) -> bool:
    """Whether the native reader takes the op with these dtypes: tried, not declared."""
    s = LLVMReader(dtypes[0] or result)
    operands = [None if d is None else s.argument(f"%x{k}", d) for k, d in enumerate(dtypes)]
    try:
        s.cast(op.lower.emit(s, *operands, **{**op.defaults, **dict(attrs)}), result)
    except (TypeError, KeyError, NotImplementedError, AttributeError):
        return False
    return True


# Rough costs in simple instructions; what is not listed costs 1.
SLOW = """exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh
atanh sigmoid erf erfc erfinv lgamma digamma pow_tensor pow_scalar atan2 hypot"""
MIDDLE = "div sqrt rsqrt reciprocal fmod remainder floor_divide"
COSTLY = 15  # what costs so much is not done twice
COSTS = dict.fromkeys(SLOW.split(), 20) | dict.fromkeys(MIDDLE.split(), 5)


def cost(node: Node) -> int:
    """Instructions per element, roughly."""
    if node.op.name == "pow_scalar" and node.attributes.get("exponent") in (1, 2, 3, -1, 0.5):
        return 2
    found = COSTS.get(node.op.name, 1)
    double = any(v is not None and v.dtype.name == "float64" for v in node.outputs)
    return 2 * found if double else found
