"""Pseudo-inverses, ranks, least squares; the matrix exponential."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import is_number
from ..op import Op, define
from ..types import TensorType, broadcast_shapes, int64, type_word
from ..value import Value, public
from . import linalg_kernels as kernels
from . import linalg_symmetric as symmetric
from .joining import cat
from .linalg_common import (
    add,
    check_float,
    check_matrix,
    check_square,
    lead_of,
    linalg,
    of_shape,
)
from .linalg_eigen import converging, eigvalsh
from .linalg_factor import singular, svdvals
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result
from .totals import add_up
from .views import zeros

# --- pseudo-inverse and rank ---------------------------------------------------------------------


def _cut(sizes: np.ndarray, atol: Any, rtol: Any) -> Any:
    """Which singular values count: those above max(atol, rtol * largest)."""
    largest = sizes.max(-1, keepdims=True, initial=0)
    bound = np.maximum(np.asarray(atol)[..., None], np.asarray(rtol)[..., None] * largest)
    return sizes > bound


def _pinv(a: np.ndarray, atol: Any, rtol: Any, *, hermitian: bool = False) -> Any:
    if not a.size:
        return np.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        values, u = converging(np.linalg.eigh, a, "L")
        sizes, vh = np.abs(values), kernels.adjoint(u)
    else:
        u, values, vh = singular(a, full_matrices=False)
        sizes = values
    keep = _cut(sizes, atol, rtol)
    inverse = np.where(keep, 1 / np.where(keep, values, 1), 0)
    result = (kernels.adjoint(vh) * inverse[..., None, :]) @ kernels.adjoint(u)
    return result.astype(a.dtype, copy=False)


def pinv_rule(grad: Any, result: Any, self: Any) -> Any:
    """Golub and Pereyra's derivative, with the products ordered by the smaller side."""
    m, n = self.shape[-2:]
    turned, back = transposed(result), transposed(grad)
    if m <= n:
        inner = matmul(back, result)
        first = matmul(inner, turned)
        return (-transposed(matmul(result, inner)) + first
                - matmul(matmul(self, result), first)
                + matmul(matmul(turned, result), back - matmul(inner, self)))  # fmt: skip
    inner = matmul(result, back)
    first = matmul(turned, inner)
    return (-transposed(matmul(inner, result)) + first
            - matmul(matmul(first, result), self)
            + matmul(matmul(back - matmul(self, inner), result), turned))  # fmt: skip


def _pinv_infer(self: TensorType, atol: Any, rtol: Any, **_: Any) -> TensorType:
    m, n = self.shape[-2:]
    return of_shape(self, n, m)


pinv_op = define(
    "linalg_pinv", "self atol rtol -> result", raises=True, numpy=_pinv, infer=_pinv_infer,
    samples=lambda rng: [((rng.standard_normal(shape), 0.0, 1e-12), {})
                         for shape in ((4, 3), (2, 3, 4))],
    vjp=dict(self=lambda grad, result, self: pinv_rule(grad, result, self)),
)  # fmt: skip


def tolerances(input: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """torch's defaults: rtol is eps * max(m, n), but 0 where only atol is given."""
    for bound in (atol, rtol):
        if isinstance(bound, Value) and bound.dtype.is_complex:
            raise RuntimeError("linalg: tolerances of complex type are not supported")
    if rtol is None:
        eps = float(np.finfo(input.dtype.to_real().compute).eps)
        rtol = 0.0 if atol is not None and not _all_zero(atol) else eps * max(input.shape[-2:])
    return 0.0 if atol is None else atol, rtol


def _all_zero(bound: Any) -> bool:
    return is_number(bound) and bool(bound == 0)


@linalg("pinv", out="safe linalg.pinv result")
def pinv(
    input: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """linalg.pinv(input, *, atol=None, rtol=None, hermitian=False): the pseudo-inverse."""
    if isinstance(rcond, bool):  # pinv(A, hermitian) never was: rcond comes first
        rcond = float(rcond)
    check_matrix("linalg.pinv", input, "self")
    check_float("linalg.pinv", input)
    if hermitian:
        check_square("linalg.pinv", input)
    atol, rtol = tolerances(input, atol, rcond if rtol is None else rtol)
    return pinv_op(input, atol, rtol, hermitian=hermitian)


@public("pinverse")
@full_precision
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """pinverse(input, rcond=1e-15): see linalg.pinv."""
    return pinv(input, rcond)


@linalg("matrix_rank", out="any")
@full_precision
def matrix_rank(
    input: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Any:
    """linalg.matrix_rank(input, *, atol=None, rtol=None, hermitian=False)."""
    check_matrix("linalg.matrix_rank", input, "input")
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = tolerances(input, atol, rtol)
    input = input.detach()
    if 0 in tuple(input.shape[-2:]):
        return zeros(TensorType(int64, tuple(input.shape[:-2])))
    sizes = eigvalsh(input).abs() if hermitian else svdvals(input)
    largest = sizes.amax(-1)
    bound = largest * rtol
    floor: Any = bound.new_full((), atol) if is_number(atol) else atol
    bound = floor.to(bound.dtype).maximum(bound)
    return (sizes > bound.unsqueeze(-1)).sum(-1)


# --- least squares -------------------------------------------------------------------------------


def is_batch_of_vectors(a_shape: tuple[int, ...], b_shape: tuple[int, ...]) -> bool:
    """Unlike `solve`, one vector is not shared by a batch of matrices."""
    return len(b_shape) == len(a_shape) - 1 and b_shape[:-1] == a_shape[:-2]


def _as_matrix(a_shape: Any, b: Any) -> tuple[Any, bool]:
    vector = is_batch_of_vectors(a_shape, tuple(b.shape))
    return (b[..., None] if vector else b), vector


def _least_squares(
    a: np.ndarray, b: np.ndarray, *, rcond: float, driver: str
) -> tuple[np.ndarray, np.ndarray]:
    b, vector = _as_matrix(a.shape, b)
    m, n = a.shape[-2:]
    cut = 0.0 if driver == "gels" else rcond
    solution = _pinv(a, 0.0, cut) @ b
    residuals = np.zeros(0, a.real.dtype)
    full = driver == "gels" or (_rank(a, rcond) == n).all()
    if m > n and full and driver != "gelsy":
        difference = a @ solution - b
        residuals = add_up((difference * difference.conj()).real, -2).astype(a.real.dtype)
    return (solution[..., 0] if vector else solution), residuals


def _rank(a: np.ndarray, rcond: float) -> Any:
    if not a.size:
        return np.zeros(a.shape[:-2], np.int64)
    sizes = singular(a, compute_uv=False)
    return _cut(sizes, 0.0, rcond).sum(-1)


def _least_squares_rule(
    grad_solution: Any, grad_residuals: Any, self: Any, b: Any, solution: Any, needs: Any
) -> Any:
    b, vector = _as_matrix(tuple(self.shape), b)
    grad_A = grad_b = None
    if vector:
        solution = solution.unsqueeze(-1)
        grad_solution = None if grad_solution is None else grad_solution.unsqueeze(-1)
    if grad_solution is not None:
        inverse = pinv_op(self, *tolerances(self, None, None))
        grad_b = matmul(transposed(inverse), grad_solution)
        if needs[0]:
            grad_A = pinv_rule(matmul(grad_solution, transposed(b)), inverse, self)
    if grad_residuals is not None and 0 not in tuple(grad_residuals.shape):
        # the residual is orthogonal to A, so the solution's own motion does not count
        slope = 2 * grad_residuals.unsqueeze(-2) * (matmul(self, solution) - b)
        grad_A = add(grad_A, matmul(slope, transposed(solution)))
        grad_b = add(grad_b, -slope)
    if vector and grad_b is not None:
        grad_b = grad_b.squeeze(-1)
    return grad_A, grad_b


def _least_squares_infer(self: TensorType, b: TensorType, *, rcond: float, driver: str) -> Any:
    m, n = self.shape[-2:]
    lead = lead_of(self)
    if is_batch_of_vectors(self.shape, b.shape):
        return TensorType(self.dtype, (*lead, n)), TensorType(self.dtype.to_real(), (0,))
    shape = (*lead, n, b.shape[-1])
    rest = (*lead, b.shape[-1]) if m > n and driver != "gelsy" else (0,)
    return TensorType(self.dtype, shape), TensorType(self.dtype.to_real(), rest)


lstsq_op = define(
    "linalg_lstsq", "self b -> solution residuals", raises=True, numpy=_least_squares,
    infer=_least_squares_infer, vjp={("self", "b"): _least_squares_rule},
    samples=drawn(((4, 3), (4, 2), {"rcond": 1e-12, "driver": "gelsd"}),
                  ((2, 4, 3), (2, 4), {"rcond": 1e-12, "driver": "gelsy"})),
)  # fmt: skip


def _spectrum(a: np.ndarray, *, rcond: float, driver: str) -> tuple[np.ndarray, np.ndarray]:
    none = np.zeros(0, a.real.dtype)
    if driver == "gels":
        return np.zeros(0, np.int64), none
    values = singular(a, compute_uv=False) if driver != "gelsy" and a.size else none
    return np.asarray(_rank(a, rcond), np.int64), values


def _spectrum_infer(self: TensorType, *, rcond: float, driver: str) -> Any:
    lead = lead_of(self)
    values = (*lead, min(self.shape[-2:])) if driver in ("gelsd", "gelss") else (0,)
    return (TensorType(int64, (0,) if driver == "gels" else lead),
            TensorType(self.dtype.to_real(), values))  # fmt: skip


# rank and singular values, which torch does not differentiate here
spectrum_op = define(
    "linalg_lstsq_spectrum", "self -> rank singular_values", raises=True, numpy=_spectrum,
    infer=_spectrum_infer,
    samples=drawn(((4, 3), {"rcond": 1e-12, "driver": "gelsd"})),
)  # fmt: skip


@linalg("lstsq", out="safe torch.linalg.lstsq solution residuals rank singular_values")
@full_precision
def lstsq(input: Any, b: Any, rcond: Any = None, *, driver: Any = None) -> Any:
    """linalg.lstsq(input, b, rcond=None, *, driver=None)
    -> (solution, residuals, rank, singular_values)."""
    _check_least_squares(input, b)
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of "
                           "(gels, gelsy, gelsd, gelss)")  # fmt: skip
    if rcond is None:
        rcond = float(np.finfo(input.dtype.to_real().compute).eps) * max(input.shape[-2:])
    result = lstsq_op(input, b, rcond=float(rcond), driver=driver)
    spectrum = spectrum_op(input.detach(), rcond=float(rcond), driver=driver)
    fields = "solution residuals rank singular_values"
    return named_result(f"linalg_lstsq {fields}", (*result, *spectrum))


def _check_least_squares(a: Any, b: Any) -> None:
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    check_float(name, a)
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{type_word(a.dtype)} and other's dtype {type_word(b.dtype)}"
        )
    if not 0 <= a.ndim - b.ndim <= 1:
        raise RuntimeError(f"{name}: input.dim() must be greater or equal to other.dim() and "
                           "(input.dim() - other.dim()) <= 1")  # fmt: skip
    vector = is_batch_of_vectors(tuple(a.shape), tuple(b.shape))
    if not vector and a.ndim != b.ndim:
        broadcast_shapes(tuple(a.shape[:-1]), tuple(b.shape))
    rows = b.shape[-1] if vector else b.shape[-2]
    if a.shape[-2] != rows:
        where = "-1" if vector else "-2"
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({where})")


# --- the exponential -----------------------------------------------------------------------------


def _exp_rule(grad: Any, self: Any) -> Any:
    """exp([[A^H, G], [0, A^H]]) has the derivative in its corner (Mathias 1996)."""
    turned = transposed(self)
    n, rows, columns = self.shape[-1], self.ndim - 2, self.ndim - 1
    top = cat(turned, grad, dim=columns)
    bottom = cat(zeros(turned.type_), turned, dim=columns)
    return matrix_exp_op(cat(top, bottom, dim=rows)).narrow(rows, 0, n).narrow(columns, n, n)


matrix_exp_op: Op = define(
    "linalg_matrix_exp", "self -> result", raises=True, numpy=symmetric.matrix_exp,
    infer=lambda self: self,
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
    vjp=dict(self=_exp_rule),
)  # fmt: skip


@linalg("matrix_exp", out="none")
def linalg_matrix_exp(input: Any) -> Any:
    """linalg.matrix_exp(input): the exponential of square matrices."""
    check_square("linalg.matrix_exp", input)
    check_float("matrix_exp", input, low=True)
    return matrix_exp_op(input)


@public("matrix_exp", out="none")
def matrix_exp(input: Any) -> Any:
    """matrix_exp(input): see linalg.matrix_exp."""
    return linalg_matrix_exp(input)
