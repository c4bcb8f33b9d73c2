"""Elementwise mathematics: exponentials, logarithms, trigonometry, powers, rounding, extrema."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Scalar, define
from ..types import INTEGER, DType, TensorType, broadcast_shapes, default_dtype, result_type
from ..value import Value, public
from .arithmetic import conj
from .kinds import operands, pointwise

LN2, LN10 = math.log(2), math.log(10)

exp = pointwise("exp", "self -> result", promote="float", numpy=np.exp,
                scalar=lambda s, x: s.exp(x), domain=(-3, 3),
                vjp=dict(self=lambda grad, result: grad * conj(result)))  # fmt: skip
exp2 = pointwise("exp2", "self -> result", promote="float", numpy=np.exp2,
                 scalar=lambda s, x: s.exp2(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, result: grad * conj(result) * LN2))  # fmt: skip
expm1 = pointwise("expm1", "self -> result", promote="float", numpy=np.expm1,
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
                       vjp=dict(self=lambda grad, result: -grad * conj(result * result)))  # fmt: skip
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
                 vjp=dict(self=lambda grad, self: grad * conj((1 - self * self).rsqrt())))  # fmt: skip
acos = pointwise("acos", "self -> result", promote="float", numpy=np.arccos, names=("arccos",),
                 scalar=lambda s, x: s.acos(x), domain=(-0.8, 0.8),
                 vjp=dict(self=lambda grad, self: grad * -conj((1 - self * self).rsqrt())))  # fmt: skip
atan = pointwise("atan", "self -> result", promote="float", numpy=np.arctan, names=("arctan",),
                 scalar=lambda s, x: s.atan(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, self: grad / conj(self * self + 1)))  # fmt: skip
sinh = pointwise("sinh", "self -> result", promote="float", numpy=np.sinh,
                 scalar=lambda s, x: s.sinh(x), domain=(-2, 2),
                 vjp=dict(self=lambda grad, self: grad * conj(self.cosh())))  # fmt: skip
cosh = pointwise("cosh", "self -> result", promote="float", numpy=np.cosh,
                 scalar=lambda s, x: s.cosh(x), domain=(-2, 2),
                 vjp=dict(self=lambda grad, self: grad * conj(self.sinh())))  # fmt: skip
tanh = pointwise("tanh", "self -> result", promote="float", numpy=np.tanh,
                 scalar=lambda s, x: s.tanh(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, result: grad * conj(1 - result * result)))  # fmt: skip
asinh = pointwise("asinh", "self -> result", promote="float", numpy=np.arcsinh,
                  names=("arcsinh",), scalar=lambda s, x: s.asinh(x), domain=(-3, 3),
                  vjp=dict(self=lambda grad, self: grad * conj((self * self + 1).rsqrt())))  # fmt: skip
acosh = pointwise("acosh", "self -> result", promote="float", numpy=np.arccosh,
                  names=("arccosh",), scalar=lambda s, x: s.acosh(x), domain=(1.2, 4),
                  vjp=dict(self=lambda grad, self: (
                      grad * conj((self - 1).rsqrt() * (self + 1).rsqrt()))))  # fmt: skip
atanh = pointwise("atanh", "self -> result", promote="float", numpy=np.arctanh,
                  names=("arctanh",), scalar=lambda s, x: s.atanh(x), domain=(-0.8, 0.8),
                  vjp=dict(self=lambda grad, self: grad / conj(1 - self * self)))  # fmt: skip


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.divide(1, 1 + np.exp(-x), dtype=x.dtype)


sigmoid = pointwise("sigmoid", "self -> result", promote="float", numpy=_sigmoid,
                    spaces="torch nn.functional",
                    scalar=lambda s, x: s.sigmoid(x), domain=(-4, 4),
                    vjp=dict(self=lambda grad, result: grad * conj((1 - result) * result)))  # fmt: skip
atan2 = pointwise("atan2", "self other -> result", promote="float", numpy=np.arctan2,
                  names=("arctan2",), scalar=lambda s, a, b: s.atan2(a, b), domain=(0.5, 3),
                  vjp=dict(self=lambda grad, self, other: (
                               grad * other / (self * self + other * other)),
                           other=lambda grad, self, other: (
                               grad * -self / (self * self + other * other))))  # fmt: skip
hypot = pointwise("hypot", "self other -> result", numpy=np.hypot,
                  scalar=lambda s, a, b: s.hypot(a, b), domain=(0.5, 3),
                  vjp=dict(self=lambda grad, self, result: grad * (self / result),
                           other=lambda grad, other, result: grad * (other / result)))  # fmt: skip

# --- powers --------------------------------------------------------------------------------------


def _pow(a: Any, b: Any) -> Any:
    dtype = np.result_type(a, b)
    if dtype.kind in "iu" and np.any(np.less(b, 0)):
        return _negative_integer_power(a, b, dtype)
    if dtype == np.bool_:
        return np.logical_or(a, np.logical_not(b))
    return np.power(a, b)


def _negative_integer_power(a: Any, b: Any, dtype: Any) -> Any:
    """torch's integer power with a negative exponent: 1/(a**-b) rounded to zero."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype), np.asarray(b, dtype))
    result = np.power(a, np.maximum(b, 0))
    signs = np.where(b % 2 == 0, 1, a)
    result = np.where((b < 0) & (np.abs(a) != 1), 0, result)
    return np.where((b < 0) & (np.abs(a) == 1), signs, result).astype(dtype)


def _pow_self(grad: Any, self: Any, exponent: Any) -> Any:
    # exponent 0 gives 0 even where self ** -1 is infinite
    slope = grad * conj(exponent * self ** (exponent - 1))
    return slope.where(exponent != 0, slope.new_zeros(()))


def _pow_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    base = self if isinstance(self, Value) else exponent.new_full((), self)
    safe = (base == 0) if exponent.dtype.is_complex else (base == 0).logical_and(exponent >= 0)
    return (grad * conj(result * base.log())).masked_fill(safe, 0)


pow_tensor = pointwise(
    "pow_tensor", "self exponent -> result", numpy=_pow, publish=False, node="PowBackward1",
    scalar=lambda s, a, b: s.pow(a, b), domain=(0.3, 3),
    vjp=dict(self=_pow_self, exponent=_pow_exponent),
)  # fmt: skip


def _pow_scalar(x: np.ndarray, *, exponent: Any) -> np.ndarray:
    if isinstance(exponent, int) and exponent < 0 and x.dtype.kind in "iu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent == 2:
        return np.multiply(x, x)
    if exponent == 3:
        return x * x * x
    if exponent == 0.5:
        return np.sqrt(x)
    return np.power(x, x.dtype.type(exponent))


def _pow_scalar_emit(s: Any, x: Any, *, exponent: Any) -> Any:
    if exponent == 2:
        return s.mul(x, x)
    if exponent == 3:
        return s.mul(s.mul(x, x), x)
    if exponent == 0.5:
        return s.sqrt(x)
    return s.pow(x, s.const(exponent))


def _pow_scalar_vjp(grad: Any, self: Any, exponent: Any) -> Any:
    if exponent == 0:
        return grad * 0
    return grad * conj(exponent * self ** (exponent - 1))


pow_scalar = define(
    "pow_scalar", "self -> result", numpy=_pow_scalar, node="PowBackward0",
    infer=lambda self, *, exponent: self, lower=Scalar(_pow_scalar_emit), kind="pointwise",
    vjp=dict(self=_pow_scalar_vjp),
)  # fmt: skip


@public("pow", inplace=True)
def pow_(input: Any, exponent: Any) -> Any:
    """pow(input, exponent): either may be a number."""
    if isinstance(exponent, Value) or not isinstance(input, Value):
        return pow_tensor(*operands("pow", input, exponent))
    input, exponent = operands("pow", input, exponent)
    dtype = result_type((input, exponent))
    if dtype is not input.dtype:
        input = input.to(dtype)
    return pow_scalar(input, exponent=exponent)


@public("square", inplace=True)
def square(input: Any) -> Any:
    """square(input): input ** 2."""
    return pow_(input, 2)


# --- rounding and signs --------------------------------------------------------------------------


def _keep_integers(function: Any) -> Any:
    return lambda x: x.copy() if x.dtype.kind in "iub" else function(x)


def zero_slope(grad: Any) -> Any:
    return grad.new_zeros(grad.shape)


def _flat(name: str, function: Any, scalar: Any, **facts: Any) -> Any:
    """A piecewise constant function: its derivative is zero."""
    return pointwise(name, "self -> result", numpy=function, scalar=scalar,
                     vjp=dict(self=zero_slope), **facts)  # fmt: skip


floor = _flat("floor", _keep_integers(np.floor), lambda s, x: s.floor(x))
ceil = _flat("ceil", _keep_integers(np.ceil), lambda s, x: s.ceil(x))
trunc = _flat("trunc", _keep_integers(np.trunc), lambda s, x: s.trunc(x), names=("fix",))
round_op = _flat("round", _keep_integers(np.rint), lambda s, x: s.round(x), publish=False)


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.bool_:
        return x.copy()
    return np.nan_to_num(np.sign(x), copy=False, nan=0.0) if x.dtype.kind == "f" else np.sign(x)


sign = _flat("sign", _sign, lambda s, x: s.sign(x))


@public("round", inplace=True)
def round_(input: Any, *, decimals: int = 0) -> Any:
    """round(input, *, decimals=0): to the nearest, halves to even."""
    if decimals == 0:
        return round_op(input)
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return round_op(input * scale) / scale
    return round_op(input / scale) * scale


def _abs(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.bool_:
        raise RuntimeError("abs is not implemented for bool tensors")
    return np.abs(x)


abs_op = define(
    "abs", "self -> result", numpy=_abs,
    infer=lambda self: TensorType(self.dtype.to_real(), self.shape),
    lower=Scalar(lambda s, x: s.abs(x)), kind="pointwise",
    vjp=dict(self=lambda grad, self: grad * self.sgn()), domain=(0.3, 3),
)  # fmt: skip


@public("abs", "absolute", inplace=True)
def abs_(input: Any) -> Any:
    """abs(input): absolute value; magnitude of complex numbers."""
    return abs_op(input)


# --- extrema: ties share the gradient, as in torch -----------------------------------------------


def _share(pick: Any) -> Any:
    def rule(grad: Any, self: Any, other: Any) -> Any:
        tie = (self == other) if isinstance(self, Value) else (other == self)
        return (grad / 2).where(tie, grad.where(pick(self, other), grad.new_zeros(())))

    return rule


maximum = pointwise("maximum", "self other -> result", numpy=np.maximum, inplace=False,
                    scalar=lambda s, a, b: s.maximum(a, b),
                    vjp=dict(self=_share(lambda a, b: a > b),
                             other=_share(lambda a, b: a < b)))  # fmt: skip
minimum = pointwise("minimum", "self other -> result", numpy=np.minimum, inplace=False,
                    scalar=lambda s, a, b: s.minimum(a, b),
                    vjp=dict(self=_share(lambda a, b: a < b),
                             other=_share(lambda a, b: a > b)))  # fmt: skip


def _clamp(x: Any, *, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = np.maximum(x, x.dtype.type(min))
    return x if max is None else np.minimum(x, x.dtype.type(max))


def _clamp_emit(s: Any, x: Any, *, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = s.maximum(x, s.const(min))
    return x if max is None else s.minimum(x, s.const(max))


def _clamp_vjp(grad: Any, self: Any, min: Any, max: Any) -> Any:
    inside = (self >= min) if min is not None else None
    if max is not None:
        below = self <= max
        inside = below if inside is None else inside.logical_and(below)
    return grad.where(inside, grad.new_zeros(()))


clamp_op = define(
    "clamp", "self -> result", numpy=_clamp, infer=lambda self, **_: self, kind="pointwise",
    lower=Scalar(_clamp_emit), vjp=dict(self=_clamp_vjp),
)  # fmt: skip
clamp_tensor = pointwise(
    "clamp_tensor", "self min? max? -> result", publish=False, node="ClampBackward1",
    numpy=lambda x, low, high: _clamp_arrays(x, low, high),
    scalar=lambda s, x, low, high: _clamp_tensor_emit(s, x, low, high),
    vjp={
        "self": lambda grad, self, min, max: _clamp_vjp(grad, self, min, max),
        "min": lambda grad, self, min, max: grad.where(_below(self, min, max), zero_of(grad)),
        "max": lambda grad, self, min, max: grad.where(_above(self, min, max), zero_of(grad)),
    },
)  # fmt: skip


def zero_of(grad: Any) -> Any:
    return grad.new_zeros(())


def _below(self: Any, low: Any, high: Any) -> Any:
    under = self < low
    return under if high is None else under.logical_and(low < high)


def _above(self: Any, low: Any, high: Any) -> Any:
    over = self > high
    return over if low is None else over.logical_or(high < low)


def _clamp_arrays(x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _clamp_tensor_emit(s: Any, x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = s.maximum(x, low)
    return x if high is None else s.minimum(x, high)


@public("clamp", "clip", inplace=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """clamp(input, min=None, max=None): bounds may be numbers or tensors."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Value) or isinstance(max, Value):
        return clamp_tensor(input, min, max)
    dtype = result_type([input, *(b for b in (min, max) if b is not None)])
    return clamp_op(input if dtype is input.dtype else input.to(dtype), min=min, max=max)


@public("clamp_min", inplace=True)
def clamp_min(input: Any, min: Any) -> Any:
    """clamp_min(input, min)."""
    return clamp(input, min, None)


@public("clamp_max", inplace=True)
def clamp_max(input: Any, max: Any) -> Any:
    """clamp_max(input, max)."""
    return clamp(input, None, max)


relu = pointwise("relu", "self -> result", numpy=lambda x: np.maximum(x, x.dtype.type(0)),
                 spaces="torch nn.functional.core", scalar=lambda s, x: s.maximum(x, s.const(0)),
                 vjp=dict(self=lambda grad, result: grad.where(result > 0, zero_of(grad))),
                 domain=(0.3, 3))  # fmt: skip


def common_float(dtype: DType) -> DType:
    return dtype if dtype.category > INTEGER else default_dtype()


__all__ = ["broadcast_shapes", "common_float"]
