"""`svd_lowrank`, `pca_lowrank`, `lobpcg`: the leading factors of a matrix."""

from __future__ import annotations

from typing import Any

from .linalg import cholesky, eigh, qr, solve_triangular, svd  # type: ignore[attr-defined]
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


def lobpcg(A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None,
           n: int | None = None, iK: Any = None, niter: int | None = None,
           tol: float | None = None, largest: bool | None = None, method: str | None = None,
           tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
           ortho_bparams: Any = None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """lobpcg(A, k=1, B=None, X=None, largest=True) -> (E, X): A X = B X diag(E), k pairs.

    All pairs are computed, by `linalg.eigh`: what only guides an iteration changes nothing.
    """
    rows, columns = A.shape[-2:]
    if rows != columns:
        raise AssertionError(f"A must be square, got shape {A.shape}; give a symmetric matrix")
    count = k if k is not None else 1 if X is None else X.shape[-1]
    if rows < 3 * count:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) "
                         "is smaller than 3 x the number of requested eigenpairs "
                         f"(={count}); use linalg.eigh")  # fmt: skip
    if X is not None and tuple(X.shape[-2:]) != (rows, X.shape[-1] if n is None else n):
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(rows, n or count)}; "
                             "give one column for each pair")  # fmt: skip
    A = A.to_dense() if A.is_sparse else A
    if B is not None:  # A X = B X E is (inv(L) A inv(L)') Y = Y E with B = L L' and X = inv(L)' Y
        lower = cholesky(B.to_dense() if B.is_sparse else B)
        half = solve_triangular(lower, A, upper=False)
        A = solve_triangular(lower, half.mT, upper=False).mT
    turned = largest is None or largest  # `eigh` gives the smallest first
    values, vectors = ((t.flip(-1) if turned else t)[..., :count] for t in eigh(A))
    return values, vectors if B is None else solve_triangular(lower.mT, vectors, upper=True)
