"""softmax, log_softmax, logsumexp: stable at any size of input, with torch's nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import as_dtype
from ..op import Decompose, define
from ..types import (
    FLOAT,
    TensorType,
    default_dtype,
    no_kernel,
    normalize_dim,
    normalize_dims,
)
from ..value import public
from .arithmetic import conj
from .complexes import real
from .extrema import amax
from .kinds import reduced_shape
from .layouts import row_major
from .reduce import check_tensor, kept, sum_op
from .totals import add_up


def _samples(rng: np.random.Generator) -> list[Any]:
    x = rng.standard_normal((3, 4))
    return [((x,), {"dim": 1}), ((x,), {"dim": 0}), ((x[0, 0],), {"dim": 0}),
            ((np.zeros((2, 0)),), {"dim": 1})]  # fmt: skip


def _shifted(x: np.ndarray, dim: int) -> Any:
    """`x` less its maximum, so that exp() cannot overflow; contiguous, as torch's result is."""
    return np.subtract(x, np.maximum.reduce(x, axis=dim, keepdims=True), order="C")


def _softmax(x: np.ndarray, *, dim: int) -> Any:
    if not x.ndim:
        return np.exp(x - x)
    if not x.size:
        return x.copy()
    exponentials = _shifted(x, dim)
    np.exp(exponentials, out=exponentials)
    exponentials /= add_up(exponentials, dim, True)
    return exponentials


def _softmax_expand(self: Any, *, dim: int) -> Any:
    if not self.ndim:
        return (self - self).exp()
    exponentials = (self - amax(self, dim=(dim,), keepdim=True)).exp()
    return exponentials / sum_op(exponentials, dim=(dim,), keepdim=True)


def total(value: Any, dim: int) -> Any:
    """The sum along `dim`, which stays; the value itself where it has no dimensions."""
    return sum_op(value, dim=(dim,), keepdim=True) if value.ndim else value


def _softmax_rule(grad: Any, result: Any, dim: int) -> Any:
    weighted = grad * result
    return weighted - result * total(weighted, dim)


softmax_op = define(
    "softmax", "self -> result", numpy=_softmax, infer=lambda self, *, dim: self,
    second="SoftmaxBackwardDataBackward0",
    lower=Decompose(_softmax_expand), samples=_samples, vjp=dict(self=_softmax_rule),
    many_passes=True,
)  # fmt: skip


def _log_softmax(x: np.ndarray, *, dim: int) -> Any:
    if not x.ndim or not x.size:
        return x - x
    shifted = _shifted(x, dim)
    shifted -= np.log(add_up(np.exp(shifted), dim, True))
    return shifted


def _log_softmax_expand(self: Any, *, dim: int) -> Any:
    if not self.ndim:
        return self - self
    shifted = self - amax(self, dim=(dim,), keepdim=True)
    return shifted - sum_op(shifted.exp(), dim=(dim,), keepdim=True).log()


log_softmax_op = define(
    "log_softmax", "self -> result", second="LogSoftmaxBackwardDataBackward0",
    numpy=_log_softmax, infer=lambda self, *, dim: self,
    lower=Decompose(_log_softmax_expand), samples=_samples, many_passes=True,
    vjp=dict(self=lambda grad, result, dim: grad - result.exp() * total(grad, dim)),
)  # fmt: skip


def _publish(op: Any) -> Any:
    def function(input: Any, dim: Any, dtype: Any = None) -> Any:
        check_tensor(op.name, input)
        if dtype is not None and input.dtype is not dtype:
            input = input.to(as_dtype(dtype, op.name))
        dim = normalize_dim(dim, input.ndim)
        if not input.dtype.is_floating_point and input.numel():
            raise no_kernel(f"{op.name}_lastdim_kernel_impl", input.dtype)
        return op(input, dim=dim)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"{op.name}(input, dim, dtype=None)."
    return public(op.name, spaces="torch special")(function)


softmax = _publish(softmax_op)
log_softmax = _publish(log_softmax_op)


@row_major
def _logsumexp(x: np.ndarray, *, dim: tuple[int, ...], keepdim: bool = False) -> Any:
    if not x.size:  # the maximum of nothing has no identity, the sum of nothing has
        return np.full(reduced_shape(x.shape, dim, keepdim), -np.inf, x.dtype)
    largest = np.max(x.real, axis=dim, keepdims=True)
    largest = np.where(np.isinf(largest), x.real.dtype.type(0), largest)
    result = np.log(add_up(np.exp(x - largest), dim, True)) + largest
    return result if keepdim else result.reshape(reduced_shape(x.shape, dim, False))


def _logsumexp_expand(self: Any, *, dim: tuple[int, ...], keepdim: bool = False) -> Any:
    if 0 in self.shape:
        return self.new_full(reduced_shape(tuple(self.shape), dim, keepdim), -math.inf)
    largest = amax(real(self), dim=dim, keepdim=True)
    largest = largest.masked_fill(largest.isinf(), 0)
    result = sum_op((self - largest).exp(), dim=dim, keepdim=True).log() + largest
    return result if keepdim else result.view(reduced_shape(tuple(self.shape), dim, False))


def _logsumexp_rule(grad: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    weights = (self - kept(result, self.type_, dim, keepdim)).exp()
    return kept(grad, self.type_, dim, keepdim) * conj(weights)


logsumexp_op = define(
    "logsumexp", "self -> result", numpy=_logsumexp, lower=Decompose(_logsumexp_expand),
    kind="reduction", vjp=dict(self=_logsumexp_rule), many_passes=True,
    infer=lambda self, *, dim, keepdim=False: TensorType(
        self.dtype, reduced_shape(self.shape, dim, keepdim)),
)  # fmt: skip


@public("logsumexp", spaces="torch special", out="cast")
def logsumexp(input: Any, dim: Any, keepdim: bool = False) -> Any:
    """logsumexp(input, dim, keepdim=False): log of the sum of exponentials."""
    check_tensor("logsumexp", input)
    if input.dtype.category < FLOAT:
        input = input.to(default_dtype())
    return logsumexp_op(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)
