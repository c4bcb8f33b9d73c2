"""Ops of the scheduler's own: what catalogue entries with skeletons are expanded to.

They are not in the catalogue: no user can call them, no graph prints them. Positions and strides
are in elements of row-major values.

window(x)            any strided view; parts may overlap
coordinate()         an int64 that is affine in the indices
joined(*parts)       parts written into regions of one value that together cover it
update(base, x, *i)  base with x added (or assigned) at positions, one after the other
product(a, b)        matrices, with any number of batch dimensions
contraction(a, b)    (*batch, m, *k) and (*batch, *k, *n) to (*batch, m, n): a product whose sides
                     are several dimensions each, so that views need not be matrices
order(x)             places of the elements of ranks `start` up to `stop` along a dimension
running(x)           maxima or minima of the elements up to each along a dimension
search(lines, x)     how many elements of its sorted line come before each element of x
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir.op import Op, Template, View
from ..ir.types import TensorType, int32, int64
from .affine import strides_of

Ints = tuple[int, ...]


@dataclass(frozen=True)
class Own:
    """Lowered by the scheduler itself."""

    kind: str


def _op(name: str, inputs: str, lower: Any, numpy: Any, infer: Callable[..., Any]) -> Op:
    words = inputs.split()
    variadic = next((k for k, w in enumerate(words) if w.startswith("*")), None)
    return Op(
        name=name, inputs=tuple(w.strip("*") for w in words), outputs=("result",),
        optional=frozenset(), variadic=variadic, many_outputs=False, numpy=numpy, infer=infer,
        lower=lower, node=name, kind="private",
    )  # fmt: skip


def _window(x: np.ndarray, *, size: Ints, strides: Ints, offset: int) -> np.ndarray:
    flat = x.reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(flat, size, [s * x.itemsize for s in strides])


def _absent(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("only the scheduler knows this op")


WINDOW = _op("window", "self", View(), _window,
             lambda self, *, size, strides, offset: TensorType(self.dtype, size))  # fmt: skip
COORDINATE = _op("coordinate", "", Own("coordinate"), _absent,
                 lambda *, size, strides, offset, dtype=int64: TensorType(dtype, size))  # fmt: skip
JOINED = _op("joined", "*parts", Own("joined"), _absent,
             lambda *parts, size, regions: TensorType(parts[0].dtype, size))  # fmt: skip
UPDATE = _op("update", "self src *indices", Own("update"), _absent,
             lambda self, src, *indices, strides, offset, found, add, free, wraps: (
                 self))  # fmt: skip
PRODUCT = _op("product", "self other", Template("matmul"), np.matmul,
              lambda self, other: TensorType(
                  self.dtype, (*self.shape[:-1], other.shape[-1])))  # fmt: skip


def _contraction(x: np.ndarray, y: np.ndarray, *, batch: int, inner: int) -> np.ndarray:
    lead, k = x.shape[:batch], math.prod(x.shape[batch + 1 :])
    columns = math.prod(y.shape[batch + inner :])
    return x.reshape(*lead, -1, k) @ y.reshape(*lead, k, columns)


CONTRACTION = _op("contraction", "self other", Template("matmul"), _contraction,
                  lambda self, other, *, batch, inner: TensorType(
                      self.dtype, (*self.shape[: batch + 1],
                                   math.prod(other.shape[batch + inner :]))))  # fmt: skip

ORDER = _op("order", "self", Template("order"), _absent,
            lambda self, *, dim, descending, start, stop: TensorType(
                int64, (*self.shape[:dim], stop - start, *self.shape[dim + 1 :])))  # fmt: skip
RUNNING = _op("running", "self", Template("scan"), _absent, lambda self, *, dim, combine: self)
SEARCH = _op("search", "lines self", Template("search"), _absent,
             lambda lines, self, *, right, out_int32: TensorType(
                 int32 if out_int32 else int64, self.shape))  # fmt: skip


def slices(x: Any, starts: Ints, stops: Ints) -> Any:
    """A rectangular part as a window; the value itself if it is all of it."""
    shape = tuple(x.shape)
    size = tuple(b - a for a, b in zip(starts, stops))
    if size == shape:
        return x
    steps = strides_of(shape)
    return WINDOW(x, size=size, strides=steps, offset=sum(a * s for a, s in zip(starts, steps)))


def region(shape: Ints, starts: Ints) -> tuple[int, Ints]:
    """(offset, strides) of a rectangular part of a value of `shape`."""
    steps = strides_of(shape)
    return sum(a * s for a, s in zip(starts, steps)), steps


def numel(shape: Any) -> int:
    return math.prod(shape)
