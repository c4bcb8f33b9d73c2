"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, broadcast_shapes, linalg, matmul
from ..tracer.tensor import Tensor
from . import constraints
from .covariance import ONE_FORM, Covariance, factor_of, given_form, half_log_det
from .distribution import Distribution
from .location_scale import Centred
from .utils import _standard_normal


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """matrix @ vector for batches that broadcast."""
    return matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(tril: Tensor, x: Tensor) -> Tensor:
    """The squared length of tril^-1 x; batches of `x` may be larger than those of `tril`."""
    shape = broadcast_shapes(tril.shape[:-1], x.shape)
    solved = linalg.solve_triangular(tril, x.expand(shape).unsqueeze(-1), upper=False)
    return solved.squeeze(-1).pow(2).sum(-1)


class MultivariateNormal(Covariance, Centred):
    """MultivariateNormal(loc, covariance_matrix=None, precision_matrix=None, scale_tril=None)."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None,
                 precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = given_form(covariance_matrix, precision_matrix, scale_tril)
        if given is None:
            raise ValueError(ONE_FORM)
        name, matrix = given
        if matrix.dim() < 2:
            word = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(f"{word} must be at least two-dimensional, with optional leading "
                             "batch dimensions")  # fmt: skip
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        Distribution.__init__(self, batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def variance(self) -> Tensor:
        shape = self._batch_shape + self._event_shape
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        tril = self._unbroadcasted_scale_tril
        distance = _batch_mahalanobis(tril, value - self.loc)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + distance) - half_log_det(tril)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        value = constant + half_log_det(self._unbroadcasted_scale_tril)
        return value.expand(self._batch_shape) if self._batch_shape else value
