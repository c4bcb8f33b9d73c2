"""Norms of matrices, condition numbers, and distances between rows (cdist)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import must_be
from ..op import Decompose, define
from ..types import TensorType, broadcast_shapes, normalize_dim, type_word
from ..value import public
from .kinds import refuse, require_value
from .linalg_common import check_float, check_matrix, linalg
from .linalg_det import inverse_op
from .linalg_factor import svdvals
from .norms import check_dtype
from .norms import vector_norm as norm_of_vectors
from .precision import full_precision
from .products import drawn, matmul

# --- norms ---------------------------------------------------------------------------------------


@linalg("vector_norm")
def vector_norm(
    input: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """linalg.vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None)."""
    if isinstance(ord, str):
        raise must_be("linalg_vector_norm", "ord", "Number", ord, 2)
    return norm_of_vectors(input, ord, dim, keepdim, dtype=dtype)


def _check_matrix_norm(input: Any, dim: Any, dtype: Any) -> tuple[int, int]:
    name = "linalg.matrix_norm"
    check_matrix(name, input)
    check_float(name, input, low=True)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    first, second = (normalize_dim(d, input.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    check_dtype(name, input, dtype)
    return first, second


@linalg("matrix_norm")
def matrix_norm(
    input: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """linalg.matrix_norm(A, ord='fro', dim=(-2, -1), keepdim=False, *, dtype=None)."""
    if isinstance(dim, int):
        raise must_be("linalg_matrix_norm", "dim", "tuple of ints", dim)
    if not isinstance(ord, int | float | str):
        raise must_be("linalg_matrix_norm", "ord", "Number or str", ord, 2)
    rows, columns = _check_matrix_norm(input, dim, dtype)
    if ord == "fro":
        return norm_of_vectors(input, 2, (rows, columns), keepdim, dtype=dtype)
    matrix = input if dtype is None else input.to(dtype)
    if ord in ("nuc", 2, -2):
        check_float("linalg.matrix_norm", matrix)
        order = [d for d in range(input.ndim) if d not in (rows, columns)] + [rows, columns]
        result = _of_singular_values(svdvals(matrix.permute(order)), ord)
        if not keepdim:
            return result
        back = [order.index(d) for d in range(input.ndim)]
        return result.unsqueeze(-1).unsqueeze(-1).permute(back)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    along, across = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = norm_of_vectors(matrix, 1, along, keepdim)
    across -= 0 if keepdim or along > across else 1
    return _extreme(sums, ord, across, keepdim)


def _of_singular_values(values: Any, ord: Any) -> Any:
    return values.sum(-1) if ord == "nuc" else _extreme(values, ord, -1, False)


def _extreme(values: Any, ord: float, dim: int, keepdim: bool) -> Any:
    """The largest for a positive order; none is 0. The smallest for a negative one."""
    if ord < 0:
        return values.amin(dim, keepdim)
    if not values.shape[dim]:
        return values.detach().sum(dim, keepdim)
    return values.amax(dim, keepdim)


@linalg("norm")
def norm(
    input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """linalg.norm(A, ord=None, dim=None, keepdim=False, *, dtype=None)."""
    if dim is not None:
        dim = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dim) not in (1, 2):
            raise RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                               f"{list(dim)}")  # fmt: skip
    elif ord is not None and input.ndim not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D "
                           f"or 2D. Got {input.ndim}D.")  # fmt: skip
    if ord is not None and (len(dim) == 2 if dim is not None else input.ndim == 2):
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@public("nuclear_norm", method=False)
def nuclear_norm(input: Any, dim: Any = (-2, -1), keepdim: bool = False) -> Any:
    """nuclear_norm(input, dim=(-2, -1), keepdim=False): the sum of the singular values."""
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = (-2, -1), dim
    return matrix_norm(input, "nuc", dim, keepdim)


@public("frobenius_norm", method=False)
def frobenius_norm(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """frobenius_norm(input, dim, keepdim=False): the 2-norm over one or two dimensions."""
    return vector_norm(input, 2, dim, keepdim)


@linalg("cond", out="safe linalg.cond result")
@full_precision
def cond(input: Any, p: Any = None) -> Any:
    """linalg.cond(input, p=None): norm(A) * norm(A^-1) for the norm `p`."""
    check_matrix("linalg.cond", input)
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}; use None, 'fro', 'nuc', 1, "
                           "-1, 2, -2, inf or -inf")  # fmt: skip
    if 0 in tuple(input.shape):
        return input.new_zeros(tuple(input.shape[:-2]), dtype=input.dtype.to_real())
    if p is None or p in (2, -2):
        values = svdvals(input)
        largest, smallest = values.narrow(-1, 0, 1), values.narrow(-1, values.shape[-1] - 1, 1)
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError("linalg.cond: A must be batches of square matrices, but they are "
                           f"{input.shape[-2]} by {input.shape[-1]} matrices")  # fmt: skip
    if p == "nuc":
        values = svdvals(input)
        return values.sum(-1) * (1 / values).sum(-1)
    inverse, info = inverse_op(input)
    inverse = inverse.masked_fill(info.gt(0).unsqueeze(-1).unsqueeze(-1), math.inf)
    result = matrix_norm(input, p) * matrix_norm(inverse, p)
    return result.nan_to_num(math.inf, math.inf, -math.inf)


# --- distances -----------------------------------------------------------------------------------


def _pairs(x1: Any, x2: Any) -> Any:
    """All differences of a row of x1 and a row of x2."""
    return x1[..., :, None, :] - x2[..., None, :, :]


def _cdist(x1: np.ndarray, x2: np.ndarray, *, p: float) -> np.ndarray:
    """Chunks of rows keep the table of differences small."""
    lead = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, columns, width = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    result = np.zeros((*lead, rows, columns), x1.dtype)
    if not width or not result.size:
        return result
    step = max(1, (1 << 22) // max(1, columns * width * math.prod(lead)))
    for start in range(0, rows, step):
        gaps = np.abs(_pairs(x1[..., start : start + step, :], x2))
        result[..., start : start + step, :] = _lengths(gaps, p)
    return result


def _lengths(gaps: np.ndarray, p: float) -> Any:
    if p == 0:
        return (gaps != 0).sum(-1).astype(gaps.dtype)
    if p == 1:
        return gaps.sum(-1)
    if p == 2:
        return np.sqrt((gaps * gaps).sum(-1))
    if math.isinf(p):
        return gaps.max(-1)
    return np.power(np.power(gaps, gaps.dtype.type(p)).sum(-1), gaps.dtype.type(1 / p))


def _cdist_slope(grad: Any, a: Any, b: Any, result: Any, p: float) -> Any:
    """The gradient of `a`; zero where two rows are equal."""
    if p == 0:
        return a * 0
    if p == 2:
        weight = (grad / result).masked_fill(result.eq(0), 0)
        return a * weight.sum(-1, keepdim=True) - matmul(weight, b)
    gaps = a.unsqueeze(-2) - b.unsqueeze(-3)
    spread, length = grad.unsqueeze(-1), result.unsqueeze(-1)
    if p == 1:
        return (gaps.sign() * spread).sum(-2)
    if math.isinf(p):
        return (gaps.sign() * gaps.abs().eq(length) * spread).sum(-2)
    size = gaps.abs().pow(p - 1).masked_fill(gaps.eq(0), 0)
    return (gaps.sign() * size * (spread * length.pow(1 - p)).masked_fill(length.eq(0), 0)).sum(-2)


def _cdist_infer(x1: TensorType, x2: TensorType, **_: Any) -> TensorType:
    lead = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return TensorType(x1.dtype, (*lead, x1.shape[-2], x2.shape[-2]))


cdist_op = define(
    "cdist", "x1 x2 -> result", numpy=_cdist, infer=_cdist_infer,
    samples=drawn(*(((3, 4), (2, 4), {"p": p}) for p in (1.0, 2.0, 3.0, math.inf)),
                  ((2, 1, 3, 4), (3, 2, 4), {"p": 1.5})),
    vjp=dict(x1=lambda grad, x1, x2, result, p: _cdist_slope(grad, x1, x2, result, p),
             x2=lambda grad, x1, x2, result, p: _cdist_slope(grad.mT, x2, x1, result.mT, p)),
)  # fmt: skip


def _euclidean(x1: np.ndarray, x2: np.ndarray) -> Any:
    """By |a|^2 + |b|^2 - 2 ab: one matrix product, exact zeros may become small numbers."""
    refuse("euclidean_dist", "c", x1, x2)
    squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
    return np.sqrt(np.maximum(squares - 2 * (x1 @ np.swapaxes(x2, -2, -1)), 0))


euclidean_op = define(
    "euclidean_dist", "x1 x2 -> result", numpy=_euclidean, infer=_cdist_infer,
    samples=drawn(((3, 4), (2, 4), {})),
    lower=Decompose(lambda x1, x2: (
        (x1 * x1).sum(-1, keepdim=True) + (x2 * x2).sum(-1, keepdim=True).mT
        - 2 * matmul(x1, x2.mT)).clamp_min(0).sqrt()),
    vjp=dict(x1=lambda grad, x1, x2, result: _cdist_slope(grad, x1, x2, result, 2),
             x2=lambda grad, x1, x2, result: _cdist_slope(grad.mT, x2, x1, result.mT, 2)),
)  # fmt: skip
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
          "donot_use_mm_for_euclid_dist")  # fmt: skip


@public("cdist", method=False, out="none")
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = _MODES[0]) -> Any:
    """cdist(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')."""
    for name, x in (("X1", x1), ("X2", x2)):
        require_value("cdist", x, name.lower(), int(name[1]) - 1)
        if x.ndim < 2:
            raise RuntimeError("cdist only supports at least 2D tensors, "
                               f"{name} got: {x.ndim}D")  # fmt: skip
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: "
                               f"{type_word(x.dtype)}")  # fmt: skip
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError("X1 and X2 must have the same number of columns. X1: "
                           f"{x1.shape[-1]} X2: {x2.shape[-1]}")  # fmt: skip
    if x1.dtype is not x2.dtype:
        raise RuntimeError(f"expected scalar type {type_word(x1.dtype)} but found "
                           f"{type_word(x2.dtype)}")  # fmt: skip
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    large = x1.shape[-2] > 25 or x2.shape[-2] > 25
    if p == 2 and (compute_mode == _MODES[1] or (compute_mode == _MODES[0] and large)):
        return euclidean_op(x1, x2)
    return cdist_op(x1, x2, p=float(p))
