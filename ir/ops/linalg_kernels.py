"""Matrix factorisations and solvers in NumPy that `numpy.linalg` lacks, vectorised over batches.

All take arrays of shape (..., m, n) and return new arrays. Pivots are LAPACK's: int32, from 1.
Loops run over blocks and columns of the matrices, never over the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
BLOCK = 48  # columns factored one by one before the rest is updated by a matrix product


def adjoint(a: Array) -> Array:
    """The conjugate transpose of the last two dimensions."""
    return np.swapaxes(a.conj() if a.dtype.kind == "c" else a, -2, -1)


def with_diagonal(a: Array, value: Any) -> Array:
    """A copy of `a` with `value` on the diagonal."""
    result = np.array(a)
    k = np.arange(min(a.shape[-2:]))
    result[..., k, k] = value
    return result


def identities(shape: tuple[int, ...], dtype: Any) -> Array:
    """A batch of (rectangular) identity matrices."""
    return with_diagonal(np.zeros(shape, dtype), 1)


def cleared(a: Array) -> bool:
    """Is there nothing to factor?"""
    return a.size == 0


# --- triangular systems --------------------------------------------------------------------------


def solve_triangular(
    a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """X with A X = B (or X A = B); reads only the named triangle, and zeros in it give inf."""
    if not left:
        return np.swapaxes(solve_triangular(np.swapaxes(a, -2, -1), np.swapaxes(b, -2, -1),
                           upper=not upper, unitriangular=unitriangular), -2, -1)  # fmt: skip
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = with_diagonal(a, 1)
    if upper:
        return _back_substitute(a, b)
    # reversed rows and columns make it upper triangular, where LAPACK's solver never pivots
    found = _back_substitute(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]
    return np.ascontiguousarray(found)  # tensors have no negative strides


def _back_substitute(a: Array, b: Array) -> Array:
    n = a.shape[-1]
    if n > BLOCK:
        half = n // 2
        low = _back_substitute(a[..., half:, half:], b[..., half:, :])
        rest = b[..., :half, :] - a[..., :half, half:] @ low
        high = _back_substitute(a[..., :half, :half], rest)
        return np.concatenate([high, np.broadcast_to(low, (*high.shape[:-2], *low.shape[-2:]))], -2)
    if cleared(a) or cleared(b):
        return np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), b.dtype)
    if np.all(np.diagonal(a, axis1=-2, axis2=-1)):
        return np.linalg.solve(a, b)
    return _row_by_row(a, b)


def _row_by_row(a: Array, b: Array) -> Array:
    """Plain back substitution: where a pivot is zero the result is inf or nan, as LAPACK's."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, (*lead, *b.shape[-2:])))
    for i in range(a.shape[-1] - 1, -1, -1):
        known = a[..., i : i + 1, i + 1 :] @ x[..., i + 1 :, :]
        x[..., i : i + 1, :] = (x[..., i : i + 1, :] - known) / a[..., i : i + 1, i : i + 1]
    return x


# --- LU ------------------------------------------------------------------------------------------


def lu_factor(a: Array) -> tuple[Array, Array, Array]:
    """L and U in one matrix, pivots, and the number of the first zero on U's diagonal (or 0)."""
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    count, k = int(np.prod(lead)), min(m, n)
    work = np.array(a).reshape(count, m, n)
    pivots = np.tile(np.arange(1, k + 1, dtype=np.int32), (count, 1))
    for start in range(0, k, BLOCK):
        stop = min(start + BLOCK, k)
        _factor_panel(work, pivots, start, stop)
        if stop < n:
            corner = work[:, start:stop, start:stop]
            work[:, start:stop, stop:] = solve_triangular(
                corner, work[:, start:stop, stop:], upper=False, unitriangular=True)  # fmt: skip
            work[:, stop:, stop:] -= work[:, stop:, start:stop] @ work[:, start:stop, stop:]
    info = first_true(np.diagonal(work, axis1=-2, axis2=-1) == 0)
    return work.reshape(a.shape), pivots.reshape(*lead, k), info.reshape(lead)


def first_true(mask: Array) -> Array:
    """The position of the first true element of each row, counted from 1; 0 where there is none."""
    if not mask.shape[-1]:
        return np.zeros(mask.shape[:-1], np.int32)
    return np.where(mask.any(-1), mask.argmax(-1) + 1, 0).astype(np.int32)


def _factor_panel(work: Array, pivots: Array, start: int, stop: int) -> None:
    batch = np.arange(len(work))
    for j in range(start, stop):
        best = j + np.argmax(magnitude(work[:, j:, j]), axis=1)
        pivots[:, j] = best + 1
        chosen = work[batch, best]
        work[batch, best] = work[:, j]
        work[:, j] = chosen
        pivot = work[:, j, j, None]
        work[:, j + 1 :, j] /= np.where(pivot == 0, 1, pivot)
        work[:, j + 1 :, j + 1 : stop] -= (work[:, j + 1 :, j, None]
                                           * work[:, j, None, j + 1 : stop])  # fmt: skip


def magnitude(x: Array) -> Any:
    """The size LAPACK compares pivots by: |re| + |im|."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def permutation(pivots: Array, m: int) -> Array:
    """The order of rows after the swaps: A[permutation] = L U."""
    lead = pivots.shape[:-1]
    flat = pivots.reshape(-1, pivots.shape[-1]) if pivots.size else pivots.reshape(
        int(np.prod(lead)), pivots.shape[-1])  # fmt: skip
    order = np.tile(np.arange(m), (len(flat), 1))
    batch = np.arange(len(flat))
    for i in range(flat.shape[-1]):
        other = flat[:, i] - 1
        order[:, i], order[batch, other] = order[batch, other], order[:, i].copy()
    return order.reshape(*lead, m)


def unpack_lu(lu: Array) -> tuple[Array, Array]:
    """L with ones on its diagonal, and U."""
    k = min(lu.shape[-2:])
    return with_diagonal(np.tril(lu[..., :, :k], -1), 1), np.triu(lu[..., :k, :])


def permute_rows(order: Array, b: Array) -> Array:
    """Row `order[i]` of `b` at place i, with the batch dimensions broadcast."""
    lead = np.broadcast_shapes(order.shape[:-1], b.shape[:-2])
    order = np.broadcast_to(order, (*lead, order.shape[-1]))
    return np.take_along_axis(np.broadcast_to(b, (*lead, *b.shape[-2:])), order[..., None], -2)


def lu_solve(
    lu: Array, pivots: Array, b: Array, *, left: bool = True, adjointed: bool = False
) -> Array:
    """X with A X = B, A^H X = B, or with A on the right, given A's factors."""
    if not left:
        return adjoint(lu_solve(lu, pivots, adjoint(b), adjointed=not adjointed))
    order = permutation(pivots, lu.shape[-1])
    if not adjointed:
        y = solve_triangular(lu, permute_rows(order, b), upper=False, unitriangular=True)
        return solve_triangular(lu, y, upper=True)
    y = solve_triangular(adjoint(lu), b, upper=False)
    y = solve_triangular(adjoint(lu), y, upper=True, unitriangular=True)
    return permute_rows(np.argsort(order, -1), y)


# --- Cholesky ------------------------------------------------------------------------------------


def cholesky(a: Array, *, upper: bool = False) -> tuple[Array, Array]:
    """The factor, and the order of the first minor that is not positive (or 0)."""
    info = np.zeros(a.shape[:-2], np.int32)
    lower = adjoint(a) if upper else a
    try:
        factor = np.linalg.cholesky(lower) if a.size else np.array(lower)
        if np.isnan(np.diagonal(factor, 0, -2, -1).real).any():  # LAPACKs differ in noticing
            factor, info = _cholesky_by_columns(lower)
    except np.linalg.LinAlgError:
        factor, info = _cholesky_by_columns(lower)
    return (np.ascontiguousarray(adjoint(factor)) if upper else factor), info


def _cholesky_by_columns(a: Array) -> tuple[Array, Array]:
    """Matrices that fail keep what is left of them, as LAPACK's do."""
    factor = np.tril(a)
    info = np.zeros(a.shape[:-2], np.int32)
    for j in range(a.shape[-1]):
        row = factor[..., j, :j]
        rest = factor[..., j, j].real - (row * row.conj()).real.sum(-1)
        info = np.where((info == 0) & ~(rest > 0), j + 1, info)
        good = info == 0
        root = np.sqrt(np.where(good, rest, 1))
        known = (factor[..., j + 1 :, :j] @ row.conj()[..., None])[..., 0]
        column = (factor[..., j + 1 :, j] - known) / root[..., None]
        at_fault = info == j + 1
        factor[..., j, j] = np.where(good, root, np.where(at_fault, rest, factor[..., j, j]))
        factor[..., j + 1 :, j] = np.where(good[..., None], column, factor[..., j + 1 :, j])
    return factor, info.astype(np.int32)


# --- products of Householder reflectors ----------------------------------------------------------


def reflector_vectors(a: Array, count: int) -> Array:
    """The columns v_i below the diagonal of `a`, with their implied ones."""
    return with_diagonal(np.tril(a[..., :, :count], -1), 1)


def householder_product(a: Array, tau: Array, columns: int | None = None) -> Array:
    """The first columns of H_1 H_2 ... H_k, where H_i = 1 - tau_i v_i v_i^H."""
    columns = a.shape[-1] if columns is None else columns
    start = identities((*a.shape[:-1], columns), a.dtype)
    return apply_reflectors(a, tau, start, left=True, transpose=False)


def apply_reflectors(a: Array, tau: Array, c: Array, *, left: bool, transpose: bool) -> Array:
    """Q C, Q^H C, C Q or C Q^H, where Q is the product of the reflectors in `a`."""
    if not left:
        return adjoint(apply_reflectors(a, tau, adjoint(c), left=True, transpose=not transpose))
    count = tau.shape[-1]
    vectors = reflector_vectors(a, count)
    result = np.array(c)
    for i in range(count) if transpose else range(count - 1, -1, -1):
        v = vectors[..., :, i : i + 1]
        scale = tau[..., i, None, None]
        scale = scale.conj() if transpose else scale
        result = result - scale * v * (adjoint(v) @ result)
    return result
