"""Scans along a dimension: running sums, products, extrema and logarithms of sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import as_dtype
from ..bind import state
from ..op import Template, define
from ..types import FLOAT, TensorType, bool_, int64, no_kernel, normalize_dim
from ..value import public
from .accumulate import scan
from .arithmetic import conj
from .kinds import accumulate_type
from .reduce import any_known
from .results import named_result
from .views import zeros


def _cumsum(x: np.ndarray, *, dim: int) -> np.ndarray:
    if not x.ndim:
        return x.copy()
    total = scan(np.add, x, dim)
    total += total.dtype.type(0)  # sums begin with 0.0: a first -0.0 does not show
    return total


def reverse_cumsum(grad: Any, dim: int) -> Any:
    """The sum of an element and all after it: the adjoint of cumsum."""
    if not grad.ndim:
        return grad
    return cumsum_op(grad.flip((dim,)), dim=dim).flip((dim,))


cumsum_op = define(
    "cumsum", "self -> result", numpy=_cumsum, infer=lambda self, *, dim: self,
    lower=Template("scan"),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in (0, 1)],
    vjp=dict(self=lambda grad, dim: reverse_cumsum(grad, dim)),
)  # fmt: skip


def _cumprod_vjp(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """sum over k >= i of grad_k * prod_{j <= k, j != i} x_j.

    The quotient's own derivative is wrong at zeros, so there the second order takes the slow form.
    By a quotient; of the zeros of a line only the first has a gradient: products without it.
    """
    if not self.ndim or not self.numel():
        return grad
    zero = self.eq(0)
    known = any_known(zero)
    if known is False:
        return reverse_cumsum(grad * conj(result), dim) / conj(self)
    if state.grad_enabled:
        return _cumprod_slow(grad, self, dim)
    quotient = reverse_cumsum(grad * conj(result), dim) / conj(self.masked_fill(zero, 1))
    first = zero.logical_and(zero.cumsum(dim).eq(1))
    without = cumprod_op(self.masked_fill(first, 1), dim=dim)
    return reverse_cumsum(grad * conj(without), dim).where(first, quotient)


def _cumprod_slow(grad: Any, self: Any, dim: int) -> Any:
    """As many products as elements: right at zeros to every order."""
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
    numpy=lambda x, *, dim: scan(np.multiply, x, dim) if x.ndim else x.copy(),
    samples=lambda rng: [((rng.standard_normal((3, 4)),),
        {"dim": 0}), ((np.array([1.5, 0.0, 2.0, 0.0, 3.0]),), {"dim": 0})],
    vjp=dict(self=_cumprod_vjp),
)  # fmt: skip


def _scan(op: Any) -> Any:
    def function(input: Any, dim: int, *, dtype: Any = None) -> Any:
        wanted = as_dtype(dtype, op.name) or accumulate_type(input.dtype)
        if wanted is bool_:
            raise no_kernel(f"{op.name}_out_cpu", bool_)
        if input.dtype is not wanted:
            input = input.to(wanted)
        return op(input, dim=normalize_dim(dim, input.ndim))

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, dim, *, dtype=None)."
    return public(op.name, inplace=True, out="any")(function)


cumsum = _scan(cumsum_op)
cumprod = _scan(cumprod_op)


# --- running extrema -----------------------------------------------------------------------------


def _running(name: str, ufunc: Any) -> Any:
    """cummax or cummin: the latest of equals has the index; NaN stays."""

    def evaluate(x: np.ndarray, *, dim: int) -> Any:
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        values = scan(ufunc, x, dim)
        hit = x == values
        if x.dtype.kind == "f":
            hit |= np.isnan(x)
        steps = np.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim - 1))
        indices = scan(np.maximum, np.where(hit, steps, 0), dim)
        return np.take_along_axis(x, indices, dim), indices

    op = define(
        name, "self -> values indices", numpy=evaluate, lower=Template("running"),
        infer=lambda self, *, dim: (self, TensorType(int64, self.shape)),
        vjp=dict(self=lambda grad_values, self_type, indices, dim: (
            zeros(TensorType(grad_values.dtype, self_type.shape)).scatter_add(
                dim, indices, grad_values) if self_type.shape else grad_values)),
        samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in (0, 1)],
    )  # fmt: skip

    def function(input: Any, dim: int) -> Any:
        if input.dtype.is_complex:
            raise no_kernel(f"{name}_cpu", input.dtype)
        result = op(input, dim=normalize_dim(dim, input.ndim))
        return named_result(f"{name} values indices", result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, dim): values and indices."
    return public(name)(function)


cummax = _running("cummax", np.maximum)
cummin = _running("cummin", np.minimum)


# --- logcumsumexp --------------------------------------------------------------------------------


def _logcumsumexp(x: np.ndarray, *, dim: int) -> Any:
    if not x.ndim or not x.size:
        return x.copy()
    if x.dtype.kind == "f":
        return scan(np.logaddexp, x, dim)
    result = np.array(x)
    lines = np.moveaxis(result, dim, 0)
    for k in range(1, len(lines)):  # all lines a step at a time
        before, here = lines[k - 1 : k], lines[k : k + 1]
        swap = before.real > here.real
        low, high = np.where(swap, here, before), np.where(swap, before, here)
        here[...] = high + np.log1p(np.exp(low - high))
    return result


def _reversed(value: Any, dim: int) -> Any:
    return logcumsumexp_op(value.flip((dim,)), dim=dim).flip((dim,))


def _logcumsumexp_rule(grad: Any, self: Any, result: Any, dim: int) -> Any:
    """In logarithms, positive and negative gradients apart, so that nothing overflows."""
    if not grad.ndim:
        return grad
    if grad.dtype.is_complex:
        return conj((_reversed(conj(grad).log() - result, dim) + self).exp())
    lowest = grad.new_full((), float(np.finfo(grad.dtype.compute).min))
    magnitude = grad.abs().log()
    positive = magnitude.where(grad > 0, lowest)
    negative = magnitude.where(grad < 0, lowest)
    return (_reversed(positive - result, dim) + self).exp() - (
        _reversed(negative - result, dim) + self).exp()  # fmt: skip


logcumsumexp_op = define(
    "logcumsumexp", "self -> result", numpy=_logcumsumexp, infer=lambda self, *, dim: self,
    lower=Template("scan"),
    vjp=dict(self=_logcumsumexp_rule),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in (0, 1)],
)  # fmt: skip


@public("logcumsumexp", overlap="aligned")
def logcumsumexp(input: Any, dim: int) -> Any:
    """logcumsumexp(input, dim): log of the running sum of exponentials."""
    dim = normalize_dim(dim, input.ndim)
    if input.dtype.category < FLOAT:
        raise no_kernel("logcumsumexp_out_cpu", input.dtype)
    return logcumsumexp_op(input, dim=dim)
