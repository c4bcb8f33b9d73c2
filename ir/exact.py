"""Which pointwise ops give the same bits whoever computes them: found by watching, not declared.

A scalar expression that rounds at most once, by an operation that IEEE 754 defines, has one result.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from .op import Op, Scalar, View
from .scalar import BITWISE, CLASSIFY, COMPARISONS, EXTREMA, LOGICAL, ROUNDING
from .scalar_python import PythonReader
from .scalar_python import Scalar as Value

ROUNDS_ONCE = {"add", "sub", "mul", "div", "sqrt", "reciprocal", "cast"}
ROUNDS_NEVER = {"const", "select", "neg", "abs", "sign", "copysign", "logical_not", "bitwise_not",
                *CLASSIFY, *COMPARISONS, *EXTREMA, *LOGICAL, *BITWISE, *ROUNDING}  # fmt: skip


class Watcher:
    """A scalar reader that notes what it is asked."""

    def __init__(self) -> None:
        self.reader = PythonReader("float32")
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self.reader, name)


def is_exact(op: Op, settings: tuple[tuple[str, Any], ...] = ()) -> bool:
    """Has a call of the op on floats with these attributes one result, whoever computes it?"""
    if isinstance(op.lower, View):
        return True
    return isinstance(op.lower, Scalar) and _rounds_at_most_once(op, settings)


def is_arithmetic(op: Op, settings: tuple[tuple[str, Any], ...] = ()) -> bool:
    """Is a call of the op a sum, a difference or a product, and nothing else?"""
    if not isinstance(op.lower, Scalar):
        return False
    return _asked(op, settings) in (["add"], ["sub"], ["mul"])


def _rounds_at_most_once(op: Op, settings: tuple[tuple[str, Any], ...]) -> bool:
    asked = _asked(op, settings)
    if asked is None:
        return False
    rounded = [name for name in asked if name in ROUNDS_ONCE]
    return len(rounded) <= 1 and ROUNDS_NEVER.issuperset(set(asked) - ROUNDS_ONCE)


@lru_cache(maxsize=1024)
def _asked(op: Op, settings: tuple[tuple[str, Any], ...]) -> list[str] | None:
    """What the op's scalar expression asks of a reader, in order; None if it takes no floats."""
    watcher = Watcher()
    operands = [Value(np.ones(1, np.float32), "float32") for _ in op.inputs]
    try:
        with np.errstate(all="ignore"):
            op.lower.emit(watcher, *operands, **{**op.defaults, **dict(settings)})
    except (AttributeError, TypeError, KeyError, ValueError, NotImplementedError):
        return None  # it takes other dtypes: nothing is known
    return watcher.asked
