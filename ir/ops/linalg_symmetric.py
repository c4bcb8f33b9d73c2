"""Bunch-Kaufman factors of symmetric and Hermitian matrices (ldl_factor, ldl_solve), and expm.

The pivots of LDL depend on the values, so its matrices are factored one by one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .linalg_kernels import adjoint, identities, magnitude

Array = np.ndarray
ALPHA = (1 + math.sqrt(17)) / 8  # bounds the growth of elements, see LAPACK's sytf2


def ldl_factor(a: Array, *, hermitian: bool) -> tuple[Array, Array, Array]:
    """L and the blocks of D in one lower triangle, pivots, and the first zero pivot's number."""
    lead, n = a.shape[:-2], a.shape[-1]
    flat = np.array(a).reshape(int(np.prod(lead)), n, n)
    pivots = np.zeros(flat.shape[:-1], np.int32)
    info = np.zeros(len(flat), np.int32)
    for k, matrix in enumerate(flat):
        flat[k], info[k] = _ldl_one(matrix, pivots[k], hermitian)
    return flat.reshape(a.shape), pivots.reshape(*lead, n), info.reshape(lead)


def _flipped(x: Array, hermitian: bool) -> Array:
    return x.conj() if hermitian else x


def _ldl_one(a: Array, pivots: Array, hermitian: bool) -> tuple[Array, int]:
    n, k, info = len(a), 0, 0
    below = np.tril(a, -1)
    diagonal = np.diag(a)
    work = below + _flipped(below, hermitian).T + np.diag(diagonal.real if hermitian else diagonal)
    while k < n:
        width, best, empty = _choose_pivot(work, k)
        info = k + 1 if empty and not info else info
        last = k + width - 1
        if best != last:  # rows and columns of what is not factored yet trade places
            work[[last, best], k:] = work[[best, last], k:]
            work[k:, [last, best]] = work[k:, [best, last]]
        after = k + width
        block, column = work[k:after, k:after], work[after:, k:after].copy()
        if not empty:
            scaled = np.linalg.solve(block.T, column.T).T if after < n else column
            work[after:, after:] -= scaled @ _flipped(column, hermitian).T
            work[after:, k:after] = scaled
        pivots[k:after] = best + 1 if width == 1 else -(best + 1)
        k = after
    return np.tril(work), info


def _choose_pivot(work: Array, k: int) -> tuple[int, int, bool]:
    """The width of the next block, the row to bring to its end, and whether the column is zero."""
    own = magnitude(work[k, k])
    column = magnitude(work[k + 1 :, k])
    largest = column.max(initial=0)
    if max(own, largest) == 0 or np.isnan(own):
        return 1, k, True
    if own >= ALPHA * largest:
        return 1, k, False
    row = k + 1 + int(column.argmax())
    others = magnitude(np.delete(work[row, k:], row - k))
    across = others.max(initial=0)
    if own >= ALPHA * largest * (largest / across):
        return 1, k, False
    if magnitude(work[row, row]) >= ALPHA * across:
        return 1, row, False
    return 2, row, False


def ldl_solve(factors: Array, pivots: Array, b: Array, *, hermitian: bool) -> Array:
    """X with A X = B, given A's LDL factors."""
    n = factors.shape[-1]
    lead = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    count = int(np.prod(lead))
    flat = np.broadcast_to(factors, (*lead, n, n)).reshape(count, n, n)
    swaps = np.broadcast_to(pivots, (*lead, n)).reshape(count, n)
    result = np.array(np.broadcast_to(b, (*lead, *b.shape[-2:]))).reshape(count, *b.shape[-2:])
    for k in range(count):
        _ldl_solve_one(flat[k], swaps[k], result[k], hermitian)
    return result.reshape(*lead, *b.shape[-2:])


def _blocks(pivots: Array) -> list[tuple[int, int]]:
    found, k = [], 0
    while k < len(pivots):
        width = 1 if pivots[k] > 0 else 2
        found.append((k, k + width))
        k += width
    return found


def _ldl_solve_one(factors: Array, pivots: Array, x: Array, hermitian: bool) -> None:
    blocks = _blocks(pivots)
    for start, stop in blocks:
        other = abs(int(pivots[start])) - 1
        x[[stop - 1, other]] = x[[other, stop - 1]]
        x[stop:] -= factors[stop:, start:stop] @ x[start:stop]
        block = np.tril(factors[start:stop, start:stop])
        block = block + _flipped(np.tril(block, -1), hermitian).T
        if stop - start == 1:
            x[start:stop] /= block
        else:
            x[start:stop] = np.linalg.solve(block, x[start:stop])
    for start, stop in reversed(blocks):
        x[start:stop] -= _flipped(factors[stop:, start:stop], hermitian).T @ x[stop:]
        other = abs(int(pivots[start])) - 1
        x[[stop - 1, other]] = x[[other, stop - 1]]


# --- the exponential -----------------------------------------------------------------------------

# Pade approximant of degree 13 (Higham 2005); good for norms up to 5.37
_PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0,
         129060195264000.0, 10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0,
         40840800.0, 960960.0, 16380.0, 182.0, 1.0)  # fmt: skip
_PADE_NORM = 5.371920351148152


def matrix_exp(a: Array) -> Array:
    """exp(A) by scaling and squaring, in double precision."""
    if not a.size:
        return np.array(a)
    wide: Any = np.complex128 if a.dtype.kind == "c" else np.float64
    x = a.astype(wide)
    norm = np.abs(x).sum(-2).max(-1)
    finite = np.isfinite(norm)
    steps = np.ceil(np.log2(np.maximum(np.where(finite, norm, 1), _PADE_NORM) / _PADE_NORM))
    steps = np.minimum(steps.astype(int), 1000)[..., None, None]
    x = x * np.exp2(-steps.astype(np.float64))
    x = np.where(finite[..., None, None], x, np.nan)
    result = _pade(x)
    for k in range(int(steps.max(initial=0))):
        result = np.where(steps > k, result @ result, result)
    return result.astype(a.dtype)


def _pade(x: Array) -> Array:
    b = _PADE
    one = identities(x.shape, x.dtype)
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = (
        x6 @ (b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    )
    odd = x @ odd
    even = (
        x6 @ (b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    )
    finite = np.isfinite(x).all((-2, -1), keepdims=True)
    solved = np.linalg.solve(np.where(finite, even - odd, one), even + odd)
    return np.where(finite, solved, np.nan)


__all__ = ["adjoint", "ldl_factor", "ldl_solve", "matrix_exp"]
