"""A covariance matrix given in one of three forms: itself, its inverse or its Cholesky factor."""

from __future__ import annotations

from .. import Size, cholesky_inverse, eye, linalg, matmul
from ..tracer.tensor import Tensor
from .utils import lazy_property

_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")
ONE_FORM = "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."


def given_form(*matrices: Tensor | None) -> tuple[str, Tensor] | None:
    """Name and value of the only form that was given; None unless there is exactly one."""
    given = [(name, matrix) for name, matrix in zip(_FORMS, matrices) if matrix is not None]
    return given[0] if len(given) == 1 else None


def half_log_det(tril: Tensor) -> Tensor:
    """The logarithm of a triangular matrix's determinant: half of the covariance's."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    # the flipped factor of the flipped matrix is upper triangular; its inverse is the wanted one
    flipped = linalg.cholesky(precision.flip((-2, -1)))
    inverse = flipped.flip((-2, -1)).transpose(-2, -1)
    identity = eye(precision.shape[-1], dtype=precision.dtype)
    return linalg.solve_triangular(inverse, identity, upper=False)


def factor_of(form: str, matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the covariance that `matrix` gives in `form`."""
    if form == "scale_tril":
        return matrix
    return linalg.cholesky(matrix) if form == "covariance_matrix" else (
        _precision_to_scale_tril(matrix))  # fmt: skip


class Covariance:
    """The three forms, worked out from `_unbroadcasted_scale_tril` where not given."""

    _batch_shape: Size
    _event_shape: Size
    _unbroadcasted_scale_tril: Tensor

    def _matrix_shape(self) -> Size:
        return self._batch_shape + self._event_shape[-1:] + self._event_shape[-1:]

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        tril = self._unbroadcasted_scale_tril
        return matmul(tril, tril.mT).expand(self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._matrix_shape())
