"""Which ops of the catalogue have native code, and of what kind."""

from __future__ import annotations

from ..ir.op import TABLE, Decompose, Op, Reduce, Scalar, Template, View
from . import assemble, indirect  # noqa: F401  enters templates and expansions
from .classify import TEMPLATES
from .expand import RULES

FUSED, FOLDED, KERNEL, PARTS, HOST = (
    "fused", "folded into indexing", "own kernel", "by its parts", "host call")  # fmt: skip


def how(op: Op) -> str:
    """How an op runs in a compiled graph, for the dtypes that native code has."""
    lower = op.lower
    if op.random:
        return HOST
    if op.name in RULES or isinstance(lower, Decompose):
        return PARTS
    if isinstance(lower, Scalar | Reduce) or op.name == "iota":
        return FUSED
    if isinstance(lower, View) or op.name in indirect.OPS:
        return FOLDED
    if isinstance(lower, Template) and lower.name in TEMPLATES:
        return KERNEL
    return HOST


def coverage() -> dict[str, str]:
    """Each op's name and how it runs."""
    return {name: how(op) for name, op in sorted(TABLE.items())}
