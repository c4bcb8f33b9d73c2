"""Gamma functions: lgamma, digamma, polygamma, mvlgamma, the incomplete ones, and zeta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import whole_number
from ..numerics import gamma, incomplete
from ..op import define
from ..types import TensorType
from ..value import Value, public
from .arithmetic import lift
from .kinds import binary, no_derivative, pointwise, refuse, refusing, require_value, to_float
from .special import alias, in_double, special

lgamma = pointwise("lgamma", "self -> result", promote="float", domain=(0.3, 4),
                   numpy=in_double("lgamma", gamma.lgamma), scalar=lambda s, x: s.lgamma(x),
                   vjp=dict(self=lambda grad, self: grad * self.digamma()))  # fmt: skip
digamma = pointwise("digamma", "self -> result", promote="float", domain=(0.3, 4),
                    spaces="torch special", scalar=lambda s, x: s.digamma(x),
                    numpy=in_double("digamma", gamma.digamma),
                    vjp=dict(self=lambda grad, self: grad * self.polygamma(1)))  # fmt: skip
alias("gammaln", lgamma)
alias("psi", digamma)

# --- polygamma, mvlgamma: one operand and a whole number -----------------------------------------


def _polygamma(x: np.ndarray, *, n: int) -> Any:
    return in_double("polygamma", lambda x: gamma.polygamma(n, x))(x)


def _float_of(self: TensorType, **_: Any) -> TensorType:
    return TensorType(to_float([self]), self.shape)


polygamma_op = define(
    "polygamma", "self -> result", numpy=_polygamma, infer=_float_of, promote=to_float,
    kind="pointwise", vjp=dict(self=lambda grad, self, n: grad * self.polygamma(n + 1)),
    samples=lambda rng: [((rng.uniform(0.4, 3, (2, 3)),), {"n": n}) for n in (0, 1, 2)],
)  # fmt: skip


@public("polygamma", spaces="torch special", inplace=True, out="cast")
def polygamma(input: Any, n: Any) -> Any:
    """polygamma(n, input), as a method input.polygamma(n): the n-th derivative of digamma."""
    if not isinstance(input, Value):
        input, n = n, input
    require_value("polygamma", input, "input", 1)
    n = whole_number("polygamma", "n", n, 1)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return polygamma_op(input, n=n)


def _mvlgamma(x: np.ndarray, *, p: int) -> Any:
    refuse("mvlgamma", "c", x)
    shifts = np.arange(p) / 2
    parts = gamma.lgamma((np.asarray(x, np.float64)[..., None] - shifts).reshape(-1))
    total = parts.reshape(*x.shape, p).sum(-1) + p * (p - 1) / 4 * math.log(math.pi)
    return total.astype(x.dtype)


def _mvlgamma_vjp(grad: Any, self: Any, p: int) -> Any:
    slope = self.digamma()
    for k in range(1, p):
        slope = slope + (self - k / 2).digamma()
    return grad * slope


mvlgamma_op = define(
    "mvlgamma", "self -> result", numpy=_mvlgamma, infer=_float_of, promote=to_float,
    kind="pointwise", vjp=dict(self=_mvlgamma_vjp),
    samples=lambda rng: [((rng.uniform(2, 4, (2, 3)),), {"p": p}) for p in (1, 3)],
)  # fmt: skip


@public("mvlgamma", inplace=True, out="cast")
def mvlgamma(input: Any, p: int) -> Any:
    """mvlgamma(input, p): the logarithm of the multivariate gamma function of dimension p."""
    require_value("mvlgamma", input)
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return mvlgamma_op(input, p=int(p))


alias("multigammaln", mvlgamma)

# --- two operands --------------------------------------------------------------------------------


def _incomplete(name: str, function: Any, sign: int, other_name: str) -> Any:
    def rule(grad: Any, self: Any, other: Any) -> Any:
        density = ((self - 1) * other.log() - other - self.lgamma()).exp()
        return grad * density if sign > 0 else -grad * density

    op = pointwise(
        name, "self other -> result", numbers="", domain=(0.5, 3),
        numpy=refusing(name, "iub", in_double(name, function)),
        vjp=dict(self=no_derivative(f"the derivative for '{name}: input' is not implemented."),
                 other=rule),
    )  # fmt: skip

    alias(other_name, binary(op, ""))
    return op


igamma = _incomplete("igamma", incomplete.igamma, 1, "gammainc")
igammac = _incomplete("igammac", incomplete.igammac, -1, "gammaincc")


def _zeta_other(grad: Any, self: Any, other: Any) -> Any:
    return grad * -self * zeta(lift(self, grad) + 1, other)


zeta = special(
    "zeta", gamma.zeta, "self other -> result", domain=(2, 4),
    number_nodes=("SpecialZetaBackward1", "SpecialZetaBackward2"),
    vjp=dict(self=no_derivative("the derivative for 'zeta' is not implemented."),
             other=_zeta_other),
)  # fmt: skip
