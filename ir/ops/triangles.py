"""Triangles and diagonals of matrices: tril, triu, trace, diag, diag_embed, diagflat."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dims import is_dim
from ..op import Decompose, define
from ..types import TensorType, bool_, int64, no_kernel, normalize_dim
from ..value import public
from .creation import iota
from .kinds import accumulate_type
from .slices import diagonal_count, diagonal_op, diagonal_scatter
from .views import zeros


def _triangle(name: str, function: Any, keeps: Any) -> Any:
    def expand(self: Any, *, diagonal: int = 0) -> Any:
        rows, columns = self.shape[-2:]
        row = iota(size=rows, dtype=int64).view((rows, 1))
        mask = keeps(iota(size=columns, dtype=int64) - row, diagonal)
        return self.where(mask, self.new_zeros(()))

    op = define(
        name, "self -> result", moves_data=True, infer=lambda self, **_: self,
        numpy=lambda x, *, diagonal=0: function(
            np.asarray(x, order="C") if x.ndim > 2 else x, diagonal),
        lower=Decompose(expand),
        samples=lambda rng: [((rng.standard_normal((2, 3, 4)),), {"diagonal": k})
                             for k in (0, 1, -1)],
        vjp=dict(self=lambda grad, diagonal: op(grad, diagonal=diagonal)),
    )  # fmt: skip

    def function_(input: Any, diagonal: int = 0) -> Any:
        if input.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return op(input, diagonal=diagonal if is_dim(diagonal) else int(diagonal))

    function_.__name__ = function_.__qualname__ = name
    function_.__doc__ = f"{name}(input, diagonal=0): the other triangle becomes zero."
    public(name, inplace=True, overlap="copied")(function_)
    return op


tril_op = _triangle("tril", np.tril, lambda distance, diagonal: distance <= diagonal)
triu_op = _triangle("triu", np.triu, lambda distance, diagonal: distance >= diagonal)


# --- trace ---------------------------------------------------------------------------------------


def _trace_rule(grad: Any, self_type: TensorType) -> Any:
    count = diagonal_count(self_type.shape, 0, 0, 1)
    return diagonal_scatter(zeros(TensorType(grad.dtype, self_type.shape)), grad.expand((count,)),
                            offset=0, dim1=0, dim2=1)  # fmt: skip


trace_op = define(
    "trace", "self -> result",
    numpy=lambda x: np.add.reduce(np.diagonal(x), dtype=np.int64 if x.dtype.kind in "iu" else None),
    infer=lambda self: TensorType(accumulate_type(self.dtype), ()),
    lower=Decompose(lambda self: self.diagonal().sum()),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {})], vjp=dict(self=_trace_rule),
)  # fmt: skip


@public("trace", out="none")
def trace(input: Any) -> Any:
    """trace(input): the sum of the diagonal of a matrix."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    if input.dtype is bool_:
        raise no_kernel("trace", input.dtype)
    return trace_op(input)


# --- diagonals as matrices -----------------------------------------------------------------------


def _embedded(shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> tuple[int, ...]:
    """The shape of diag_embed: the last dimension becomes two, at dim1 and dim2."""
    size = shape[-1] + abs(offset)
    result = list(shape[:-1])
    for place in sorted((dim1, dim2)):
        result.insert(place, size)
    return tuple(result)


def _diag_embed(x: np.ndarray, *, offset: int = 0, dim1: int, dim2: int) -> np.ndarray:
    result = np.zeros(_embedded(x.shape, offset, dim1, dim2), x.dtype)
    window = np.moveaxis(result, (dim1, dim2), (-2, -1))
    place = np.arange(x.shape[-1])
    window[..., place + max(0, -offset), place + max(0, offset)] = x
    return result


diag_embed_op = define(
    "diag_embed", "self -> result", moves_data=True, numpy=_diag_embed,
    infer=lambda self, *, offset=0, dim1, dim2: TensorType(
        self.dtype, _embedded(self.shape, offset, dim1, dim2)),
    lower=Decompose(lambda self, *, offset=0, dim1, dim2: diagonal_scatter(
        self.new_zeros(_embedded(tuple(self.shape), offset, dim1, dim2)), self,
        offset=offset, dim1=dim1, dim2=dim2)),
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {"offset": k, "dim1": a, "dim2": b})
                         for k, a, b in ((0, 1, 2), (1, 0, 2), (-1, 2, 0))],
    vjp=dict(self=lambda grad, offset, dim1, dim2: diagonal_op(
        grad, offset=offset, dim1=dim1, dim2=dim2)),
)  # fmt: skip


@public("diag_embed")
def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """diag_embed(input, offset=0, dim1=-2, dim2=-1): vectors as diagonals of matrices."""
    first, second = normalize_dim(dim1, input.ndim + 1), normalize_dim(dim2, input.ndim + 1)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diag_embed_op(input, offset=int(offset), dim1=first, dim2=second)


diagonal_copy = define(
    "diagonal_copy", "self -> result", moves_data=True, node="DiagonalBackward0_copy",
    numpy=lambda x, *, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2).copy(),
    infer=diagonal_op.infer,
    lower=Decompose(lambda self, *, offset=0, dim1=0, dim2=1: diagonal_op(
        self, offset=offset, dim1=dim1, dim2=dim2)),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"offset": 1, "dim1": 0, "dim2": 1})],
    vjp=dict(self=lambda grad, self_type, offset, dim1, dim2: diagonal_scatter(
        zeros(TensorType(grad.dtype, self_type.shape)), grad, offset=offset, dim1=dim1,
        dim2=dim2)),
)  # fmt: skip


@public("diag")
def diag(input: Any, diagonal: int = 0) -> Any:
    """diag(input, diagonal=0): a vector as a matrix, or the diagonal of a matrix."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diagonal_copy(input, offset=int(diagonal), dim1=0, dim2=1)


@public("diagflat")
def diagflat(input: Any, offset: int = 0) -> Any:
    """diagflat(input, offset=0): all elements as the diagonal of a matrix."""
    return diag_embed(input.reshape((-1,)) if input.numel() else input.reshape((0,)), offset)
