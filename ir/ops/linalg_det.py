"""Determinants and inverses: det, slogdet, logdet, inv.

Note [The determinant is a polynomial]
    Its gradient is the matrix of cofactors, defined at singular matrices too. Where A is well
    away from singular it is det(A) A^-T; elsewhere it comes from the SVD without any division:
    with A = U S Vh, C = det(U) det(Vh) conj(U P Vh), P_i the product of all s_k but s_i. The
    second derivative has the same form with the products of all but two. So no order of
    differentiation breaks down at a singular matrix before the third.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Op, define
from ..types import TensorType, int32
from ..value import public
from . import linalg_kernels as kernels
from .arithmetic import conj
from .linalg_common import (
    LinAlgError,
    batch_place,
    check_float,
    check_square,
    lead_of,
    linalg,
    scaled,
)
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result

# --- determinants --------------------------------------------------------------------------------


def _determinant_infer(self: TensorType) -> TensorType:
    return TensorType(self.dtype, lead_of(self))


def _by_singularity(regular: Any, singular: Any, a: np.ndarray, *others: np.ndarray) -> Any:
    """`singular` where det is about zero, or A^-1 is mostly rounding (a det of 1e-13 may be that of
    large numbers, which cancel); see Note [The determinant is a polynomial]."""
    result = np.zeros_like(a)
    if not a.size:
        return result
    finite = np.isfinite(a).all((-2, -1))
    if not finite.all():
        identity = np.eye(a.shape[-1], dtype=a.dtype)
        a = np.where(finite[..., None, None], a, identity)
        result[...] = _by_singularity(regular, singular, a, *others)
        result[~finite] = np.nan
        return result
    det, eps = np.linalg.det(a), np.finfo(a.dtype).eps
    mask = np.asarray(~(np.abs(det) >= 100 * eps))
    mask[~mask] = np.linalg.cond(a[~mask], 1) > 1e-4 / eps
    if not mask.any():
        return regular(a, det, *others)
    result[mask] = singular(a[mask], *(o[mask] for o in others))
    rest = ~mask
    if rest.any():
        result[rest] = regular(a[rest], det[rest], *(o[rest] for o in others))
    return result


def _products_without(s: np.ndarray, count: int) -> Any:
    """Products of all elements of `s` but one (last dim i), or but two (last dims i, j)."""
    n = s.shape[-1]
    keep = ~np.eye(n, dtype=bool)
    if count == 2:
        keep = keep[:, None] & keep[None, :]
    spread = s.reshape(*s.shape[:-1], *(1,) * count, n)
    return np.where(keep, spread, 1).prod(-1)


def _cofactors(a: np.ndarray) -> Any:
    def regular(a: np.ndarray, det: np.ndarray) -> Any:
        return np.swapaxes(np.linalg.inv(a), -2, -1) * det[..., None, None]

    def singular(a: np.ndarray) -> Any:
        u, s, vh = np.linalg.svd(a)
        phase = np.linalg.det(u) * np.linalg.det(vh)
        return phase[..., None, None] * ((u * _products_without(s, 1)[..., None, :]) @ vh).conj()

    return _by_singularity(regular, singular, a).astype(a.dtype, copy=False)


def _cofactor_slope(a: np.ndarray, g: np.ndarray) -> Any:
    """The second derivative of det in direction `g`."""

    def regular(a: np.ndarray, det: np.ndarray, g: np.ndarray) -> Any:
        inverse = np.linalg.inv(a)
        turned = inverse @ g
        trace = np.trace(turned, axis1=-2, axis2=-1)[..., None, None]
        return det[..., None, None] * np.swapaxes(trace * inverse - turned @ inverse, -2, -1)

    def singular(a: np.ndarray, g: np.ndarray) -> Any:
        u, s, vh = np.linalg.svd(a)
        phase = np.linalg.det(u) * np.linalg.det(vh)
        inner = kernels.adjoint(u) @ g @ kernels.adjoint(vh)
        pairs = kernels.with_diagonal(_products_without(s, 2), 0)
        slope = -np.swapaxes(inner, -2, -1) * pairs
        diagonal = np.diagonal(inner, axis1=-2, axis2=-1)
        slope = kernels.with_diagonal(slope, (pairs @ diagonal[..., None])[..., 0])
        return phase[..., None, None] * (u.conj() @ slope @ vh.conj())

    return _by_singularity(regular, singular, a, g).astype(a.dtype, copy=False)


def _third_slope(grad: Any, self: Any, direction: Any) -> Any:
    """Where A is regular: the gradient of <second derivative in `direction`, grad>."""
    x, g, k = inverse_op(self, check_errors=False)[0], direction, conj(grad)
    xg, xk = matmul(x, g), matmul(x, k)
    a, b = trace(xg), trace(xk)
    both = scaled(x, a * b - trace(matmul(xg, xk)))
    one = scaled(matmul(xk, x), a) + scaled(matmul(xg, x), b)
    two = matmul(matmul(xg, xk) + matmul(xk, xg), x)
    return conj(scaled(both - one + two, det_op(self))).transpose(-2, -1)


def trace(matrix: Any) -> Any:
    return matrix.diagonal(0, -2, -1).sum(-1)


det_op: Op = define(
    "linalg_det", "self -> result", infer=_determinant_infer, shown={"self": "A"},
    numpy=lambda a: np.asarray(np.linalg.det(a), a.dtype),
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
    vjp=dict(self=lambda grad, self: scaled(conj(cofactor_op(self)), grad)),
)  # fmt: skip
cofactor_op: Op = define(
    "linalg_cofactor", "self -> result", numpy=_cofactors, infer=lambda self: self,
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
    vjp=dict(self=lambda grad, self: conj(cofactor_slope_op(self, conj(grad)))),
)  # fmt: skip
cofactor_slope_op: Op = define(
    "linalg_cofactor_slope", "self direction -> result", numpy=_cofactor_slope,
    infer=lambda self, direction: self,
    samples=drawn(((3, 3), (3, 3), {})),
    vjp=dict(self=_third_slope,
             direction=lambda grad, self: conj(cofactor_slope_op(self, conj(grad)))),
)  # fmt: skip


@public("det")
def det(input: Any) -> Any:
    """det(input): determinants of square matrices."""
    return linalg_det(input)


@linalg("det")
def linalg_det(A: Any) -> Any:
    """linalg.det(A): determinants of square matrices."""
    check_square("linalg.det", A)
    check_float("linalg.det", A, kernel="lu_cpu")
    return det_op(A)


def _slogdet(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sign, size = np.linalg.slogdet(a)
    return np.asarray(sign, a.dtype), np.asarray(size, a.real.dtype)


def _slogdet_rule(grad_sign: Any, grad_logabsdet: Any, self: Any, sign: Any) -> Any:
    """d log det = tr(A^-1 dA): its real part moves logabsdet, its imaginary part the phase."""
    weight = grad_logabsdet
    if grad_sign is not None and self.dtype.is_complex:
        turn = conj(sign) * grad_sign
        turn = (turn - conj(turn)) / 2
        weight = turn if weight is None else turn + weight
    if weight is None:
        return None
    return scaled(transposed(inverse_op(self, check_errors=False)[0]), weight)


slogdet_op = define(
    "linalg_slogdet", "self -> sign logabsdet", numpy=_slogdet, shown={"self": "A"},
    gives_none=lambda node, _, came: not (came[1] or node.outputs[0].dtype.is_complex),
    infer=lambda self: (_determinant_infer(self),
                        TensorType(self.dtype.to_real(), lead_of(self))),
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
    vjp=dict(self=_slogdet_rule),
)  # fmt: skip


def _signed(name: str, A: Any) -> Any:
    check_square("linalg.slogdet", A)
    check_float("linalg.slogdet", A)
    return named_result(f"{name} sign logabsdet", slogdet_op(A))


@linalg("slogdet")
def linalg_slogdet(A: Any) -> Any:
    """linalg.slogdet(A) -> (sign, logabsdet)."""
    return _signed("linalg_slogdet", A)


@public("slogdet")
def slogdet(input: Any) -> Any:
    """slogdet(input) -> (sign, logabsdet)."""
    return _signed("slogdet", input)


@public("logdet", out="none")
def logdet(input: Any) -> Any:
    """logdet(input): log of the determinant; nan where it is negative."""
    sign, size = _signed("slogdet", input)
    if input.dtype.is_complex:
        return sign.log() + size
    return size.new_full((), float("nan")).where(sign.eq(-1), size)


# --- inverses ------------------------------------------------------------------------------------


def _inverse(a: np.ndarray, *, check_errors: bool = False) -> tuple[np.ndarray, np.ndarray]:
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        return np.linalg.inv(a), info
    except np.linalg.LinAlgError:
        factors, pivots, info = kernels.lu_factor(a)
    if check_errors and info.any():
        place, code = batch_place(info)
        raise LinAlgError(
            f"linalg.inv: {place}The diagonal element {code} is zero, the inversion could not be "
            "completed because the input matrix is singular."
        )
    return kernels.lu_solve(factors, pivots, kernels.identities(a.shape, a.dtype)), info


def _with_info(self: TensorType, **_: Any) -> tuple[TensorType, TensorType]:
    return self, TensorType(int32, lead_of(self))


inverse_op: Op = define(
    "linalg_inv_ex", "self -> inverse info", raises=True, numpy=_inverse, infer=_with_info,
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
    vjp=dict(self=lambda grad_inverse, inverse: -matmul(
        transposed(inverse), matmul(grad_inverse, transposed(inverse)))),
)  # fmt: skip


@linalg("inv_ex")
@full_precision
def inv_ex(A: Any, *, check_errors: bool = False) -> Any:
    """linalg.inv_ex(A, *, check_errors=False) -> (inverse, info)."""
    check_square("linalg.inv", A)
    check_float("linalg.inv", A)
    return named_result("linalg_inv_ex inverse info", inverse_op(A, check_errors=check_errors))


@linalg("inv")
@full_precision
def inv(A: Any) -> Any:
    """linalg.inv(A): inverses of square matrices; LinAlgError if one is singular."""
    return inv_ex(A, check_errors=True)[0]


@public("inverse")
def inverse(input: Any) -> Any:
    """inverse(input): see linalg.inv."""
    return inv(input)
