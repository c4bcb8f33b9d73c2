"""Scans along a dimension: cumulative sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Template, define
from ..types import normalize_dim
from ..value import public
from .arithmetic import conj
from .kinds import accumulate_type


def _cumsum(x: np.ndarray, *, dim: int) -> np.ndarray:
    return np.cumsum(x, axis=dim, dtype=x.dtype) if x.ndim else x.copy()


def reverse_cumsum(grad: Any, dim: int) -> Any:
    """The sum of an element and all after it: the adjoint of cumsum."""
    if not grad.ndim:
        return grad
    return cumsum_op(grad.flip((dim,)), dim=dim).flip((dim,))


cumsum_op = define(
    "cumsum", "self -> result", numpy=_cumsum, infer=lambda self, *, dim: self,
    lower=Template("scan"), vjp=dict(self=lambda grad, dim: reverse_cumsum(grad, dim)),
)  # fmt: skip


def _cumprod_vjp(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """sum over k >= i of grad_k * prod_{j <= k, j != i} x_j; exact at zeros by the slow form."""
    if not self.ndim:
        return grad
    quotient = reverse_cumsum(grad * conj(result), dim) / conj(self)
    zero = self == 0
    return quotient.where(zero.logical_not(), _cumprod_slow(grad, self, dim))


def _cumprod_slow(grad: Any, self: Any, dim: int) -> Any:
    """As many products as elements: used where an element is zero."""
    parts = []
    size = self.shape[dim]
    for k in range(size):
        before = self.narrow(dim, 0, k)
        lead = before.prod(dim, keepdim=True)
        after = self.narrow(dim, k + 1, size - k - 1)
        ones = lead.new_ones(lead.shape)
        products = ones.cat_with(after, dim=dim).cumprod(dim) * lead
        parts.append((grad.narrow(dim, k, size - k) * conj(products)).sum(dim, keepdim=True))
    return parts[0].cat_with(*parts[1:], dim=dim)


cumprod_op = define(
    "cumprod", "self -> result", infer=lambda self, *, dim: self, lower=Template("scan"),
    numpy=lambda x, *, dim: np.cumprod(x, axis=dim, dtype=x.dtype) if x.ndim else x.copy(),
    vjp=dict(self=_cumprod_vjp),
)  # fmt: skip


def _scan(op: Any) -> Any:
    def function(input: Any, dim: int, *, dtype: Any = None) -> Any:
        wanted = dtype or accumulate_type(input.dtype)
        if input.dtype is not wanted:
            input = input.to(wanted)
        return op(input, dim=normalize_dim(dim, input.ndim))

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, dim, *, dtype=None)."
    return public(op.name, inplace=True)(function)


cumsum = _scan(cumsum_op)
cumprod = _scan(cumprod_op)
