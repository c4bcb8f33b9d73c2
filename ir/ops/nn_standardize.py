"""Centring and scaling: what layer, group and batch norm share, in NumPy and in ops.

`mean` and `var` are hidden outputs of the norms: a gradient that arrives at them (in double
backward) is part of the rule, `standardize_vjp`, too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType
from .totals import add_up

Ints = tuple[int, ...]

BLOCK = 1 << 18  # bytes normalised at a time where groups are rows: they stay in the cache


def count_of(shape: Ints, dims: Ints) -> int:
    """Elements that a mean is of; moments of none are 0."""
    return max(1, math.prod(shape[d] for d in dims))


def standardize(x: np.ndarray, dims: Ints, eps: float, scale: Any, shift: Any) -> tuple[Any, ...]:
    """(x - mean) / sqrt(var + eps) * scale + shift, with mean and var, dimensions kept."""
    count = x.dtype.type(count_of(x.shape, dims))
    mean = add_up(x, dims, True) / count
    result = x - mean
    var = add_up(result * result, dims, True) / count
    factor = 1 / np.sqrt(var + x.dtype.type(eps))
    if scale is not None and scale.size == factor.size:
        result *= factor * scale  # one factor per group: one pass
    else:
        result *= factor
        if scale is not None:
            result *= scale
    if shift is not None:
        result += shift
    return result, mean, var


def _row_blocks(x: np.ndarray, count: int) -> Any:
    """The leading dimensions as rows, and slices of as many rows as make a block."""
    lead = x.ndim - count
    rows = x.reshape(math.prod(x.shape[:lead]), *x.shape[lead:])
    step = max(1, BLOCK // max(1, rows[:1].nbytes))
    return rows, [slice(k, k + step) for k in range(0, len(rows), step)]


def standardize_rows(x: np.ndarray, count: int, eps: float, scale: Any, shift: Any) -> Any:
    """`standardize` over the trailing dimensions, whose shape scale and shift have."""
    if 0 < x.nbytes <= BLOCK and x.flags.c_contiguous:  # one block
        dims = tuple(range(x.ndim - count, x.ndim))
        result, mean, var = standardize(x, dims, eps, None, None)
        if scale is not None:
            result *= scale
        if shift is not None:
            result += shift
        return result, mean, var
    rows, blocks = _row_blocks(x, count)
    dims = tuple(range(1, 1 + count))
    size = x.dtype.type(count_of(rows.shape, dims))
    result = np.empty(rows.shape, x.dtype)
    moments = np.empty((2, len(rows), *(1,) * count), x.dtype)
    for block in blocks:
        mean = add_up(rows[block], dims, True) / size
        centred = np.subtract(rows[block], mean, out=result[block])
        var = add_up(centred * centred, dims, True) / size
        moments[0, block], moments[1, block] = mean, var
        centred *= 1 / np.sqrt(var + x.dtype.type(eps))
        if scale is not None:
            centred *= scale
        if shift is not None:
            centred += shift
    shape = (*x.shape[: x.ndim - count], *(1,) * count)
    return result.reshape(x.shape), moments[0].reshape(shape), moments[1].reshape(shape)


# Eager gradients without create_graph need no rule in ops: these two entries do the same in fewer
# passes over memory. The compiler sees the ops, by their decomposition.


def _rows_grad(
    grad: np.ndarray, x: np.ndarray, mean: Any, var: Any, scale: Any = None, *, count: int,
    eps: float,
) -> np.ndarray:  # fmt: skip
    """The gradient of the input of a norm over the last `count` dimensions."""
    rows, blocks = _row_blocks(x, count)
    grads = grad.reshape(rows.shape)
    kept = (len(rows), *(1,) * count)
    mean, factor = mean.reshape(kept), 1 / np.sqrt(var + x.dtype.type(eps)).reshape(kept)
    dims = tuple(range(1, 1 + count))
    size = x.dtype.type(math.prod(rows.shape[1:]))
    result = np.empty(rows.shape, x.dtype)
    for block in blocks:
        centred = np.subtract(rows[block], mean[block], out=result[block])
        part = grads[block] if scale is None else grads[block] * scale
        along = add_up(part * centred, dims, True)
        centred *= along * (-(factor[block] ** 2) / size)
        centred += part
        centred -= add_up(part, dims, True) / size
        centred *= factor[block]
    return result.reshape(x.shape)


def _rows_dot(
    grad: np.ndarray, x: np.ndarray, mean: Any, var: Any, *, count: int, eps: float
) -> Any:
    """The gradient of the scale: products with the standardized input, summed over the rows."""
    rows, blocks = _row_blocks(x, count)
    grads = grad.reshape(rows.shape)
    kept = (len(rows), *(1,) * count)
    mean, factor = mean.reshape(kept), 1 / np.sqrt(var + x.dtype.type(eps)).reshape(kept)
    totals = np.zeros((len(blocks), *rows.shape[1:]), x.dtype)
    for total, block in zip(totals, blocks):
        value = rows[block] - mean[block]
        value *= factor[block]
        value *= grads[block]
        total += add_up(value, 0)
    return add_up(totals, 0)


def _rows_grad_expand(
    grad_output: Any, self: Any, mean: Any, var: Any, scale: Any, *, count: int, eps: float
) -> Any:
    dims = tuple(range(self.ndim - count, self.ndim))
    grad = grad_output if scale is None else grad_output * scale
    return standardize_vjp(self, mean, var, dims, eps, grad, None, None)


def rows_dot(grad_output: Any, self: Any, mean: Any, var: Any, *, count: int, eps: float) -> Any:
    products = grad_output * ((self - mean) * (var + eps).rsqrt())
    return products.sum(tuple(range(self.ndim - count))) if self.ndim > count else products


def _rows_samples(scaled: bool) -> Any:
    def make(rng: np.random.Generator) -> list[Any]:
        shapes = [(3, 4, 5), (3, 4, 5), (3, 4, 1), (3, 4, 1), (5,)]
        arrays = [rng.standard_normal(shape) for shape in shapes]
        arrays[3] = np.abs(arrays[3])
        return [(tuple(arrays[: 5 if scaled else 4]), {"count": 1, "eps": 1e-5})]

    return make


norm_rows_grad = define(
    "norm_rows_grad", "grad_output self mean var scale? -> result", numpy=_rows_grad,
    infer=lambda grad_output, self, *_, count, eps: self, lower=Decompose(_rows_grad_expand),
    samples=_rows_samples(True),
)  # fmt: skip
norm_rows_dot = define(
    "norm_rows_dot", "grad_output self mean var -> result", numpy=_rows_dot,
    infer=lambda grad_output, self, *_, count, eps: TensorType(
        self.dtype, self.shape[self.ndim - count :]),
    lower=Decompose(rows_dot), samples=_rows_samples(False),
)  # fmt: skip


def standardize_vjp(
    self: Any, mean: Any, var: Any, dims: Ints, eps: float, grad: Any, grad_mean: Any, grad_var: Any
) -> Any:
    """The gradient of the input, given that of the standardized value and of its moments."""
    count = count_of(self.shape, dims)
    centred = self - mean
    total = None
    if grad is not None:
        factor = (var + eps).rsqrt()
        along = (grad * centred).sum(dims, keepdim=True) * (factor * factor / count)
        level = grad.sum(dims, keepdim=True) / count
        total = (grad - level - centred * along) * factor
    if grad_mean is not None:
        share = (grad_mean / count).expand(tuple(self.shape))
        total = share if total is None else total + share
    if grad_var is not None:
        share = centred * (grad_var * (2 / count))
        total = share if total is None else total + share
    return total


def in_ops(self: Any, dims: Ints, eps: float) -> tuple[Any, Any, Any]:
    """The same in ops, for the compiler."""
    count = count_of(self.shape, dims)
    mean = self.sum(dims, keepdim=True) / count
    centred = self - mean
    var = (centred * centred).sum(dims, keepdim=True) / count
    return centred * (var + eps).rsqrt(), mean, var


def affine(value: Any, weight: Any, bias: Any, shape: Ints) -> Any:
    if weight is not None:
        value = value * weight.view(shape)
    return value if bias is None else value + bias.view(shape)


def to_dtype(x: np.ndarray, *values: Any) -> list[Any]:
    """Parameters in the dtype computed in: half-precision inputs may have float32 ones."""
    return [v if v is None else v.astype(x.dtype, copy=False) for v in values]
