"""Eigenvalues and eigenvectors: eigh, eig. Their rules use only the gradients that arrived.

Note [Phases of singular vectors and eigenvectors]
    Complex vectors are unique up to a factor of modulus one. A loss that depends on it has no
    gradient; `phase_check_op` refuses it in torch's words. It is an op, since rules see no data.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import must_be
from ..op import Op, define
from ..types import TensorType
from .arithmetic import conj
from .linalg_common import (
    LinAlgError,
    batch_place,
    check_float,
    check_square,
    diagonal_of,
    linalg,
    real_part,
    set_diagonal,
)
from .linalg_solve import solve_op
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result


def skew(matrix: Any) -> Any:
    return matrix - transposed(matrix)


def _check_phase(x: np.ndarray, *, function: str, vectors: str) -> np.ndarray:
    tolerance = 1e-2 if x.dtype == np.complex64 else 1e-5
    if not np.allclose(x.imag, 0, rtol=tolerance, atol=tolerance):
        raise RuntimeError(
            f"{function}: The {vectors} in the complex case are specified up to multiplication by "
            "e^{i phi}. The specified loss function depends on this quantity, so it is "
            "ill-defined. Use a loss that is the same for every phase, such as abs()."
        )
    return x


# see Note [Phases of singular vectors and eigenvectors]
phase_check_op: Op = define(
    "phase_check", "self -> result", raises=True, numpy=_check_phase, infer=lambda self, **_: self,
    samples=drawn(((3,), {"function": "f", "vectors": "v"})),
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip


def _eigh(a: Any, *, UPLO: Any = "L") -> tuple[np.ndarray, np.ndarray]:
    values, vectors = converging(np.linalg.eigh, a, UPLO)
    return values, vectors


def _eigvalsh(a: Any, *, UPLO: Any = "L") -> np.ndarray:
    return np.asarray(converging(np.linalg.eigvalsh, a, UPLO))


def converging(function: Any, a: np.ndarray, UPLO: str) -> Any:
    try:
        return function(a, UPLO)
    except np.linalg.LinAlgError:
        raise _not_converged(a) from None


def _not_converged(a: np.ndarray) -> LinAlgError:
    """torch's error; NumPy does not tell which matrix failed, so the first that is not finite."""
    failed = ~np.isfinite(a).all((-2, -1))
    place, code = batch_place(failed if failed.any() else np.ones_like(failed))
    return LinAlgError(f"linalg.eigh: {place}The algorithm failed to converge because the input "
                       "matrix is ill-conditioned or has too many repeated eigenvalues (error "
                       f"code: {code}).")  # fmt: skip


def eigen_gaps(values: Any) -> Any:
    """conj(L_j - L_i), with ones on the diagonal."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    return set_diagonal(conj(gaps), gaps.new_ones(values.shape))


def _checked_projection(V: Any, grad_V: Any, function: str) -> Any:
    inner = matmul(transposed(V), grad_V)
    if not inner.dtype.is_complex:
        return inner
    diagonal = phase_check_op(diagonal_of(inner), function=function, vectors="eigenvectors")
    return set_diagonal(inner, diagonal)


def _eigh_rule(grad_eigenvalues: Any, grad_eigenvectors: Any, eigenvalues: Any,
               eigenvectors: Any) -> Any:  # fmt: skip
    """V [skew(V^H V') / 2 / gaps + diag(L')] V^H."""
    V = eigenvectors
    if grad_eigenvectors is None:
        return matmul(V * grad_eigenvalues.unsqueeze(-2), transposed(V))
    inner = _checked_projection(V, grad_eigenvectors, "linalg_eigh_backward")
    inner = skew(inner) / 2 / eigen_gaps(eigenvalues)
    diagonal = grad_eigenvalues
    diagonal = diagonal_of(inner) * 0 if diagonal is None else diagonal.to(inner.dtype)
    return matmul(V, matmul(set_diagonal(inner, diagonal), transposed(V)))


def _eigen_infer(A: TensorType, **_: Any) -> Any:
    return TensorType(A.dtype.to_real(), A.shape[:-1]), A


def _symmetric(rng: np.random.Generator) -> list[Any]:
    a = rng.standard_normal((2, 3, 3))
    a = a + np.swapaxes(a, -2, -1)
    return [((a,), {}), ((a[0],), {"UPLO": "U"})]


eigh_op = define(
    "linalg_eigh", "A -> eigenvalues eigenvectors", raises=True, numpy=_eigh, infer=_eigen_infer,
    samples=_symmetric,
    vjp=dict(A=_eigh_rule),
)  # fmt: skip


def _eigvalsh_rule(grad: Any, A: Any, UPLO: str) -> Any:
    V = eigh_op(A, UPLO=UPLO)[1]
    return matmul(V * grad.unsqueeze(-2), transposed(V))


eigvalsh_op = define(
    "linalg_eigvalsh", "A -> eigenvalues", raises=True, node="LinalgEighBackward0",
    numpy=_eigvalsh,
    infer=lambda A, **_: _eigen_infer(A)[0], vjp=dict(A=_eigvalsh_rule),
    samples=_symmetric,
)  # fmt: skip


def _check_eigh(name: str, input: Any, UPLO: str) -> str:
    check_square("linalg.eigh", input)
    check_float("linalg.eigh", input, kernel="linalg_eigh_cpu", late=True)
    if not isinstance(UPLO, str):
        raise must_be(name, "UPLO", "str", UPLO, 2)
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@linalg("eigh")
@full_precision
def eigh(input: Any, UPLO: str = "L") -> Any:
    """linalg.eigh(input, UPLO='L') -> (eigenvalues, eigenvectors) of Hermitian matrices."""
    result = eigh_op(input, UPLO=_check_eigh("linalg_eigh", input, UPLO))
    return named_result("linalg_eigh eigenvalues eigenvectors", result)


@linalg("eigvalsh")
@full_precision
def eigvalsh(input: Any, UPLO: str = "L") -> Any:
    """linalg.eigvalsh(input, UPLO='L'): eigenvalues of Hermitian matrices, smallest first."""
    side = _check_eigh("linalg_eigvalsh", input, UPLO)
    return eigh_op(input, UPLO=side)[0] if input.requires_grad else eigvalsh_op(input, UPLO=side)


def _complex_of(a: np.ndarray) -> Any:
    return np.result_type(a.dtype, np.complex64)


def _check_finite(name: str, a: np.ndarray) -> None:
    if not np.isfinite(a).all():
        raise RuntimeError(f"torch.linalg.{name}: input tensor should not contain infs or NaNs.")


def _eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    _check_finite("eig", a)
    values, vectors = np.linalg.eig(a)
    return values.astype(_complex_of(a)), vectors.astype(_complex_of(a))


def _eig_rule(grad_eigenvalues: Any, grad_eigenvectors: Any, eigenvalues: Any,
              eigenvectors: Any) -> Any:  # fmt: skip
    """V^-H [(V^H V' - V^H V Re(diag(V^H V'))) / gaps + diag(L')] V^H."""
    V = eigenvectors
    turned = transposed(V)
    if grad_eigenvectors is None:
        return solve_op(turned, grad_eigenvalues.unsqueeze(-1) * turned)[0]
    inner = _checked_projection(V, grad_eigenvectors, "linalg_eig_backward")
    lengths = real_part(diagonal_of(inner)).unsqueeze(-2)
    inner = (inner - matmul(turned, V) * lengths) / eigen_gaps(eigenvalues)
    diagonal = diagonal_of(inner) * 0 if grad_eigenvalues is None else grad_eigenvalues
    return solve_op(turned, matmul(set_diagonal(inner, diagonal), turned))[0]


def _eig_infer(self: TensorType) -> Any:
    dtype = self.dtype.to_complex()
    return TensorType(dtype, self.shape[:-1]), TensorType(dtype, self.shape)


eig_op = define(
    "linalg_eig", "self -> eigenvalues eigenvectors", raises=True, numpy=_eig, infer=_eig_infer,
    samples=lambda rng: [],  # random losses depend on phases; its tests draw others
    vjp=dict(self=_eig_rule),
)  # fmt: skip


def _eigvals(a: np.ndarray) -> np.ndarray:
    _check_finite("eigvals", a)
    return np.linalg.eigvals(a).astype(_complex_of(a))


def _eigvals_rule(grad: Any, self: Any) -> Any:
    return _eig_rule(grad, None, *eig_op(self))


eigvals_op = define(
    "linalg_eigvals", "self -> eigenvalues", raises=True, node="LinalgEigBackward0", numpy=_eigvals,
    infer=lambda self: _eig_infer(self)[0], vjp=dict(self=_eigvals_rule),
    samples=drawn(((3, 3), {}), ((2, 3, 3), {})),
)  # fmt: skip


@linalg("eig", out="safe torch.linalg.eig eigenvalues eigenvectors")
@full_precision
def eig(input: Any) -> Any:
    """linalg.eig(input) -> (eigenvalues, eigenvectors), complex."""
    check_square("linalg.eig", input)
    check_float("linalg.eig", input, kernel="linalg_eig_out_cpu")
    return named_result("linalg_eig eigenvalues eigenvectors", eig_op(input))


@linalg("eigvals", out="safe torch.linalg.eigvals eigenvalues")
@full_precision
def eigvals(input: Any) -> Any:
    """linalg.eigvals(input): eigenvalues, complex."""
    check_square("linalg.eigvals", input)
    check_float("linalg.eigvals", input, kernel="linalg_eig_out_cpu")
    return eig_op(input)[0] if input.requires_grad else eigvals_op(input)
