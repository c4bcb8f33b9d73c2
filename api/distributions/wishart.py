"""The Wishart distribution: covariances of normal samples."""

from __future__ import annotations

import math
import warnings
from typing import Any

from .. import (
    Size,
    arange,
    broadcast_shapes,
    cholesky_solve,
    einsum,
    finfo,
    linalg,
    randn,
    tensor,
    tril_indices,
)
from ..tracer.scalars import is_tensor
from ..tracer.tensor import Tensor
from . import constraints
from .chi2 import Chi2
from .covariance import ONE_FORM, Covariance, factor_of, given_form, half_log_det
from .distribution import Distribution
from .exp_family import ExponentialFamily

_TRIES = 10


class Wishart(Covariance, ExponentialFamily):
    """Wishart(df, covariance_matrix=None, precision_matrix=None, scale_tril=None)."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(self, df: Any, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        given = given_form(covariance_matrix, precision_matrix, scale_tril)
        if given is None:
            raise AssertionError(ONE_FORM)
        form, matrix = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading "
                             "batch dimensions")  # fmt: skip
        asked, size = df, matrix.shape[-1]
        df = df if is_tensor(df) else tensor(df, dtype=matrix.dtype)
        batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={asked} expected to be greater than ndim - 1 = "
                             f"{size - 1}.")  # fmt: skip
        setattr(self, form, matrix.expand(batch_shape + (-1, -1)))
        if self.df.lt(size).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for "
                          "ndim - 1 < df < ndim.", stacklevel=2)  # fmt: skip
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(form, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Wishart, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self.event_shape
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(shape)
        new.df = self.df.expand(batch_shape)
        for form in ("covariance_matrix", "precision_matrix", "scale_tril"):
            if form in self.__dict__:
                setattr(new, form, self.__dict__[form].expand(shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _by_matrix(self, value: Tensor) -> Tensor:
        """A number for each of the batch, ready to multiply matrices."""
        return value.view(self._batch_shape + (1, 1))

    @property
    def mean(self) -> Tensor:
        return self._by_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        return self._by_matrix(factor.masked_fill(factor <= 0, math.nan)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        squares = einsum("...i,...j->...ij", diagonal, diagonal)
        return self._by_matrix(self.df) * (self.covariance_matrix.pow(2) + squares)

    def _draw(self, sample_shape: Size) -> Tensor:
        """Bartlett's decomposition: chi-squared on the diagonal, normal below."""
        p, tril = self._event_shape[-1], self._unbroadcasted_scale_tril
        steps = arange(p, dtype=tril.dtype).expand(self._batch_shape + (-1,))
        roots = Chi2(self.df.unsqueeze(-1) - steps).rsample(sample_shape).sqrt()
        noise = roots.clamp(min=finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = tril_indices(p, p, offset=-1)
        shape = sample_shape + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = randn(shape, dtype=noise.dtype)
        factor = tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = Size(), max_try_correction: int | None = None) -> Tensor:
        sample_shape, dims = Size(sample_shape), tuple(range(-len(self._batch_shape), 0))

        def over_batch(mask: Tensor) -> Tensor:
            return mask.amax(dims) if dims else mask

        sample = self._draw(sample_shape)
        # torch asks "is it well" where it means "is it singular": good samples are drawn again
        again = over_batch(self.support.check(sample))
        for _ in range(max_try_correction or _TRIES):
            if not again.any():
                break
            picked = again.clone()
            fresh = self._draw(again[again].shape)
            sample[picked] = fresh
            again[picked] = over_batch(~self.support.check(fresh))
        return sample

    def _log_scale(self) -> Tensor:
        p = self._event_shape[-1]
        return p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        nu, p = self.df, self._event_shape[-1]
        solved = cholesky_solve(value, self._unbroadcasted_scale_tril)
        trace = solved.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        size = (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
        return -nu * self._log_scale() - (nu / 2).mvlgamma(p) + size - trace / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        halves = arange(p, dtype=nu.dtype) / 2
        digammas = ((nu / 2).unsqueeze(-1) - halves).digamma().sum(-1)
        start = (p + 1) * self._log_scale() + (nu / 2).mvlgamma(p)
        return start - (nu - p - 1) / 2 * digammas + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        size = linalg.slogdet(-2 * x).logabsdet
        return half * (-size + math.log(2) * p) + half.mvlgamma(p)
