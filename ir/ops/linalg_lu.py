"""LU and LDL factors and what they solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import warn_of_successor
from ..op import Op, define
from ..types import TensorType, broadcast_shapes, int32
from ..value import Value, public
from . import linalg_kernels as kernels
from . import linalg_symmetric as symmetric
from .joining import cat
from .kinds import no_derivative
from .linalg_common import (
    add,
    batch_place,
    check_float,
    check_matrix,
    check_same_dtype,
    check_solvable,
    check_square,
    lead_of,
    linalg,
    of_shape,
    set_diagonal,
)
from .linalg_solve import solve_triangular_op
from .products import drawn, matmul, transposed
from .results import named_result
from .views import zeros

_SHAPES: Any = (((3, 3), {}), ((2, 4, 3), {}), ((3, 4), {}))


def _factored(rng: np.random.Generator, factor: Any = kernels.lu_factor, **attrs: Any) -> Any:
    """A sample of factors, pivots and a right-hand side."""
    factors, pivots, _ = factor(rng.standard_normal((3, 3)), **attrs)
    return factors, pivots, rng.standard_normal((3, 2))


# --- factors -------------------------------------------------------------------------------------


def _factor(a: np.ndarray, *, check_errors: bool = False, caller: str = "lu_factor_ex") -> Any:
    factors, pivots, info = kernels.lu_factor(a)
    if check_errors and info.any():
        place, code = batch_place(info)
        raise RuntimeError(
            f"torch.linalg.{caller}: {place}U[{code},{code}] is zero and using it on lu_solve "
            "would result in a division by zero. If you still want to perform the factorization, "
            "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
        )
    return factors, pivots, info


def _factor_infer(A: TensorType, **_: Any) -> Any:
    lead, k = lead_of(A), min(A.shape[-2:])
    return A, TensorType(int32, (*lead, k)), TensorType(int32, lead)


def lu_rule(grad_L: Any, grad_U: Any, permute: Any, L: Any, U: Any) -> Any:
    """The gradient of A = P L U; `permute` is P.

    Square: A' = P L^-H [tril(L^H L', -1) + triu(U' U^H)] U^-H. A wide or tall matrix has a square
    part with these terms, corrected by what its factors mean to the rest.
    """
    m, n = L.shape[-2], U.shape[-1]
    k = min(m, n)
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    below = above = rest = None
    if grad_L is not None:
        below = matmul(transposed(L1), grad_L.narrow(-2, 0, k))
    if grad_U is not None:
        above = matmul(grad_U.narrow(-1, 0, k), transposed(U1))
    if m > n and grad_L is not None:
        tail = grad_L.narrow(-2, k, m - k)
        above = add(above, -matmul(transposed(L.narrow(-2, k, m - k)), tail))
        rest = solve_triangular_op(transposed(U1), tail, upper=False, left=False)
    if m < n and grad_U is not None:
        tail = grad_U.narrow(-1, k, n - k)
        below = add(below, -matmul(tail, transposed(U.narrow(-1, k, n - k))))
        rest = solve_triangular_op(transposed(L), tail, upper=True, unitriangular=True)
    inner = add(None if below is None else below.tril(-1), None if above is None else above.triu())
    square = solve_triangular_op(transposed(L1), inner, upper=True, unitriangular=True)
    square = solve_triangular_op(transposed(U1), square, upper=False, left=False)
    if m != n:
        rest = zeros(_rest_type(square, m, n)) if rest is None else rest
        square = cat(square, rest, dim=square.ndim - (2 if m > n else 1))
    return matmul(permute, square)


def _rest_type(square: Any, m: int, n: int) -> TensorType:
    k = min(m, n)
    return of_shape(square.type_, m - k if m > n else k, n - k if n > m else k)


def _factor_rule(grad_LU: Any, LU: Any, pivots: Any) -> Any:
    L, U = parts(LU)
    k = min(LU.shape[-2:])
    grad_L = grad_LU.narrow(-1, 0, k).tril(-1)
    grad_U = grad_LU.narrow(-2, 0, k).triu()
    return lu_rule(grad_L, grad_U, permutation_op(pivots, LU), L, U)


def parts(LU: Any) -> tuple[Any, Any]:
    """L and U of the packed factors, in ops."""
    k = min(LU.shape[-2:])
    L = LU.narrow(-1, 0, k).tril(-1)
    ones = L.new_ones((*L.shape[:-2], k))
    return set_diagonal(L, ones), LU.narrow(-2, 0, k).triu()


factor_op = define(
    "linalg_lu_factor_ex", "A -> LU pivots info", raises=True, numpy=_factor, infer=_factor_infer,
    samples=drawn(*_SHAPES),
    vjp=dict(A=_factor_rule),
)  # fmt: skip


def _permutation(pivots: np.ndarray, like: np.ndarray) -> np.ndarray:
    m = like.shape[-2]
    order = kernels.permutation(pivots, m)
    result = np.zeros((*order.shape, m), like.dtype)
    np.put_along_axis(result, order[..., None, :], 1, -2)
    return result


# has no rule: where rows go is not differentiable, though P has A's dtype
permutation_op: Op = define(
    "linalg_permutation", "pivots like -> P", numpy=_permutation,
    infer=lambda pivots, like: TensorType(
        like.dtype, (*pivots.shape[:-1], like.shape[-2], like.shape[-2])),
    samples=lambda rng: [((np.array([2, 2, 3], np.int32), rng.standard_normal((3, 3))), {})],
)  # fmt: skip


def _lu(a: np.ndarray) -> tuple[np.ndarray, ...]:
    factors, pivots, _ = kernels.lu_factor(a)
    return pivots, *kernels.unpack_lu(factors)


def _lu_infer(A: TensorType) -> Any:
    m, n = A.shape[-2:]
    k = min(m, n)
    return TensorType(int32, (*lead_of(A), k)), of_shape(A, m, k), of_shape(A, k, n)


lu_op = define(
    "linalg_lu", "A -> pivots L U", numpy=_lu, infer=_lu_infer,
    samples=drawn(*_SHAPES),
    vjp=dict(A=lambda grad_L, grad_U, pivots, L, U: lu_rule(
        grad_L, grad_U, permutation_op(pivots, L), L, U)),
)  # fmt: skip


def check_pivot(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError(
            "linalg.lu_factor: LU without pivoting is not implemented on the CPU; use pivot=True"
        )


@linalg("lu_factor_ex")
def lu_factor_ex(A: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """linalg.lu_factor_ex(A, *, pivot=True, check_errors=False) -> (LU, pivots, info)."""
    check_matrix("torch.lu_factor", A)
    check_float("torch.lu_factor", A, kernel="lu_cpu", late=True)
    check_pivot(pivot)
    result = factor_op(A, check_errors=check_errors)
    return named_result("linalg_lu_factor_ex LU pivots info", result)


@linalg("lu_factor")
def lu_factor(A: Any, *, pivot: bool = True) -> Any:
    """linalg.lu_factor(A, *, pivot=True) -> (LU, pivots)."""
    check_matrix("torch.lu_factor", A)
    check_float("torch.lu_factor", A, kernel="lu_cpu", late=True)
    check_pivot(pivot)
    result = factor_op(A, check_errors=True, caller="lu_factor")
    return named_result("linalg_lu_factor LU pivots", result[:2])


@linalg("lu")
def linalg_lu(A: Any, *, pivot: bool = True) -> Any:
    """linalg.lu(A, *, pivot=True) -> (P, L, U)."""
    check_matrix("linalg.lu", A)
    check_float("linalg.lu", A, kernel="lu_cpu", late=True)
    check_pivot(pivot)
    pivots, L, U = lu_op(A)
    return named_result("linalg_lu P L U", (permutation_op(pivots, L), L, U))


@public("lu")
def lu(input: Any, pivot: bool = True, get_infos: bool = False) -> Any:
    """lu(input, pivot=True, get_infos=False) -> (LU, pivots[, info])."""
    warn_of_successor("lu", "lu_factor / torch.linalg.lu_factor_ex",
                      "LU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
                      "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)")  # fmt: skip
    result = lu_factor_ex(input, pivot=pivot, check_errors=not get_infos)
    return named_result("_lu_with_info LU pivots info", result) if get_infos else tuple(result[:2])


def _unpack_rule(grad_L: Any, grad_U: Any, LU_data_type: TensorType) -> Any:
    m, n = LU_data_type.shape[-2:]
    lower = None if grad_L is None else _fill_out(grad_L.tril(-1), m, n)
    upper = None if grad_U is None else _fill_out(grad_U.triu(), m, n)
    return add(lower, upper)


def _fill_out(matrix: Any, m: int, n: int) -> Any:
    """`matrix` in the corner of an m by n one."""
    rows, columns = matrix.shape[-2:]
    if rows < m:
        matrix = cat(matrix, zeros(of_shape(matrix.type_, m - rows, columns)), dim=matrix.ndim - 2)
    if columns < n:
        matrix = cat(matrix, zeros(of_shape(matrix.type_, m, n - columns)), dim=matrix.ndim - 1)
    return matrix


unpack_op = define(
    "lu_unpack", "LU_data -> L U", numpy=kernels.unpack_lu,
    infer=lambda LU_data: _lu_infer(LU_data)[1:], vjp=dict(LU_data=_unpack_rule),
    samples=drawn(*_SHAPES),
)  # fmt: skip


@public("lu_unpack", method=False)
def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    """lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True) -> (P, L, U)."""
    check_matrix("torch.lu_unpack", LU_data, "LU_data")
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                           "torch.int32 dtype.\nNote: this function is intended to be used with "
                           "the output produced by torch.linalg.lu_factor")  # fmt: skip
    empty = LU_data.new_zeros((0,))
    P = permutation_op(LU_pivots, LU_data) if unpack_pivots else empty
    L, U = unpack_op(LU_data) if unpack_data else (empty, LU_data.new_zeros((0,)))
    return named_result("lu_unpack P L U", (P, L, U))


# --- solving with the factors --------------------------------------------------------------------


def _lu_solve_infer(LU: TensorType, pivots: TensorType, B: TensorType, **_: Any) -> TensorType:
    return TensorType(B.dtype, (*broadcast_shapes(lead_of(LU), lead_of(B)), *B.shape[-2:]))


def _lu_solve_LU(grad: Any, LU: Any, pivots: Any, result: Any, left: bool, adjoint: bool) -> Any:
    """The gradient of the solved matrix A, split over its factors: A' U^H and L^H P^T A'."""
    turned = lu_solve_op(LU, pivots, grad, left=left, adjoint=not adjoint)
    grad_A = -(matmul(turned, transposed(result)) if left else matmul(transposed(result), turned))
    grad_A = transposed(grad_A) if adjoint else grad_A
    inner = matmul(permutation_op(pivots, LU).mT, grad_A)
    L, U = parts(LU)
    return matmul(inner, transposed(U)).tril(-1) + matmul(transposed(L), inner).triu()


lu_solve_op: Op = define(
    "linalg_lu_solve", "LU pivots B -> result", infer=_lu_solve_infer,
    numpy=lambda lu, pivots, b, *, left=True, adjoint=False: kernels.lu_solve(
        lu, pivots, b, left=left, adjointed=adjoint),
    samples=lambda rng: [(_factored(rng), attrs) for attrs in ({}, {"adjoint": True})],
    vjp=dict(LU=_lu_solve_LU,
             B=lambda grad, LU, pivots, left, adjoint: lu_solve_op(
                 LU, pivots, grad, left=left, adjoint=not adjoint)),
)  # fmt: skip


@linalg("lu_solve")
def linalg_lu_solve(
    LU: Any, pivots: Any, B: Any, *, left: bool = True, adjoint: bool = False
) -> Any:
    """linalg.lu_solve(LU, pivots, B, *, left=True, adjoint=False)."""
    name = "torch.linalg.lu_solve"
    check_solvable("linalg.lu_solve", LU, B, left)
    check_float("torch.linalg.lu_solve", LU)
    check_same_dtype(name, LU, B, ("LU", "B"))
    if pivots.dtype is not int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    if tuple(pivots.shape) != tuple(LU.shape[:-1]):
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the "
                           "dimension of the matrix")  # fmt: skip
    return lu_solve_op(LU, pivots, B, left=left, adjoint=adjoint)


@public("lu_solve")
def lu_solve(input: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """lu_solve(input, LU_data, LU_pivots): see linalg.lu_solve."""
    warn_of_successor("lu_solve", "lu_solve", "Note that torch.linalg.lu_solve has its arguments "
                      "reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\n"
                      "X = torch.linalg.lu_solve(LU, pivots, B)")  # fmt: skip
    return linalg_lu_solve(LU_data, LU_pivots, input)


# --- LDL -----------------------------------------------------------------------------------------


def _ldl(a: np.ndarray, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    factors, pivots, info = symmetric.ldl_factor(a, hermitian=hermitian)
    if check_errors and info.any():
        place, code = batch_place(info)
        raise RuntimeError(
            f"torch.linalg.ldl_factor_ex: {place}The diagonal element {code} is zero"
        )
    return factors, pivots, info


# torch does not differentiate LDL either
ldl_op = define(
    "linalg_ldl_factor_ex", "self -> LD pivots info", raises=True, numpy=_ldl,
    infer=lambda self, **_: _factor_infer(self),
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})), node="NotImplemented",
    vjp=dict(self=no_derivative("derivative for aten::linalg_ldl_factor_ex is not implemented")),
)  # fmt: skip
ldl_solve_op = define(
    "linalg_ldl_solve", "LD pivots B -> result", raises=True, numpy=symmetric.ldl_solve,
    infer=_lu_solve_infer,
    samples=lambda rng: [(_factored(rng, symmetric.ldl_factor, hermitian=False),
                          {"hermitian": False})],
    node="NotImplemented", vjp=dict.fromkeys(("LD", "B"), no_derivative(
        "derivative for aten::linalg_ldl_solve is not implemented")),
)  # fmt: skip


@linalg("ldl_factor_ex")
def ldl_factor_ex(input: Any, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """linalg.ldl_factor_ex(input, *, hermitian=False, check_errors=False) -> (LD, pivots, info)."""
    check_square("torch.linalg.ldl_factor_ex", input)
    check_float("torch.linalg.ldl_factor_ex", input)
    result = ldl_op(input, hermitian=hermitian and input.dtype.is_complex,
                    check_errors=check_errors)  # fmt: skip
    return named_result("linalg_ldl_factor_ex LD pivots info", result)


@linalg("ldl_factor")
def ldl_factor(input: Any, *, hermitian: bool = False) -> Any:
    """linalg.ldl_factor(input, *, hermitian=False) -> (LD, pivots)."""
    result = ldl_factor_ex(input, hermitian=hermitian, check_errors=True)
    return named_result("linalg_ldl_factor LD pivots", result[:2])


@linalg("ldl_solve")
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False) -> Any:
    """linalg.ldl_solve(LD, pivots, B, *, hermitian=False)."""
    name = "torch.linalg.ldl_solve"
    check_solvable(name, LD, B)
    check_float(name, LD)
    check_same_dtype(name, LD, B, ("LD", "B"))
    if not isinstance(pivots, Value) or pivots.dtype.category != 1:
        raise RuntimeError("torch.linalg.ldl_solve: Expected pivots to be integers.")
    if tuple(pivots.shape) != tuple(LD.shape[:-1]):
        raise RuntimeError("torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be "
                           "the same")  # fmt: skip
    return ldl_solve_op(LD, pivots, B, hermitian=hermitian and LD.dtype.is_complex)
