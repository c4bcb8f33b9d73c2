"""How results of NumPy evaluations lie in memory, where NumPy and torch do not agree.

Strides decide which `view()` is possible. torch's reductions are row-major whatever they read, and
its pointwise results lie as their operand does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Evaluation = Callable[..., Any]


def memory_order(array: np.ndarray) -> tuple[int, ...] | None:
    """Dimensions from the slowest to the fastest; None if row-major, or if memory has gaps.

    A dimension of size 1 that has another's stride is the faster of the two.
    """
    if array.flags.c_contiguous:
        return None
    shape, strides = array.shape, array.strides
    order = tuple(sorted(range(array.ndim), key=lambda d: (-strides[d], shape[d] == 1, d)))
    return order if array.transpose(order).flags.c_contiguous else None


def order_of(value: Any) -> tuple[int, ...] | None:
    """The memory order of a tensor; None where nothing is known of it, too."""
    array = getattr(value, "_layout", None)
    return None if array is None else memory_order(array)


def like_order_of(value: Any) -> tuple[int, ...] | None:
    """The memory order of a new tensor like this one, which has no gaps where this has some."""
    order = fill_order_of(value)
    if order is None or 0 in value._layout.strides:
        return None
    turned = [d for d in order if value._layout.shape[d] != 1]
    return order if turned != sorted(turned) else None


def fill_order_of(value: Any) -> tuple[int, ...] | None:
    """The dimensions in the order in which torch fills a tensor, None if it is row-major.

    Unlike `order_of` this knows the order of a part of another tensor, too.
    """
    array = getattr(value, "_layout", None)
    if array is None or array.flags.c_contiguous:
        return None
    strides = array.strides
    return tuple(sorted(range(array.ndim), key=lambda d: (-strides[d], array.shape[d] == 1, d)))


def row_major(evaluate: Evaluation) -> Evaluation:
    """The same evaluation with row-major results: NumPy's lie as the operand does."""

    @functools.wraps(evaluate)
    def rows(x: Any, *others: Any, **attrs: Any) -> Any:
        result = evaluate(x, *others, **attrs)
        if x.flags.c_contiguous:
            return result
        return tuple(map(contiguous, result)) if isinstance(result, tuple) else contiguous(result)

    return rows


def contiguous(array: Any) -> Any:
    """Without `ascontiguousarray`'s new dimension for arrays that have none."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def in_memory_order(evaluate: Evaluation) -> Evaluation:
    """The same pointwise evaluation, whose result lies as its first operand does."""

    @functools.wraps(evaluate)
    def ordered(x: Any, *others: Any, **attrs: Any) -> Any:
        order = memory_order(x) if isinstance(x, np.ndarray) else None
        if order is None or any(np.shape(other) not in ((), x.shape) for other in others):
            return evaluate(x, *others, **attrs)
        turned = (other.transpose(order) if np.shape(other) else other for other in others)
        return evaluate(x.transpose(order), *turned, **attrs).transpose(np.argsort(order))

    return ordered
