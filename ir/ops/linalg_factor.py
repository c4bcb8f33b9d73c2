"""Orthogonal factors: qr, svd. Their rules use only the gradients that arrived."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import warn_of_successor
from ..op import define
from ..types import TensorType
from ..value import public
from . import linalg_kernels as kernels
from .arithmetic import conj
from .joining import cat
from .linalg_common import (
    LinAlgError,
    add,
    batch_place,
    check_float,
    check_matrix,
    diagonal_of,
    lead_of,
    linalg,
    of_shape,
    set_diagonal,
)
from .linalg_eigen import phase_check_op, skew
from .linalg_solve import solve_triangular_op
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result

# --- QR ------------------------------------------------------------------------------------------


def _qr(a: Any, *, mode: Any = "reduced") -> Any:
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    if not a.size:
        q_columns = m if mode == "complete" else min(m, n)
        q = kernels.identities((*lead, m, q_columns), a.dtype)
        r = np.zeros((*lead, q_columns, n), a.dtype)
        return (np.zeros(0, a.dtype), r) if mode == "r" else (q, r)
    if mode == "r":
        return np.zeros(0, a.dtype), np.linalg.qr(a, mode="r")
    result = np.linalg.qr(a, mode=mode)
    return result[0], result[1]


def _qr_infer(A: TensorType, *, mode: str = "reduced") -> Any:
    m, n = A.shape[-2:]
    k = m if mode == "complete" else min(m, n)
    return TensorType(A.dtype, (0,)) if mode == "r" else of_shape(A, m, k), of_shape(A, k, n)


def _qr_rule(grad_Q: Any, grad_R: Any, Q: Any, R: Any, mode: str) -> Any:
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when "
                           "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                           "require gradients.")  # fmt: skip
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and "
                           "nrows > ncols. Use mode='reduced'.")  # fmt: skip
    if m >= n:
        return _tall_qr_rule(grad_Q, grad_R, Q, R)
    # wide, A = [X Y] = Q [U V]: X = Q U is square, and Y = Q V gives V = Q^H Y
    U, V = R.narrow(-1, 0, m), R.narrow(-1, m, n - m)
    grad_U = grad_V = None
    if grad_R is not None:
        grad_U, grad_V = grad_R.narrow(-1, 0, m), grad_R.narrow(-1, m, n - m)
        grad_Q = add(grad_Q, matmul(matmul(Q, V), transposed(grad_V)))
    grad_X = _tall_qr_rule(grad_Q, grad_U, Q, U)
    grad_Y = matmul(Q, V * 0 if grad_V is None else grad_V)
    return cat(grad_X, grad_Y, dim=grad_X.ndim - 1)


def _tall_qr_rule(grad_Q: Any, grad_R: Any, Q: Any, R: Any) -> Any:
    """[Q' + Q sym(triu(R' R^H - Q^H Q'))] R^-H, where sym mirrors a triangle."""
    inner: Any = None if grad_R is None else matmul(grad_R, transposed(R))
    if grad_Q is not None:
        inner = add(inner, -matmul(transposed(Q), grad_Q))
    inner = inner.triu()
    mirrored = inner + transposed(inner)
    diagonal = diagonal_of(inner)
    if inner.dtype.is_complex:
        diagonal = (diagonal + conj(diagonal)) / 2
    total = add(grad_Q, matmul(Q, set_diagonal(mirrored, diagonal)))
    return solve_triangular_op(transposed(R), total, upper=False, left=False)


qr_op = define(
    "linalg_qr", "A -> Q R", numpy=_qr, infer=_qr_infer, vjp=dict(A=_qr_rule),
    samples=drawn(((4, 3), {}), ((2, 3, 4), {}), ((3, 3), {"mode": "complete"})),
)  # fmt: skip


@linalg("qr")
@full_precision
def linalg_qr(A: Any, mode: str = "reduced") -> Any:
    """linalg.qr(A, mode='reduced') -> (Q, R); mode 'reduced', 'complete' or 'r'."""
    check_matrix("linalg.qr", A)
    check_float("linalg.qr", A, kernel="geqrf_cpu")
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
                           "(default), 'r', or 'complete'")  # fmt: skip
    return named_result("linalg_qr Q R", qr_op(A, mode=mode))


@public("qr")
@full_precision
def qr(input: Any, some: bool = True) -> Any:
    """qr(input, some=True) -> (Q, R): see linalg.qr."""
    warn_of_successor("qr", "qr", "The boolean parameter 'some' has been replaced with a string "
                      "parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced with\n"
                      "Q, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")  # fmt: skip
    return named_result("qr Q R", linalg_qr(input, "reduced" if some else "complete"))


# --- SVD -----------------------------------------------------------------------------------------


def _svd(a: np.ndarray, *, full_matrices: bool = False) -> tuple[np.ndarray, ...]:
    (m, n), lead = a.shape[-2:], a.shape[:-2]
    k = min(m, n)
    if not a.size:
        rows, columns = (m, n) if full_matrices else (k, k)
        return (kernels.identities((*lead, m, rows), a.dtype),
                np.zeros((*lead, k), a.real.dtype),
                kernels.identities((*lead, columns, n), a.dtype))  # fmt: skip
    return tuple(singular(a, full_matrices=full_matrices))


def singular(a: np.ndarray, **how: Any) -> Any:
    """np.linalg.svd as torch's: NaN is refused, and matrices with infinities give NaN."""
    bad = np.isnan(a).any((-2, -1))
    if bad.any():
        place, _ = batch_place(np.asarray(bad))
        raise LinAlgError(f"linalg.svd: {place}The algorithm failed to converge because the input "
                          "matrix contained non-finite values. Use finite ones.")  # fmt: skip
    infinite = np.isinf(a).any((-2, -1))
    result = np.linalg.svd(np.where(infinite[..., None, None], 0, a), **how)
    for part in result if isinstance(result, tuple) else (result,):
        part[infinite] = np.nan
    return result


def _svd_infer(A: TensorType, *, full_matrices: bool = False) -> Any:
    m, n = A.shape[-2:]
    k = min(m, n)
    rows, columns = (m, n) if full_matrices else (k, k)
    return (of_shape(A, m, rows), TensorType(A.dtype.to_real(), (*lead_of(A), k)),
            of_shape(A, columns, n))  # fmt: skip


def _svd_rule(
    grad_U: Any, grad_S: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any, full_matrices: bool
) -> Any:
    if full_matrices:
        k = S.shape[-1]
        U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
        grad_U = None if grad_U is None else grad_U.narrow(-1, 0, k)
        grad_Vh = None if grad_Vh is None else grad_Vh.narrow(-2, 0, k)
    return svd_rule(grad_U, grad_S, grad_Vh, U, S, Vh)


def svd_rule(grad_U: Any, grad_S: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The gradient of A = U diag(S) Vh with k singular values; None stands for no gradient."""
    if grad_U is None and grad_Vh is None:
        return matmul(U * grad_S.unsqueeze(-2), Vh)
    m, k, n = U.shape[-2], S.shape[-1], Vh.shape[-1]
    inner = _svd_inner(grad_U, grad_Vh, U, S, Vh)
    if grad_S is not None:
        inner = set_diagonal(inner, diagonal_of(inner) + grad_S)
    if m > k and grad_U is not None:  # what leaves the span of U: (1 - U U^H) U' S^-1 Vh
        outside = grad_U / S.unsqueeze(-2)
        outside = outside - matmul(U, matmul(transposed(U), outside))
        return matmul(matmul(U, inner) + outside, Vh)
    if n > k and grad_Vh is not None:
        outside = grad_Vh / S.unsqueeze(-1)
        outside = outside - matmul(matmul(outside, transposed(Vh)), Vh)
        return matmul(U, matmul(inner, Vh) + outside)
    return matmul(matmul(U, inner), Vh) if m < n else matmul(U, matmul(inner, Vh))


def _svd_inner(grad_U: Any, grad_Vh: Any, U: Any, S: Any, Vh: Any) -> Any:
    """The part of the gradient inside the spans of U and V, but for that of S."""
    left = right = None
    if grad_U is not None:
        left = skew(matmul(transposed(U), grad_U))
    if grad_Vh is not None:
        right = skew(matmul(Vh, transposed(grad_Vh)))
    squares = S * S
    gaps = squares.unsqueeze(-2) - squares.unsqueeze(-1)
    gaps = set_diagonal(gaps, gaps.new_ones(S.shape))
    columns, rows = S.unsqueeze(-2), S.unsqueeze(-1)
    total = add(None if left is None else left * columns, None if right is None else rows * right)
    if U.dtype.is_complex:
        turn = phase_check_op(diagonal_of(add(left, right)), function="svd_backward",
                              vectors="singular vectors")  # fmt: skip
        total = set_diagonal(total, turn * S)
    inner = total / gaps
    if U.dtype.is_complex and left is not None and right is not None:
        inner = set_diagonal(inner, diagonal_of(inner) + diagonal_of(left) / (2 * S))
    return inner


svd_op = define(
    "linalg_svd", "A -> U S Vh", raises=True, numpy=_svd, infer=_svd_infer, vjp=dict(A=_svd_rule),
    samples=drawn(((4, 3), {}), ((2, 3, 4), {}), ((3, 3), {"full_matrices": True})),
)  # fmt: skip


def _svdvals(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.real.dtype)
    return np.asarray(singular(a, compute_uv=False))


def _svdvals_rule(grad: Any, A: Any) -> Any:
    U, _, Vh = svd_op(A)
    return matmul(U * grad.unsqueeze(-2), Vh)


svdvals_op = define(
    "linalg_svdvals", "A -> S", raises=True, numpy=_svdvals, node="LinalgSvdBackward0",
    infer=lambda A: TensorType(A.dtype.to_real(), (*lead_of(A), min(A.shape[-2:]))),
    samples=drawn(((3, 4), {}), ((2, 3, 3), {})),
    vjp=dict(A=_svdvals_rule),
)  # fmt: skip


def _check_svd(A: Any, driver: Any) -> None:
    check_matrix("linalg.svd", A)
    check_float("linalg.svd", A, kernel="linalg_svd_cpu")
    if driver is not None:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
                           "inputs with cuSOLVER backend.")  # fmt: skip


@linalg("svd")
@full_precision
def linalg_svd(A: Any, full_matrices: bool = True, *, driver: Any = None) -> Any:
    """linalg.svd(A, full_matrices=True, *, driver=None) -> (U, S, Vh)."""
    _check_svd(A, driver)
    return named_result("linalg_svd U S Vh", svd_op(A, full_matrices=full_matrices))


@linalg("svdvals")
@full_precision
def svdvals(A: Any, *, driver: Any = None) -> Any:
    """linalg.svdvals(A, *, driver=None): singular values, largest first."""
    _check_svd(A, driver)
    # with a gradient to come, the vectors are computed once, now
    return svd_op(A)[1] if A.requires_grad else svdvals_op(A)


@public("svd")
@full_precision
def svd(input: Any, some: bool = True, compute_uv: bool = True) -> Any:
    """svd(input, some=True, compute_uv=True) -> (U, S, V), with V not transposed."""
    if not compute_uv:
        m, n = input.shape[-2:]
        lead = tuple(input.shape[:-2])
        U, V = input.new_zeros((*lead, m, m)), input.new_zeros((*lead, n, n))
        return named_result("svd U S V", (U, svdvals(input), V))
    U, S, Vh = linalg_svd(input, not some)
    return named_result("svd U S V", (U, S, transposed(Vh)))
