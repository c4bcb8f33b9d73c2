"""Rounding, signs and absolute values; steps and neighbours of floating-point numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Scalar, define
from ..types import TensorType
from ..value import public
from .arithmetic import conj
from .kinds import no_derivative, pointwise, refuse, refusing, require_value
from .mathematics import zero_of


def zero_slope(grad: Any) -> Any:
    """The derivative of a piecewise constant function."""
    return grad.new_zeros(grad.shape)


def _rounded(name: str, function: Any) -> Any:
    def evaluate(x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "c" and name != "round":
            raise NotImplementedError(f"{name} is not supported for complex inputs")
        refuse(name, "bc", x)
        return x.copy() if x.dtype.kind in "iu" else function(x)

    return evaluate


def _flat(name: str, function: Any, scalar: Any, **facts: Any) -> Any:
    """A piecewise constant function."""
    return pointwise(name, "self -> result", numpy=function, scalar=scalar,
                     vjp=dict(self=zero_slope), domain=(0.1, 0.4), **facts)  # fmt: skip


def _if_float(method: str) -> Any:
    """The scalar expression: integers are their own rounding."""
    return lambda s, x: getattr(s, method)(x) if _is_float(x) else x


def _is_float(x: Any) -> bool:
    return str(x.dtype).startswith(("float", "bfloat"))


floor = _flat("floor", _rounded("floor", np.floor), _if_float("floor"))
ceil = _flat("ceil", _rounded("ceil", np.ceil), _if_float("ceil"))
trunc = _flat("trunc", _rounded("trunc", np.trunc), _if_float("trunc"), names=("fix",))
round_op = _flat("round", _rounded("round", np.rint), _if_float("round"), publish=False)


def _round_decimals(x: np.ndarray, *, decimals: int) -> Any:
    refuse("round", "iubc", x)
    scale = x.dtype.type(10.0 ** abs(decimals))
    return np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale


def _round_decimals_emit(s: Any, x: Any, *, decimals: int) -> Any:
    scale = s.const(10.0 ** abs(decimals))
    if decimals >= 0:
        return s.div(s.round(s.mul(x, scale)), scale)
    return s.mul(s.round(s.div(x, scale)), scale)


round_decimals = define(
    "round_decimals", "self -> result", numpy=_round_decimals, node="RoundBackward1",
    infer=lambda self, *, decimals: self, lower=Scalar(_round_decimals_emit), kind="pointwise",
    vjp=dict(self=zero_slope),
    samples=lambda rng: [((rng.uniform(0.11, 0.14, 5),), {"decimals": d}) for d in (1, 0, -1)],
)  # fmt: skip


@public("round", inplace=True)
def round_(input: Any, *, decimals: int = 0) -> Any:
    """round(input, *, decimals=0): to the nearest, halves to even."""
    require_value("round", input)
    return round_op(input) if decimals == 0 else round_decimals(input, decimals=decimals)


@public("round", spaces="special", method=False)
def special_round(input: Any, *, decimals: int = 0) -> Any:
    """round(input, *, decimals=0): to the nearest, halves to even."""
    require_value("round", input)
    return round_decimals(input, decimals=decimals)


frac = pointwise("frac", "self -> result", scalar=lambda s, x: s.sub(x, s.trunc(x)),
                 numpy=refusing("frac", "iubc", lambda x: x - np.trunc(x)),
                 vjp=dict(self=lambda grad: grad), domain=(0.1, 0.9))  # fmt: skip

# --- signs ---------------------------------------------------------------------------------------


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.bool_:
        return x.copy()
    if x.dtype.kind == "c":
        raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex "
                                  "numbers. Please use torch.sgn instead.")  # fmt: skip
    return _sgn(x)


def _sgn(x: np.ndarray) -> np.ndarray:
    """NaN has sign 0 here, as in torch."""
    if x.dtype == np.bool_:
        return x.copy()
    result = np.asarray(np.sign(x))
    if x.dtype.kind == "f":
        result[np.isnan(x)] = 0
    return result


def _sgn_vjp(grad: Any, self: Any, result: Any) -> Any:
    if not self.dtype.is_complex:
        return zero_slope(grad)
    size = self.abs()
    along = (grad * conj(result)).real
    return ((grad - along * result) / size).where(size != 0, zero_of(grad))


sign = _flat("sign", _sign, lambda s, x: s.sign(x))
sgn = pointwise("sgn", "self -> result", numpy=_sgn, scalar=lambda s, x: s.sign(x),
                vjp=dict(self=_sgn_vjp), domain=(0.3, 3))  # fmt: skip


def _abs(x: np.ndarray) -> Any:
    refuse("abs", "b", x)
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
    require_value("abs", input)
    return abs_op(input)


@public("positive")
def positive(input: Any) -> Any:
    """positive(input): the input itself."""
    require_value("positive", input)
    if input.dtype.name == "bool":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def _copysign_vjp(grad: Any, self: Any, result: Any) -> Any:
    return (grad * (result / self)).masked_fill(self.eq(0), 0)


copysign = pointwise(
    "copysign", "self other -> result", promote="float", numbers="other", domain=(0.3, 3),
    numpy=refusing("copysign", "c", np.copysign), scalar=lambda s, a, b: s.copysign(a, b),
    number_nodes=(None, "CopysignBackward1"),
    vjp=dict(self=_copysign_vjp, other=zero_slope),
)  # fmt: skip

# --- steps, neighbours, repairs ------------------------------------------------------------------


def _heaviside(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(x == 0, values, (x > 0).astype(x.dtype))


heaviside_op = pointwise(
    "heaviside", "self values -> result", numpy=_heaviside, publish=False, node="NotImplemented",
    scalar=lambda s, x, v: s.select(
        s.eq(x, s.const(0)), v, s.select(s.gt(x, s.const(0)), s.const(1), s.const(0))),
    vjp=dict.fromkeys(("self", "values"), no_derivative(
        "derivative for aten::heaviside is not implemented")),
)  # fmt: skip


@public("heaviside", inplace=True)
def heaviside(input: Any, values: Any) -> Any:
    """heaviside(input, values): 0 below zero, 1 above, `values` at zero."""
    require_value("heaviside", input)
    require_value("heaviside", values, "values", 1)
    if input.dtype.is_complex or values.dtype.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors. Use real ones.")
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return heaviside_op(input, values)


nextafter = pointwise(
    "nextafter", "self other -> result", numbers="", domain=(0.5, 3),
    numpy=refusing("nextafter", "iubc", np.nextafter),
    scalar=lambda s, a, b: s.nextafter(a, b),
    vjp=dict(self=lambda grad, self, other: grad.masked_fill(self.eq(other), 0),
             other=lambda grad: zero_slope(grad)),
)  # fmt: skip


def _nan_to_num(x: np.ndarray, *, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind in "iub":
        return x.copy()
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38,
            "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}  # fmt: skip


def _nan_to_num_emit(s: Any, x: Any, *, nan: Any = None, posinf: Any = None,
                     neginf: Any = None) -> Any:  # fmt: skip
    if not _is_float(x):
        return x
    largest = _LARGEST[str(x.dtype)]
    high = s.const(largest if posinf is None else posinf)
    low = s.const(-largest if neginf is None else neginf)
    finite = s.select(s.gt(x, s.const(0)), high, low)
    finite = s.select(s.isinf(x), finite, x)
    return s.select(s.isnan(x), s.const(0.0 if nan is None else nan), finite)


nan_to_num_op = define(
    "nan_to_num", "self -> result", numpy=_nan_to_num, infer=lambda self, **_: self,
    lower=Scalar(_nan_to_num_emit), kind="pointwise",
    vjp=dict(self=lambda grad, self: grad * self.isfinite()),
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {}),
                         ((rng.standard_normal(4),), {"nan": 1.5, "posinf": 2.0})],
)  # fmt: skip


@public("nan_to_num", inplace=True)
def nan_to_num(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """nan_to_num(input, nan=0.0, posinf=None, neginf=None): finite numbers in their place."""
    require_value("nan_to_num", input)
    largest = _LARGEST.get(input.dtype.name)
    if largest is not None and input.dtype.itemsize == 2:  # computed in float32, whose end is wider
        posinf = largest if posinf is None else posinf
        neginf = -largest if neginf is None else neginf
    return nan_to_num_op(input, nan=nan, posinf=posinf, neginf=neginf)
