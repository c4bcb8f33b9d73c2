"""Linear systems: solve, triangular systems, and Cholesky factors with what they solve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import warn_of_successor
from ..op import Op, define
from ..types import TensorType, broadcast_shapes, int32
from ..value import public
from . import linalg_kernels as kernels
from .linalg_common import (
    LinAlgError,
    batch_place,
    check_float,
    check_same_dtype,
    check_solvable,
    check_square,
    lead_of,
    linalg,
)
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result

# --- linear systems ------------------------------------------------------------------------------


def is_vector(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> bool:
    """Is B a batch of vectors? As torch: 1-d, or shaped like A without its last dimension."""
    return len(b_shape) == 1 or tuple(b_shape) == tuple(a_shape[:-1])


def _solve(
    a: np.ndarray, b: np.ndarray, *, left: bool = True, check_errors: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    vector = is_vector(a.shape, b.shape)
    matrix = b[..., None] if vector else b
    info = np.zeros(a.shape[:-2], np.int32)
    try:
        if left:
            result = np.linalg.solve(a, matrix)
        else:
            turned = np.linalg.solve(np.swapaxes(a, -2, -1), np.swapaxes(matrix, -2, -1))
            result = np.swapaxes(turned, -2, -1)
    except np.linalg.LinAlgError:
        factors, pivots, info = kernels.lu_factor(a)
        if check_errors and info.any():
            place, _ = batch_place(info)
            raise LinAlgError(f"torch.linalg.solve: {place}The solver failed because the input "
                              "matrix is singular. Use lstsq or pinv.") from None  # fmt: skip
        result = kernels.lu_solve(factors, pivots, matrix, left=left)
    return (result[..., 0] if vector else result), info


def _solve_infer(A: TensorType, B: TensorType, **_: Any) -> tuple[TensorType, TensorType]:
    vector = is_vector(A.shape, B.shape)
    lead = broadcast_shapes(lead_of(A), B.shape[:-1] if vector else lead_of(B))
    result = (*lead, B.shape[-1]) if vector else (*lead, *B.shape[-2:])
    return TensorType(B.dtype, result), TensorType(int32, lead_of(A))


def _solve_rule(
    grad_result: Any, A: Any, B_type: TensorType, result: Any, left: bool, needs: Any
) -> Any:
    vector = is_vector(tuple(A.shape), B_type.shape)
    if vector:
        grad_result, result = grad_result.unsqueeze(-1), result.unsqueeze(-1)
    # kept as matrices: a vector with a batch of its own could be taken for a matrix
    grad_B = solve_op(transposed(A), grad_result, left=left)[0]
    grad_A = None
    if needs[0]:
        turned = transposed(result)
        grad_A = -(matmul(grad_B, turned) if left else matmul(turned, grad_B))
    return grad_A, grad_B.squeeze(-1) if vector else grad_B


solve_op: Op = define(
    "linalg_solve_ex", "A B -> result info", raises=True, numpy=_solve, infer=_solve_infer,
    samples=drawn(((3, 3), (3, 2), {}), ((2, 3, 3), (2, 3), {}),
                  ((2, 3, 3), (4, 3), {"left": False})),
    vjp={("A", "B"): _solve_rule},
)  # fmt: skip


@linalg("solve_ex")
@full_precision
def solve_ex(A: Any, B: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """linalg.solve_ex(A, B, *, left=True, check_errors=False) -> (result, info)."""
    name = "linalg.solve"
    check_float(name, A)
    check_same_dtype(name, A, B)
    vector = is_vector(tuple(A.shape), tuple(B.shape))
    check_solvable(name, A, B.unsqueeze(-1) if vector else B, left)
    if vector and not left:
        raise RuntimeError(f"{name}: Vector broadcasting of the left hand side is not supported "
                           f"for left=False. In this case {name} is equivalent to B / "
                           "A.squeeze(-1)")  # fmt: skip
    result = solve_op(A, B, left=left, check_errors=check_errors)
    return named_result("linalg_solve_ex result info", result)


@linalg("solve")
@full_precision
def solve(A: Any, B: Any, *, left: bool = True) -> Any:
    """linalg.solve(A, B, *, left=True): X with A X = B, or X A = B."""
    return solve_ex(A, B, left=left, check_errors=True)[0]


def _triangular_infer(self: TensorType, B: TensorType, **_: Any) -> TensorType:
    return TensorType(B.dtype, (*broadcast_shapes(lead_of(self), lead_of(B)), *B.shape[-2:]))


def triangle(matrix: Any, upper: bool, unitriangular: bool = False) -> Any:
    """One triangle of a matrix, without its diagonal if that is implied."""
    skip = int(unitriangular)
    return matrix.triu(skip) if upper else matrix.tril(-skip)


def _triangular_rule(
    grad: Any, self: Any, result: Any, upper: bool, left: bool, unitriangular: bool, needs: Any
) -> Any:
    grad_B = solve_triangular_op(transposed(self), grad, upper=not upper, left=left,
                                 unitriangular=unitriangular)  # fmt: skip
    if not needs[0]:
        return None, grad_B
    turned = transposed(result)
    grad_A = -(matmul(grad_B, turned) if left else matmul(turned, grad_B))
    return triangle(grad_A, upper, unitriangular), grad_B


solve_triangular_op: Op = define(
    "linalg_solve_triangular", "self B -> result", raises=True, numpy=kernels.solve_triangular,
    infer=_triangular_infer, vjp={("self", "B"): _triangular_rule},
    samples=drawn(*(((3, 3), (2, 3, 3), {"upper": u, "left": l, "unitriangular": False})
                    for u in (True, False) for l in (True, False))),
)  # fmt: skip


@linalg("solve_triangular")
def solve_triangular(
    input: Any, B: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    """linalg.solve_triangular(input, B, *, upper, left=True, unitriangular=False)."""
    name = "linalg.solve_triangular"
    check_solvable(name, input, B, left)
    check_same_dtype(name, input, B)
    check_float(name, input)
    return solve_triangular_op(input, B, upper=upper, left=left, unitriangular=unitriangular)


# --- Cholesky ------------------------------------------------------------------------------------


def _cholesky(name: str, a: np.ndarray, upper: bool, check_errors: bool) -> Any:
    factor, info = kernels.cholesky(a, upper=upper)
    if check_errors and info.any():
        place, code = batch_place(info)
        raise LinAlgError(f"{name}: {place}The factorization could not be completed because the "
                          f"input is not positive-definite (the leading minor of order {code} is "
                          "not positive-definite). Use linalg.cholesky_ex to look at its info, "
                          "or add to the diagonal.")  # fmt: skip
    return factor, info


def cholesky_rule(grad: Any, factor: Any, upper: bool) -> Any:
    """L^-H sym(tril(L^H grad)) L^-1, with half of the diagonal on either side.

    The diagonal keeps its imaginary part, though that of the factor has none: so does torch's.
    """
    lower, grad = (transposed(factor), transposed(grad)) if upper else (factor, grad)
    inner = matmul(transposed(lower), grad).tril()
    inner = (inner + transposed(inner.tril(-1))) / 2
    half = solve_triangular_op(transposed(lower), inner, upper=True)
    return solve_triangular_op(lower, half, upper=False, left=False)


def _positive(rng: np.random.Generator) -> list[Any]:
    a = rng.standard_normal((2, 3, 3))
    a = a @ np.swapaxes(a, -2, -1) + np.eye(3)
    return [((a,), {}), ((a[0],), {"upper": True})]


cholesky_ex_op = define(
    "linalg_cholesky_ex", "self -> L info", raises=True,
    numpy=lambda a, *, upper=False, check_errors=False: _cholesky(
        "linalg.cholesky", a, upper, check_errors),
    infer=lambda self, **_: (self, TensorType(int32, lead_of(self))),
    samples=_positive,
    vjp=dict(self=lambda grad_L, L, upper: cholesky_rule(grad_L, L, upper)),
)  # fmt: skip
cholesky_op = define(
    "cholesky", "self -> result", raises=True, infer=lambda self, **_: self,
    numpy=lambda a, *, upper=False: _cholesky("cholesky", a, upper, True)[0],
    samples=_positive,
    vjp=dict(self=lambda grad, result, upper: cholesky_rule(grad, result, upper)),
)  # fmt: skip


@linalg("cholesky_ex")
@full_precision
def cholesky_ex(input: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    """linalg.cholesky_ex(input, *, upper=False, check_errors=False) -> (L, info)."""
    check_square("linalg.cholesky", input)
    check_float("linalg.cholesky", input, kernel="cholesky_cpu")
    result = cholesky_ex_op(input, upper=upper, check_errors=check_errors)
    return named_result("linalg_cholesky_ex L info", result)


@linalg("cholesky")
@full_precision
def linalg_cholesky(input: Any, *, upper: bool = False) -> Any:
    """linalg.cholesky(input, *, upper=False): L with A = L L^H; LinAlgError if there is none."""
    return cholesky_ex(input, upper=upper, check_errors=True)[0]


@public("cholesky", out="safe cholesky result")
@full_precision
def cholesky(input: Any, upper: bool = False) -> Any:
    """cholesky(input, upper=False): see linalg.cholesky."""
    warn_of_successor("cholesky", "cholesky", "L = torch.cholesky(A)\nshould be replaced with\n"
                      "L = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\n"
                      "should be replaced with\nU = torch.linalg.cholesky(A).mH")  # fmt: skip
    check_square("cholesky", input)
    check_float("cholesky", input, kernel="cholesky_cpu")
    return cholesky_op(input, upper=upper)


def _cholesky_solve(b: np.ndarray, factor: np.ndarray, *, upper: bool = False) -> np.ndarray:
    lower = kernels.adjoint(factor) if upper else factor
    half = kernels.solve_triangular(lower, b, upper=False)
    return kernels.solve_triangular(kernels.adjoint(lower), half, upper=True)


def _triangular(rng: np.random.Generator) -> list[Any]:
    a = np.tril(rng.standard_normal((2, 3, 3))) + 2 * np.eye(3)
    return [((a,), {}), ((a[0].T,), {"upper": True})]


def _cholesky_solve_rule(
    grad: Any, input2: Any, result: Any, upper: bool, needs: Any
) -> tuple[Any, Any]:
    grad_B = cholesky_solve_op(grad, input2, upper=upper)
    if not needs[1]:
        return grad_B, None
    common = matmul(grad_B, transposed(result))
    common = common + transposed(common)
    return grad_B, -(matmul(input2, common) if upper else matmul(common, input2))


cholesky_solve_op: Op = define(
    "cholesky_solve", "self input2 -> result", numpy=_cholesky_solve,
    infer=lambda self, input2, **_: _triangular_infer(input2, self),
    samples=lambda rng: [((rng.standard_normal((3, 2)), factor), attrs)
                         for (factor,), attrs in _triangular(rng)],
    vjp={("self", "input2"): _cholesky_solve_rule},
)  # fmt: skip


@public("cholesky_solve", out="safe cholesky_solve result")
@full_precision
def cholesky_solve(input: Any, input2: Any, upper: bool = False) -> Any:
    """cholesky_solve(input, input2, upper=False): X with L L^H X = B."""
    check_solvable("cholesky_solve", input2, input)
    check_same_dtype("cholesky_solve", input, input2, ("self", "A"))
    check_float("cholesky_solve", input)
    return cholesky_solve_op(input, input2, upper=upper)


def _cholesky_inverse_rule(grad: Any, self: Any, result: Any, upper: bool) -> Any:
    common = matmul(result, matmul(grad + transposed(grad), result))
    return -(matmul(self, common) if upper else matmul(common, self))


cholesky_inverse_op = define(
    "cholesky_inverse", "self -> result", infer=lambda self, **_: self,
    numpy=lambda a, *, upper=False: _cholesky_solve(
        kernels.identities(a.shape, a.dtype), a, upper=upper),
    samples=_triangular,
    vjp=dict(self=_cholesky_inverse_rule),
)  # fmt: skip


@public("cholesky_inverse", out="safe cholesky_inverse result")
@full_precision
def cholesky_inverse(input: Any, upper: bool = False) -> Any:
    """cholesky_inverse(input, upper=False): the inverse of L L^H."""
    check_square("cholesky_inverse", input)
    check_float("cholesky_inverse", input)
    return cholesky_inverse_op(input, upper=upper)
