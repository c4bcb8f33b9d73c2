"""Index arithmetic: where an element of a value is, as a linear function of loop indices.

An `Expr` gives the flat (row-major) position of an element of a value for each point of an
iteration space. Because it is flat, reshapes change nothing; other views are strided, so they
compose by splitting the position into the view's dimensions (`delinear`) and taking the view's
strides. Where a split does not fall on loop boundaries, `Split` asks for a loop to be cut in two;
where it never can, `Unfoldable` says that the viewed value has to be stored first.

Dynamic terms are positions that come from index tensors at run time: (factor, (Var, Expr)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np


class Expr(NamedTuple):
    """offset + sum of coefs[d] * index[d] + sum of factor * dynamic index."""

    coefs: tuple[int, ...]
    offset: int = 0
    dynamic: tuple[tuple[int, Any], ...] = ()

    def depends_on(self) -> frozenset[int]:
        """The loops it varies with, those of its dynamic indices included."""
        found = {d for d, c in enumerate(self.coefs) if c}
        for _, (_, index) in self.dynamic:
            found |= index.depends_on()
        return frozenset(found)


class Split(Exception):
    """Loop `dim` has to become two, the inner one of size `inner`."""

    def __init__(self, dim: int, inner: int):
        self.dim, self.inner = dim, inner


class Unfoldable(Exception):
    """No affine index exists; `node` is the view whose result must be stored."""

    node: Any = None


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    result, step = [], 1
    for size in reversed(shape):
        result.append(step)
        step *= size
    return tuple(reversed(result))


def natural(sizes: Sequence[int], dims: Sequence[int] | None = None) -> Expr:
    """The position when the loops `dims` (all by default) run over a value in row-major order."""
    dims = range(len(sizes)) if dims is None else dims
    coefs = [0] * len(sizes)
    step = 1
    for d in sorted(dims, reverse=True):
        coefs[d] = 0 if sizes[d] == 1 else step
        step *= sizes[d]
    return Expr(tuple(coefs))


def scaled(e: Expr, factor: int) -> Expr:
    return Expr(tuple(c * factor for c in e.coefs), e.offset * factor,
                tuple((f * factor, key) for f, key in e.dynamic if factor))  # fmt: skip


def plus(a: Expr, b: Expr) -> Expr:
    coefs = tuple(x + y for x, y in zip(a.coefs, b.coefs))
    return Expr(coefs, a.offset + b.offset, a.dynamic + b.dynamic)


def split(e: Expr, dim: int, inner: int) -> Expr:
    """The same position after loop `dim` became two."""
    c = e.coefs[dim]
    coefs = (*e.coefs[:dim], c * inner, c, *e.coefs[dim + 1 :])
    dynamic = tuple((f, (var, split(i, dim, inner))) for f, (var, i) in e.dynamic)
    return Expr(coefs, e.offset, dynamic)


def span(e: Expr, sizes: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest value of the affine part, offset left out."""
    ends = [c * (n - 1) for c, n in zip(e.coefs, sizes) if n]
    return sum(x for x in ends if x < 0), sum(x for x in ends if x > 0)


def divide(e: Expr, by: int, sizes: Sequence[int]) -> tuple[Expr, Expr]:
    """Quotient and remainder, both affine; raises Split or Unfoldable."""
    if by <= 1:
        return e, Expr((0,) * len(sizes))
    over = tuple(c // by if c % by == 0 else 0 for c in e.coefs)
    rest = tuple(0 if c % by == 0 else c for c in e.coefs)
    if any(f % by for f, _ in e.dynamic):
        raise Unfoldable
    low, high = span(Expr(rest), sizes)
    quotient = (e.offset + low) // by
    left = e.offset - quotient * by
    if left + high >= by:
        for d, c in enumerate(rest):
            inner = by // c if c > 0 and by % c == 0 else 0
            if inner > 1 and sizes[d] > inner and sizes[d] % inner == 0:
                raise Split(d, inner)
        raise Unfoldable
    dynamic = tuple((f // by, key) for f, key in e.dynamic)
    return Expr(over, quotient, dynamic), Expr(rest, left)


def delinear(e: Expr, shape: Sequence[int], sizes: Sequence[int]) -> list[Expr]:
    """The position in each dimension of `shape`."""
    parts = []
    for size in reversed(shape[1:]):
        e, rest = divide(e, size, sizes)
        parts.append(rest)
    if shape:
        parts.append(e)
    return parts[::-1]


class Strided(NamedTuple):
    """A view of a row-major value: position of element i is offset + sum(i[d] * strides[d])."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@lru_cache(maxsize=4096)
def _probe(op: Any, shape: tuple[int, ...], attrs: tuple[Any, ...]) -> Strided:
    ghost = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, strides_of(shape))
    seen = op.numpy(ghost, **dict(attrs))
    offset = seen.__array_interface__["data"][0] - ghost.__array_interface__["data"][0]
    if 0 in seen.shape:
        return Strided(seen.shape, (0,) * seen.ndim, 0)
    return Strided(seen.shape, seen.strides, offset)


def strided(node: Any) -> Strided:
    """What a view node does to memory: its NumPy form is asked, on an array without memory."""
    source = node.inputs[0].shape
    if 0 in source:
        shape = node.outputs[0].shape
        return Strided(shape, (0,) * len(shape), 0)
    return _probe(node.op, source, node.attrs)


def merged(view: Strided) -> Strided:
    """Without dimensions of size 1, and with those joined that lie behind each other."""
    shape: list[int] = []
    steps: list[int] = []
    for size, step in zip(view.shape, view.strides):
        if size == 1:
            continue
        if steps and steps[-1] == step * size:
            shape[-1] *= size
            steps[-1] = step
        else:
            shape.append(size)
            steps.append(step)
    return Strided(tuple(shape), tuple(steps), view.offset)


def through(node: Any, e: Expr, sizes: Sequence[int]) -> Expr:
    """The position in a view's source, given the position `e` in its result."""
    view = merged(strided(node))
    if 0 in view.shape:
        return Expr((0,) * len(sizes))
    result = Expr((0,) * len(sizes), view.offset)
    try:
        for part, step in zip(delinear(e, view.shape, sizes), view.strides):
            result = plus(result, scaled(part, step))
    except Unfoldable as error:
        error.node = node
        raise
    return result


def forward(node: Any, e: Expr, sizes: Sequence[int]) -> Expr | None:
    """The position in a view's result, given that in its source; None if not one to one."""
    view = strided(node)
    if math.prod(view.shape) != math.prod(node.inputs[0].shape) or view.offset:
        return None
    kept = [(step, d) for d, step in enumerate(view.strides) if view.shape[d] != 1]
    order = [d for _, d in sorted(kept, key=lambda item: -item[0])]
    shape = [view.shape[d] for d in order]
    if strides_of(shape) != tuple(view.strides[d] for d in order):
        return None
    wanted = strides_of(view.shape)
    result = Expr((0,) * len(sizes))
    for d, part in zip(order, delinear(e, shape, sizes)):
        result = plus(result, scaled(part, wanted[d]))
    return result
