"""`svd_lowrank` and `pca_lowrank`: the leading factors of a matrix, from random projections."""

from __future__ import annotations

from typing import Any

from .linalg import qr, svd  # type: ignore[attr-defined]
from .tracer.random import randn
from .tracer.tensor import Tensor


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns whose span holds most of `A` (Halko et al. 2009, algorithm 4.4)."""
    start = randn(A.shape[-1], q, dtype=A.dtype)
    basis = qr(A @ start).Q
    for _ in range(niter):
        basis = qr(A.mH @ basis).Q
        basis = qr(A @ basis).Q
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """svd_lowrank(A, q=6, niter=2, M=None) -> (U, S, V): of A - M, with q columns."""
    if M is not None:
        A = A - M.broadcast_to(A.size())
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mH if wide else A
    basis = _basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = svd(basis.mH @ tall, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """pca_lowrank(A, q=None, center=True, niter=2) -> (U, S, V): the principal components."""
    smaller = min(A.shape[-2:])
    q = min(6, smaller) if q is None else q
    if not 0 <= q <= smaller:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)="
                         f"{smaller}")  # fmt: skip
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)
