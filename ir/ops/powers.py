"""Powers: pow and its relatives, ldexp and frexp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import value as value_module
from ..op import Scalar, define
from ..types import FLOAT, TensorType, complex128, float64, int32, result_type, type_word
from ..value import Value, public
from .arithmetic import conj, lift
from .kinds import operands, pointwise, refuse, require_value
from .results import named_result

LN2 = math.log(2)


def _pow(a: Any, b: Any) -> Any:
    dtype = np.result_type(a, b)
    if dtype == np.bool_:
        refuse("pow", "b", a, b)
    if dtype.kind in "iu" and np.any(np.less(b, 0)):
        return _negative_integer_power(a, b, dtype)
    return np.power(a, b)


def _negative_integer_power(a: Any, b: Any, dtype: Any) -> Any:
    """torch's integer power with a negative exponent: 1/(a**-b) rounded to zero."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype), np.asarray(b, dtype))
    result = np.power(a, np.maximum(b, 0))
    signs = np.where(b % 2 == 0, 1, a)
    result = np.where((b < 0) & (np.abs(a) != 1), 0, result)
    return np.where((b < 0) & (np.abs(a) == 1), signs, result).astype(dtype)


# == and != of run-time numbers are questions of Python's, so the rules lift them and use eq and ne


def _pow_self(grad: Any, self: Any, exponent: Any) -> Any:
    # exponent 0 gives 0 even where self ** -1 is infinite
    slope = grad * conj(exponent * self ** (exponent - 1))
    return slope.where(lift(exponent, slope).ne(0), slope.new_zeros(()))


def _pow_exponent(grad: Any, self: Any, exponent: Any, result: Any) -> Any:
    base = lift(self, result)
    zero = base.eq(0)
    safe = zero if exponent.dtype.is_complex else zero.logical_and(exponent >= 0)
    return (grad * conj(result * base.log())).masked_fill(safe, 0)


pow_tensor = pointwise(
    "pow_tensor", "self exponent -> result", numpy=_pow, publish=False, node="PowBackward1",
    scalar=lambda s, a, b: s.pow(a, b), domain=(0.3, 3), number_nodes=("PowBackward2", None),
    vjp=dict(self=_pow_self, exponent=_pow_exponent),
)  # fmt: skip


def _pow_scalar(x: np.ndarray, *, exponent: Any) -> Any:
    if isinstance(exponent, int) and exponent < 0 and x.dtype.kind in "iu":
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if exponent == 2:
        return np.multiply(x, x)
    if exponent == 3:
        return x * x * x
    if exponent == 0.5:
        return np.sqrt(x)
    if x.dtype == np.bool_:  # the exponent is a bool then
        return x.copy() if exponent else np.ones_like(x)
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


def _pow_samples(rng: np.random.Generator) -> list[Any]:
    x = rng.uniform(0.3, 3, (2, 3))
    return [((x,), {"exponent": e}) for e in (2, 3, 0.5, -1.5, 0, 4)]


pow_scalar = define(
    "pow_scalar", "self -> result", numpy=_pow_scalar, node="PowBackward0",
    infer=lambda self, *, exponent: self, lower=Scalar(_pow_scalar_emit), kind="pointwise",
    vjp=dict(self=_pow_scalar_vjp), samples=_pow_samples,
)  # fmt: skip


@public("pow", inplace=True, out="cast")
def pow_(input: Any, exponent: Any) -> Any:
    """pow(input, exponent): either may be a number."""
    if isinstance(exponent, Value) or not isinstance(input, Value):
        return pow_tensor(*operands("pow", input, exponent))
    input, exponent = operands("pow", input, exponent)
    dtype = result_type((input, exponent))
    if dtype is not input.dtype:
        input = input.to(dtype)
    return pow_scalar(input, exponent=exponent)


@public("square", inplace=True, out="cast")
def square(input: Any) -> Any:
    """square(input): input ** 2."""
    require_value("square", input)
    return pow_(input, 2)


@public("float_power")
def float_power(input: Any, exponent: Any) -> Any:
    """float_power(input, exponent): pow in double precision; either may be a number."""
    operands("float_power", input, exponent)
    dtype = _float_power_dtype(input, exponent)
    convert = complex if dtype is complex128 else float
    base, power = (v.to(dtype) if isinstance(v, Value) else convert(v) for v in (input, exponent))
    return pow_(base, power)


def _float_power_dtype(*values: Any) -> Any:
    found = any(
        v.dtype.is_complex if isinstance(v, Value) else isinstance(v, complex) for v in values
    )
    return complex128 if found else float64


def _float_power_inplace(self: Any, exponent: Any) -> Any:
    """In-place version of `float_power`."""
    dtype = _float_power_dtype(self, exponent)
    if self.dtype is not dtype:
        raise RuntimeError(f"the base given to float_power_ has dtype {type_word(self.dtype)} but "
                           f"the operation's result requires dtype {type_word(dtype)}")  # fmt: skip
    assert value_module.run_inplace is not None
    return value_module.run_inplace(float_power, self, (exponent,), {})


_float_power_inplace.__name__ = _float_power_inplace.__qualname__ = "float_power_"
Value.float_power_ = _float_power_inplace  # type: ignore[attr-defined]

# --- binary exponents ----------------------------------------------------------------------------


def _ldexp(x: Any, exponent: Any) -> Any:
    return x * (np.exp(exponent * LN2) if exponent.dtype.kind == "c" else np.exp2(exponent))


ldexp = pointwise(
    "ldexp", "self other -> result", promote="float", numpy=_ldexp, numbers="", domain=(-2, 2),
    scalar=lambda s, x, n: s.mul(x, s.exp2(n)),
    vjp=dict(self=lambda grad, other: grad * conj(other.exp2()),
             other=lambda grad, result: grad * conj(result) * LN2),
)  # fmt: skip


frexp_op = define(
    "frexp", "self -> mantissa exponent", numpy=lambda x: np.frexp(x),
    infer=lambda self: (self, TensorType(int32, self.shape)),
    vjp=dict(self=lambda grad_mantissa, exponent: grad_mantissa / exponent.exp2()),
    samples=lambda rng: [((rng.uniform(0.6, 0.9, (2, 3)) * 4,), {}), ((np.float64(0.7),), {})],
)  # fmt: skip


@public("frexp")
def frexp(input: Any) -> Any:
    """frexp(input): (mantissa, exponent) with input = mantissa * 2**exponent."""
    require_value("frexp", input)
    if input.dtype.category != FLOAT:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return named_result("frexp mantissa exponent", frexp_op(input))
