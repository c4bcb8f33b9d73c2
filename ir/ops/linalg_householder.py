"""Products of Householder reflectors: geqrf, householder_product, ormqr."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bind import state
from ..op import Op, define
from ..types import TensorType
from ..value import public
from . import linalg_kernels as kernels
from .arithmetic import conj
from .joining import cat
from .kinds import no_derivative
from .linalg_common import (
    check_float,
    check_matrix,
    identity,
    lead_of,
    linalg,
    of_shape,
    set_diagonal,
)
from .precision import full_precision
from .products import drawn, matmul, transposed
from .results import named_result
from .views import zeros


def _geqrf(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if not a.size:
        return np.array(a), np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    factors, tau = np.linalg.qr(a, mode="raw")
    return np.ascontiguousarray(np.swapaxes(factors, -2, -1)), tau


geqrf_op = define(
    "geqrf", "self -> a tau", numpy=_geqrf,
    infer=lambda self: (self, TensorType(self.dtype, (*lead_of(self), min(self.shape[-2:])))),
    samples=drawn(((4, 3), {})),
    vjp=dict(self=no_derivative("the derivative for 'geqrf' is not implemented.")),
)  # fmt: skip


@public("geqrf")
@full_precision
def geqrf(input: Any) -> Any:
    """geqrf(input) -> (a, tau): the reflectors of a QR factorisation."""
    check_matrix("torch.geqrf", input, "input")
    check_float("torch.geqrf", input)
    if input.dtype.is_complex and input.requires_grad and state.grad_enabled:
        raise RuntimeError("geqrf does not support automatic differentiation for outputs with "
                           "complex dtype.")  # fmt: skip
    return named_result("geqrf a tau", geqrf_op(input))


def reflector_columns(a: Any, count: int) -> Any:
    """The vectors of the reflectors, in ops: below the diagonal, with implied ones."""
    lower = a.narrow(-1, 0, count).tril(-1)
    return set_diagonal(lower, lower.new_ones((*lower.shape[:-2], min(lower.shape[-2:]))))


def product_rule(grad: Any, a: Any, tau: Any) -> tuple[Any, Any]:
    """Gradients of Q = H_1 ... H_k E, given that of Q; E is the identity's first columns.

    With P_i the reflectors before the i-th and S_i what follows, dQ = sum P_i dH_i S_i.
    """
    count = tau.shape[-1]
    vectors = reflector_columns(a, count)
    columns = [vectors.narrow(-1, i, 1) for i in range(count)]
    scales = [tau.narrow(-1, i, 1).unsqueeze(-1) for i in range(count)]
    after = [identity((*a.shape[:-1], grad.shape[-1]), a.dtype)]
    for v, t in zip(columns[::-1], scales[::-1]):
        after.append(after[-1] - t * matmul(v, matmul(transposed(v), after[-1])))
    after = after[-2::-1]  # after[i] is S_i
    grad_columns, grad_scales = [], []
    for v, t, rest in zip(columns, scales, after):
        right = matmul(grad, matmul(transposed(rest), v))
        left = matmul(rest, matmul(transposed(grad), v))
        grad_scales.append(-matmul(transposed(v), right).squeeze(-1))
        grad_columns.append(-(conj(t) * right + t * left))
        grad = grad - conj(t) * matmul(v, matmul(transposed(v), grad))
    return _gathered(grad_columns, a), cat(*grad_scales, dim=tau.ndim - 1)


def _gathered(columns: list[Any], a: Any) -> Any:
    joined = cat(*columns, dim=a.ndim - 1).tril(-1)
    missing = a.shape[-1] - len(columns)
    if not missing:
        return joined
    return cat(joined, zeros(of_shape(a.type_, a.shape[-2], missing)), dim=a.ndim - 1)


def _householder_rule(grad: Any, input: Any, tau: Any) -> Any:
    return product_rule(grad, input, tau) if tau.shape[-1] else (None, None)


householder_op = define(
    "linalg_householder_product", "input tau -> result",
    numpy=lambda a, tau: kernels.householder_product(a, tau),
    infer=lambda input, tau: input, vjp={("input", "tau"): _householder_rule},
    samples=drawn(((4, 3), (3,), {}), ((2, 4, 3), (2, 2), {})),
)  # fmt: skip


@linalg("householder_product", out="safe torch.linalg.householder_product result")
@full_precision
def householder_product(input: Any, tau: Any) -> Any:
    """linalg.householder_product(input, tau): the first columns of the product of reflectors."""
    name = "torch.linalg.householder_product"
    check_matrix(name, input, "input")
    check_float(name, input)
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to "
                           "input.shape[-1]")  # fmt: skip
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to "
                           "tau.shape[-1]")  # fmt: skip
    if input.ndim - tau.ndim != 1 or tuple(tau.shape[:-1]) != tuple(input.shape[:-2]):
        raise RuntimeError(f"{name}: Expected batch dimensions of tau to be equal to "
                           f"input.shape[:-2], but got {list(tau.shape[:-1])}")  # fmt: skip
    if tau.dtype is not input.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype.name} does not match input dtype "
                           f"{input.dtype.name}")  # fmt: skip
    return householder_op(input, tau)


@public("orgqr", out="safe torch.linalg.householder_product result")
def orgqr(input: Any, input2: Any) -> Any:
    """orgqr(input, input2): see linalg.householder_product."""
    return householder_product(input, input2)


def _ormqr_rule(grad: Any, self: Any, input2: Any, input3: Any, left: bool, transpose: bool,
                needs: Any) -> Any:  # fmt: skip
    grad_other = ormqr_op(self, input2, grad, left=left, transpose=not transpose)
    if not (needs[0] or needs[1]):
        return None, None, grad_other
    product = matmul(grad, transposed(input3)) if left else matmul(transposed(input3), grad)
    product = transposed(product) if transpose else product
    return *_householder_rule(product, self, input2), grad_other


ormqr_op: Op = define(
    "ormqr", "self input2 input3 -> result", numpy=kernels.apply_reflectors,
    infer=lambda self, input2, input3, **_: input3,
    samples=drawn(*(((4, 3), (3,), (4, 4), {"left": l, "transpose": t})
                    for l in (True, False) for t in (True, False))),
    vjp={("self", "input2", "input3"): _ormqr_rule},
)  # fmt: skip


@public("ormqr")
@full_precision
def ormqr(input: Any, input2: Any, input3: Any, left: bool = True, transpose: bool = False) -> Any:
    """ormqr(input, input2, input3, left=True, transpose=False): Q times a matrix."""
    for name, value in (("input", input), ("other", input3)):
        if value.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    side = -2 if left else -1
    if input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to "
                           "tau.shape[-1]")  # fmt: skip
    if input3.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if input2.shape[-1] > input.shape[-1]:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be less than or equal to "
                           "input.shape[-1]")  # fmt: skip
    return ormqr_op(input, input2, input3, left=left, transpose=transpose)
