"""Statistics: quantiles, covariance, counts, and reductions that ignore NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import check_elements, is_number, repeated, warn
from ..op import Decompose, same
from ..types import FLOAT, INTEGER, float32, float64, int64, normalize_dim, type_word
from ..value import public
from .arithmetic import conj
from .kinds import accumulate_type, reduction
from .precision import full_precision
from .reduce import check_tensor, kept, reduce_dims, sum_op
from .totals import add_up
from .views import squeeze_op

# --- ignoring NaN --------------------------------------------------------------------------------


def _nansum(x: np.ndarray, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    present = np.where(np.isnan(x), x.dtype.type(0), x) if x.dtype.kind == "f" else x
    return add_up(present, dim, keepdim)


def _nansum_expand(self: Any, *, dim: Any, keepdim: bool = False, whole: bool = False) -> Any:
    # NaN is left out before anything is added: a partial sum of infinities may be NaN itself
    present = self.masked_fill(self.isnan(), 0) if self.dtype.is_floating_point else self
    return sum_op(present, dim=dim, keepdim=keepdim)


nansum_op = reduction(
    "nansum", "self -> result", numpy=_nansum, lower=Decompose(_nansum_expand),
    shown=same("dim", "keepdim"),
    vjp=dict(self=lambda grad, self, dim, keepdim: kept(
        grad, self.type_, dim, keepdim) * self.isnan().logical_not()),
)  # fmt: skip


@public("nansum", out="cast")
def nansum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """nansum(input, dim=None, keepdim=False, *, dtype=None): NaN counts as zero."""
    check_tensor("nansum", input)
    if input.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    wanted = dtype or accumulate_type(input.dtype)
    if input.dtype.category <= INTEGER:
        return input.sum(dim, keepdim, dtype=dtype)
    if input.dtype is not wanted:
        input = input.to(wanted)
    return nansum_op(input, keepdim=keepdim, **reduce_dims(input, dim))


@public("nanmean", out="cast")
def nanmean(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """nanmean(input, dim=None, keepdim=False, *, dtype=None): the mean of what is not NaN."""
    if input.dtype.category < FLOAT:
        raise RuntimeError("nanmean(): expected input to have floating point or complex dtype but "
                           f"got {type_word(input.dtype)}")  # fmt: skip
    factor = input.detach().isnan().logical_not().sum(dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / factor


@public("count_nonzero", out="none")
def count_nonzero(input: Any, dim: Any = None, *more: Any) -> Any:
    """count_nonzero(input, dim=None): how many elements are not zero."""
    return input.ne(0).sum((dim, *more) if more else dim)


# --- quantiles -----------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _checked_q(name: str, input: Any, q: Any) -> Any:
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if is_number(q):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        return input.new_full((), q)
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    check_elements(_check_fractions, q, name)
    return q


@repeated(lambda value, name: ((value >= 0) & (value <= 1)).logical_not())
def _check_fractions(array: np.ndarray, name: str) -> None:
    if not ((array >= 0) & (array <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _ranks(lines: Any, q: Any, ignore_nan: bool) -> Any:
    """Where quantiles stand in sorted lines; on the NaN at the end where there is one."""
    last = lines.shape[-1] - 1
    missing = lines.isnan()
    if ignore_nan:
        ranks = q * (missing.logical_not().sum(-1, keepdim=True) - 1)
        return ranks.masked_fill(ranks < 0, 0)
    return (q * last).expand((*lines.shape[:-1], q.shape[0])).masked_fill(
        missing.any(-1, keepdim=True), last)  # fmt: skip


def _interpolated(lines: Any, ranks: Any, interpolation: str) -> Any:
    rounded = {"lower": "floor", "higher": "ceil", "nearest": "round"}.get(interpolation)
    if rounded is not None:
        return lines.gather(-1, getattr(ranks, rounded)().to(int64))
    below = ranks.to(int64)
    low, high = lines.gather(-1, below), lines.gather(-1, ranks.ceil().to(int64))
    weights = ranks.new_full(ranks.shape, 0.5) if interpolation == "midpoint" else ranks - below
    return low.lerp(high, weights)


def _lines(input: Any, dim: Any, keepdim: bool) -> Any:
    """What quantiles are taken of, as the last dimension; the others as they shall be."""
    if dim is None or not input.ndim:
        lead = input.ndim if keepdim else 0
        return input.reshape((*(1,) * lead, input.numel()))
    dim = normalize_dim(dim, input.ndim)
    if keepdim:
        return input.unsqueeze(-1).transpose(dim, -1)
    return input if dim == input.ndim - 1 else input.movedim(dim, -1)


def _quantile(name: str, ignore_nan: bool) -> Any:
    def function(
        input: Any, q: Any, dim: Any = None, keepdim: bool = False, *,
        interpolation: str = "linear",
    ) -> Any:  # fmt: skip
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, "
                               f"midpoint or nearest, but got {interpolation}")  # fmt: skip
        if input.numel() == 0:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        q = _checked_q(name, input, q)
        lines = _lines(input, dim, keepdim).sort()[0]
        ranks = _ranks(lines, q.reshape((q.numel(),)), ignore_nan)
        found = _interpolated(lines, ranks, interpolation)
        if q.ndim:
            found = found.unsqueeze(0).transpose(0, -1)
        return squeeze_op(found, dim=(found.ndim - 1,), form=4)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, q, dim=None, keepdim=False, *, interpolation='linear')."
    return public(name)(full_precision(function))


quantile = _quantile("quantile", False)
nanquantile = _quantile("nanquantile", True)


# --- covariance ----------------------------------------------------------------------------------


def _check_weights(word: str, weights: Any, count: int, integral: bool) -> None:
    if weights.ndim > 1:
        raise RuntimeError(f"cov(): expected {word} to have one or fewer dimensions but got "
                           f"{word} with {weights.ndim} dimensions")  # fmt: skip
    kind = "integral" if integral else "floating point"
    if (weights.dtype.category == INTEGER) != integral:
        raise RuntimeError(f"cov(): expected {word} to have {kind} dtype but got {word} with "
                           f"{type_word(weights.dtype)} dtype")  # fmt: skip
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {word} to have the same numel as there are "
            f"observations in the input but got {weights.numel()} != {count}"
        )
    if weights.numel() and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {word} cannot be negative")


@public("cov", out="none")
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """cov(input, *, correction=1, fweights=None, aweights=None): rows are variables."""
    if input.ndim > 2:
        raise RuntimeError("cov(): expected input to have two or fewer dimensions but got an input "
                           f"with {input.ndim} dimensions")  # fmt: skip
    if input.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = input.view((1, -1 if input.numel() else 0)) if input.ndim < 2 else input
    count = rows.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, count, True)
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, count, False)
        weights = aweights if weights is None else weights * aweights
    total = count if weights is None else weights.sum()
    weighted = rows if weights is None else rows * weights
    centred = rows - (weighted.sum(1) / total).unsqueeze(1)
    product = centred @ conj((centred if weights is None else centred * weights).t())
    return (product / _freedom(total, weights, aweights, correction)).squeeze()


def _freedom(total: Any, weights: Any, aweights: Any, correction: int) -> Any:
    """Degrees of freedom; none where the correction eats them all."""
    if weights is None:
        if total <= correction:
            warn(
                "cov(): degrees of freedom is <= 0. Correction should be strictly less "
                "than the number of observations.",
                UserWarning,
            )
        return float(max(total - correction, 0))
    if aweights is not None and correction != 0:
        return (total - correction * (weights * aweights).sum() / total).clamp(min=0)
    return (total - correction).clamp(min=0)


@public("corrcoef")
def corrcoef(input: Any) -> Any:
    """corrcoef(input): correlation of the rows."""
    if input.ndim > 2:
        raise RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an "
                           f"input with {input.ndim} dimensions")  # fmt: skip
    matrix = cov(input)
    if not matrix.ndim:
        return matrix / matrix
    diagonal = matrix.diag()
    deviation = (diagonal.real if diagonal.dtype.is_complex else diagonal).sqrt()
    scaled = matrix / deviation.unsqueeze(1) / deviation.unsqueeze(0)
    if not scaled.dtype.is_complex:
        return scaled.clamp(-1, 1)
    return scaled.real.clamp(-1, 1) + scaled.imag.clamp(-1, 1) * 1j
