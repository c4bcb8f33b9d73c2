"""Elementwise mathematics: exponentials, logarithms, trigonometry, and their relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arithmetic import conj
from .kinds import pointwise, refuse, refusing

LN2, LN10 = math.log(2), math.log(10)

exp = pointwise("exp", "self -> result", promote="float", numpy=np.exp,
                scalar=lambda s, x: s.exp(x), domain=(-3, 3),
                vjp=dict(self=lambda grad, result: grad * conj(result)))  # fmt: skip
exp2 = pointwise("exp2", "self -> result", promote="float",
                 numpy=lambda x: np.exp(x * LN2) if x.dtype.kind == "c" else np.exp2(x),
                 spaces="torch special",
                 scalar=lambda s, x: s.exp2(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, result: grad * conj(result) * LN2))  # fmt: skip
expm1 = pointwise("expm1", "self -> result", promote="float", numpy=np.expm1,
                  spaces="torch special",
                  scalar=lambda s, x: s.expm1(x), domain=(-3, 3),
                  vjp=dict(self=lambda grad, result: grad * (conj(result) + 1)))  # fmt: skip
log = pointwise("log", "self -> result", promote="float", numpy=np.log,
                scalar=lambda s, x: s.log(x), domain=(0.2, 4),
                vjp=dict(self=lambda grad, self: grad / conj(self)))  # fmt: skip
log2 = pointwise("log2", "self -> result", promote="float", numpy=np.log2,
                 scalar=lambda s, x: s.log2(x), domain=(0.2, 4),
                 vjp=dict(self=lambda grad, self: grad / (conj(self) * LN2)))  # fmt: skip
log10 = pointwise("log10", "self -> result", promote="float", numpy=np.log10,
                  scalar=lambda s, x: s.log10(x), domain=(0.2, 4),
                  vjp=dict(self=lambda grad, self: grad / (conj(self) * LN10)))  # fmt: skip
log1p = pointwise("log1p", "self -> result", promote="float", numpy=np.log1p,
                  spaces="torch special",
                  scalar=lambda s, x: s.log1p(x), domain=(-0.7, 4),
                  vjp=dict(self=lambda grad, self: grad / (conj(self) + 1)))  # fmt: skip
sqrt = pointwise("sqrt", "self -> result", promote="float", numpy=np.sqrt,
                 scalar=lambda s, x: s.sqrt(x), domain=(0.2, 4),
                 vjp=dict(self=lambda grad, result: grad / (2 * conj(result))))  # fmt: skip
rsqrt = pointwise("rsqrt", "self -> result", promote="float", numpy=lambda x: 1 / np.sqrt(x),
                  scalar=lambda s, x: s.rsqrt(x), domain=(0.2, 4),
                  vjp=dict(self=lambda grad, result: -0.5 * grad * conj(result) ** 3))  # fmt: skip
reciprocal = pointwise("reciprocal", "self -> result", promote="float",
                       numpy=lambda x: np.divide(1, x, dtype=x.dtype),
                       scalar=lambda s, x: s.reciprocal(x), domain=(0.3, 3),
                       vjp=dict(self=lambda grad, result: (
                           -grad * conj(result * result))))  # fmt: skip
sin = pointwise("sin", "self -> result", promote="float", numpy=np.sin,
                scalar=lambda s, x: s.sin(x), domain=(-4, 4),
                vjp=dict(self=lambda grad, self: grad * conj(self.cos())))  # fmt: skip
cos = pointwise("cos", "self -> result", promote="float", numpy=np.cos,
                scalar=lambda s, x: s.cos(x), domain=(-4, 4),
                vjp=dict(self=lambda grad, self: grad * -conj(self.sin())))  # fmt: skip
tan = pointwise("tan", "self -> result", promote="float", numpy=np.tan,
                scalar=lambda s, x: s.tan(x), domain=(-1, 1),
                vjp=dict(self=lambda grad, result: grad * conj(1 + result * result)))  # fmt: skip
asin = pointwise("asin", "self -> result", promote="float", numpy=np.arcsin, names=("arcsin",),
                 scalar=lambda s, x: s.asin(x), domain=(-0.8, 0.8),
                 vjp=dict(self=lambda grad, self: (
                     grad * conj((1 - self * self).rsqrt()))))  # fmt: skip
acos = pointwise("acos", "self -> result", promote="float", numpy=np.arccos, names=("arccos",),
                 scalar=lambda s, x: s.acos(x), domain=(-0.8, 0.8),
                 vjp=dict(self=lambda grad, self: (
                     grad * -conj((1 - self * self).rsqrt()))))  # fmt: skip
atan = pointwise("atan", "self -> result", promote="float", numpy=np.arctan, names=("arctan",),
                 scalar=lambda s, x: s.atan(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, self: grad / conj(self * self + 1)))  # fmt: skip
sinh = pointwise("sinh", "self -> result", promote="float", numpy=np.sinh,
                 scalar=lambda s, x: s.sinh(x), domain=(-2, 2),
                 vjp=dict(self=lambda grad, self: grad * conj(self.cosh())))  # fmt: skip
cosh = pointwise("cosh", "self -> result", promote="float", numpy=np.cosh,
                 scalar=lambda s, x: s.cosh(x), domain=(-2, 2),
                 vjp=dict(self=lambda grad, self: grad * conj(self.sinh())))  # fmt: skip
tanh = pointwise("tanh", "self -> result", second=True, promote="float", numpy=np.tanh,
                 scalar=lambda s, x: s.tanh(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, result: grad * conj(1 - result * result)))  # fmt: skip
asinh = pointwise("asinh", "self -> result", promote="float", numpy=np.arcsinh,
                  names=("arcsinh",), scalar=lambda s, x: s.asinh(x), domain=(-3, 3),
                  vjp=dict(self=lambda grad, self: (
                      grad * conj((self * self + 1).rsqrt()))))  # fmt: skip


def _acosh_slope(x: Any) -> Any:
    if x.dtype.is_complex:  # the branch cut lies right in two factors only
        return conj((x - 1).rsqrt() * (x + 1).rsqrt())
    return (x * x - 1).rsqrt()


acosh = pointwise("acosh", "self -> result", promote="float", numpy=np.arccosh,
                  names=("arccosh",), scalar=lambda s, x: s.acosh(x), domain=(1.2, 4),
                  vjp=dict(self=lambda grad, self: grad * _acosh_slope(self)))  # fmt: skip
atanh = pointwise("atanh", "self -> result", promote="float", numpy=np.arctanh,
                  names=("arctanh",), scalar=lambda s, x: s.atanh(x), domain=(-0.8, 0.8),
                  vjp=dict(self=lambda grad, self: grad / conj(1 - self * self)))  # fmt: skip


def _sigmoid(x: np.ndarray) -> Any:
    y = np.asarray(-x)  # NumPy gives a number for an array without dims
    np.exp(y, y)
    y += 1
    return np.divide(1, y, y)


sigmoid = pointwise("sigmoid", "self -> result", second=True, promote="float", numpy=_sigmoid,
                    spaces="torch nn.functional",
                    scalar=lambda s, x: s.sigmoid(x), domain=(-4, 4),
                    vjp=dict(self=lambda grad, result: (
                        grad * conj((1 - result) * result))))  # fmt: skip


def _over_square(self: Any, other: Any) -> Any:
    """1 / (self^2 + other^2); 0 at the origin, where atan2 has no slope."""
    square = self * self + other * other
    return square.reciprocal().masked_fill(square.eq(0), 0)


atan2 = pointwise("atan2", "self other -> result", promote="float", numpy=np.arctan2,
                  names=("arctan2",), numbers="", scalar=lambda s, a, b: s.atan2(a, b),
                  domain=(0.5, 3),
                  vjp=dict(self=lambda grad, self, other: (
                               grad * other * _over_square(self, other)),
                           other=lambda grad, self, other: (
                               grad * -self * _over_square(self, other))))  # fmt: skip
hypot = pointwise("hypot", "self other -> result", numpy=refusing("hypot", "iubc", np.hypot),
                  numbers="", scalar=lambda s, a, b: s.hypot(a, b), domain=(0.5, 3),
                  vjp=dict(self=lambda grad, self, result: grad * (self / result),
                           other=lambda grad, other, result: grad * (other / result)))  # fmt: skip


def _scaled(name: str, factor: float) -> Any:
    """Multiplication by a constant, e.g. degrees to radians."""

    def evaluate(x: np.ndarray) -> Any:
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        return x * x.dtype.type(factor)

    return pointwise(name, "self -> result", promote="float", numpy=evaluate, domain=(-4, 4),
                     scalar=lambda s, x: s.mul(x, s.const(factor)),
                     vjp=dict(self=lambda grad: grad * factor))  # fmt: skip


deg2rad = _scaled("deg2rad", math.pi / 180)
rad2deg = _scaled("rad2deg", 180 / math.pi)

# --- sums of exponentials ------------------------------------------------------------------------


def _logaddexp(a: np.ndarray, b: np.ndarray) -> Any:
    refuse("logaddexp", "iub", a, b)
    if a.dtype.kind != "c":
        return np.logaddexp(a, b)
    high, low = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    return np.where(high == low, high + LN2, high + np.log1p(np.exp(low - high))).astype(a.dtype)


def _logaddexp_emit(s: Any, a: Any, b: Any) -> Any:
    high = s.maximum(a, b)
    sum_ = s.add(high, s.log1p(s.exp(s.neg(s.abs(s.sub(a, b))))))
    # equal infinities: their difference is NaN
    return s.select(s.logical_and(s.eq(a, b), s.isinf(a)), a, sum_)


def _logaddexp2_emit(s: Any, a: Any, b: Any) -> Any:
    high = s.maximum(a, b)
    rest = s.log1p(s.exp2(s.neg(s.abs(s.sub(a, b)))))
    sum_ = s.add(high, s.mul(rest, s.const(1 / LN2)))
    return s.select(s.logical_and(s.eq(a, b), s.isinf(a)), a, sum_)


logaddexp = pointwise(
    "logaddexp", "self other -> result", numpy=_logaddexp, inplace=False, numbers="",
    scalar=_logaddexp_emit, domain=(-3, 3),
    vjp=dict(self=lambda grad, self, other: grad / conj((other - self).exp() + 1),
             other=lambda grad, self, other: grad / conj((self - other).exp() + 1)),
)  # fmt: skip
logaddexp2 = pointwise(
    "logaddexp2", "self other -> result", inplace=False, numbers="", domain=(-3, 3),
    numpy=refusing("logaddexp2", "iubc", np.logaddexp2), scalar=_logaddexp2_emit,
    vjp=dict(self=lambda grad, self, other: grad / ((other - self).exp2() + 1),
             other=lambda grad, self, other: grad / ((self - other).exp2() + 1)),
)  # fmt: skip


def zero_of(grad: Any) -> Any:
    """A zero to put where no gradient flows."""
    return grad.new_zeros(())
