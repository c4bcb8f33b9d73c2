"""The normal distribution of vectors whose covariance is a diagonal plus a matrix of low rank."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, broadcast_tensors, diag_embed, eye, linalg, matmul
from ..tracer.tensor import Tensor
from . import constraints
from .covariance import half_log_det
from .distribution import Distribution
from .location_scale import Centred
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property


class LowRankMultivariateNormal(Centred):
    """LowRankMultivariateNormal(loc, cov_factor, cov_diag): covariance W W^T + D.

    Densities need the small capacitance matrix I + W^T D^-1 W only (Woodbury's identity).
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        _check_shapes(loc, cov_factor, cov_diag)
        try:
            columns = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_factor = columns[0][..., 0], columns[1]
        self.cov_diag = columns[2][..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        scaled = cov_factor.mT / cov_diag.unsqueeze(-2)
        small = matmul(scaled, cov_factor) + eye(cov_factor.shape[-1], dtype=cov_factor.dtype)
        self._capacitance_tril = linalg.cholesky(small)
        Distribution.__init__(self, self.loc.shape[:-1], loc.shape[-1:], validate_args)

    @lazy_property
    def variance(self) -> Tensor:  # type: ignore[override]
        total = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return total.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def _unbroadcasted_scale_tril(self) -> Tensor:
        # W W^T + D = R (I + R^-1 W W^T R^-1) R with R = sqrt(D): eigenvalues of 1 and more inside
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = matmul(scaled, scaled.mT) + eye(self._event_shape[0], dtype=scaled.dtype)
        return root * linalg.cholesky(inner)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        whole = matmul(factor, factor.mT) + diag_embed(self._unbroadcasted_cov_diag)
        return whole.expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's identity."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        part = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - part.mT @ part
        return inverse.expand(self._matrix_shape())

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape + self._event_shape

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        few = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype)
        many = _standard_normal(shape, self.loc.dtype)
        spread = self._unbroadcasted_cov_diag.sqrt() * many
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, few) + spread

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _distance(self, away: Tensor) -> Tensor:
        """The squared length of `away` in units of the covariance."""
        scaled = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        whole = (away.pow(2) / self._unbroadcasted_cov_diag).sum(-1)
        return whole - _batch_mahalanobis(self._capacitance_tril, _batch_mv(scaled, away))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._distance(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        value = 0.5 * (constant + self._log_det())
        return value.expand(self._batch_shape) if self._batch_shape else value


def _check_shapes(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> None:
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    if cov_factor.dim() < 2:
        raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch "
                         "dimensions")  # fmt: skip
    if cov_factor.shape[-2:-1] != loc.shape[-1:]:
        raise ValueError("cov_factor must be a batch of matrices with shape "
                         f"{loc.shape[-1]} x m")  # fmt: skip
    if cov_diag.shape[-1:] != loc.shape[-1:]:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {loc.shape[-1:]}")
