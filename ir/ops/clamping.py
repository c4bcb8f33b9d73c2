"""The larger and the smaller of two; clamping between bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import plain_scalar
from ..op import Scalar, define
from ..types import bool_, no_kernel, result_type
from ..value import Value, public
from .kinds import NUMBERS, cast_number, pointwise, require_value
from .mathematics import zero_of

# --- maximum and minimum: ties share the gradient, as in torch -----------------------------------


def _extremum(name: str, function: Any) -> Any:
    def evaluate(a: Any, b: Any) -> Any:
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name} not implemented for complex tensors. Use real ones.")
        return function(a, b)

    return evaluate


def _share(loses: Any) -> Any:
    def rule(grad: Any, self: Any, other: Any) -> Any:
        return (grad / 2).where(self.eq(other), grad).masked_fill(loses(self, other), 0)

    return rule


_LESS, _GREATER = _share(lambda a, b: a < b), _share(lambda a, b: a > b)
maximum = pointwise("maximum", "self other -> result", numpy=_extremum("maximum", np.maximum),
                    inplace=False, numbers="", scalar=lambda s, a, b: s.maximum(a, b),
                    domain=(-3, 3), vjp=dict(self=_LESS, other=_GREATER))  # fmt: skip
minimum = pointwise("minimum", "self other -> result", numpy=_extremum("minimum", np.minimum),
                    inplace=False, numbers="", scalar=lambda s, a, b: s.minimum(a, b),
                    domain=(-3, 3), vjp=dict(self=_GREATER, other=_LESS))  # fmt: skip


def _wins(name: str, self: Any, other: Any) -> Any:
    """Where `self` is taken: NaN loses."""
    better = self >= other if name == "fmax" else self <= other
    return better.logical_or(other.isnan())


def _nan_avoiding(name: str, function: Any) -> Any:
    return pointwise(
        name, "self other -> result", numpy=_extremum(name, function), inplace=False,
        numbers="", scalar=lambda s, a, b: getattr(s, name)(a, b), domain=(-3, 3),
        vjp=dict(
            self=lambda grad, self, other: grad.where(_wins(name, self, other), zero_of(grad)),
            other=lambda grad, self, other: grad.masked_fill(_wins(name, self, other), 0)),
    )  # fmt: skip


fmax = _nan_avoiding("fmax", np.fmax)
fmin = _nan_avoiding("fmin", np.fmin)

# --- clamping ------------------------------------------------------------------------------------


def _clamp(x: Any, *, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = np.maximum(x, cast_number(min, x.dtype))
    return x if max is None else np.minimum(x, cast_number(max, x.dtype))


def _clamp_emit(s: Any, x: Any, *, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = s.maximum(x, s.const(min))
    return x if max is None else s.minimum(x, s.const(max))


def _clamp_vjp(grad: Any, self: Any, min: Any, max: Any) -> Any:
    inside = (self >= min) if min is not None else None
    if max is not None:
        below = self <= max
        inside = below if inside is None else inside.logical_and(below)
    return grad.where(inside, zero_of(grad))


def _clamp_samples(rng: np.random.Generator) -> list[Any]:
    x = rng.standard_normal((3, 4))
    return [((x,), {"min": -0.5}), ((x,), {"max": 0.5}), ((x,), {"min": -0.5, "max": 0.5})]


clamp_op = define(
    "clamp", "self -> result", numpy=_clamp, infer=lambda self, **_: self, kind="pointwise",
    lower=Scalar(_clamp_emit), node="ClampBackward1", vjp=dict(self=_clamp_vjp),
    samples=_clamp_samples,
)  # fmt: skip
clamp_tensor = pointwise(
    "clamp_tensor", "self min? max? -> result", publish=False, node="ClampBackward0",
    numpy=lambda x, low, high: _clamp_arrays(x, low, high),
    scalar=lambda s, x, low, high: _clamp_tensor_emit(s, x, low, high), domain=(-3, 3),
    vjp={
        "self": lambda grad, self, min, max: _clamp_vjp(grad, self, min, max),
        "min": lambda grad, self, min, max: grad.where(_below(self, min, max), zero_of(grad)),
        "max": lambda grad, self, min, max: grad.where(_above(self, min, max), zero_of(grad)),
    },
)  # fmt: skip


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


def _one_sided(name: str, node: str, bound: str) -> tuple[Any, Any]:
    """clamp_min or clamp_max, with a number and with a tensor for the bound."""
    function = np.maximum if bound == "min" else np.minimum
    method = "maximum" if bound == "min" else "minimum"
    inside: Any = (lambda x, b: x >= b) if bound == "min" else (lambda x, b: x <= b)
    outside: Any = (lambda x, b: x < b) if bound == "min" else (lambda x, b: x > b)
    by_number = define(
        name, "self -> result", numpy=lambda x, *, bound: function(x, cast_number(bound, x.dtype)),
        infer=lambda self, *, bound: self, kind="pointwise", node=f"{node}Backward0",
        shown={"bound": bound},
        lower=Scalar(lambda s, x, *, bound: getattr(s, method)(x, s.const(bound))),
        vjp=dict(self=lambda grad, self, bound: grad.where(inside(self, bound), zero_of(grad))),
        samples=lambda rng: [((rng.standard_normal((3, 4)),), {"bound": 0.25})],
    )  # fmt: skip
    by_tensor = pointwise(
        f"{name}_tensor", "self bound -> result", numpy=function, publish=False,
        node=f"{node}Backward1", scalar=lambda s, x, b: getattr(s, method)(x, b), domain=(-3, 3),
        shown={"bound": bound},
        vjp=dict(self=lambda grad, self, bound: grad.where(inside(self, bound), zero_of(grad)),
                 bound=lambda grad, self, bound: grad.where(outside(self, bound), zero_of(grad))),
    )  # fmt: skip
    return by_number, by_tensor


clamp_min_op, clamp_min_tensor = _one_sided("clamp_min", "ClampMin", "min")
clamp_max_op, clamp_max_tensor = _one_sided("clamp_max", "ClampMax", "max")


@public("clamp", "clip", inplace=True)
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    """clamp(input, min=None, max=None): bounds may be numbers or tensors."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if type(min) in _PLAIN and type(max) in _PLAIN and _is_float(input):
        return clamp_op(input, min=min, max=max)
    min, max = (plain_scalar(b) if isinstance(b, np.generic) else b for b in (min, max))
    if isinstance(min, NUMBERS) != isinstance(max, NUMBERS):
        min, max = _as_number(min), _as_number(max)
    _check("clamp", input, min, max)
    tensors = [isinstance(bound, Value) for bound in (min, max) if bound is not None]
    if all(tensors):
        return clamp_tensor(input, min, max)
    if any(tensors):  # a number known at run time only, beside another
        return clamp_max(clamp_min(input, min), max)
    return clamp_op(_promoted(input, min, max), min=min, max=max)


_PLAIN = (float, int, type(None))


def _is_float(input: Any) -> bool:
    return isinstance(input, Value) and input.dtype.is_floating_point


def _as_number(bound: Any) -> Any:
    """A bound beside a number: torch reads a tensor of no dimensions and no history as one."""
    single = isinstance(bound, Value) and not bound.ndim and not getattr(bound, "wrapped", False)
    return bound.item() if single and not bound.requires_grad else bound


def _check(name: str, input: Any, *bounds: Any) -> None:
    require_value(name, input)
    given = [b for b in bounds if b is not None]
    tensors = [isinstance(b, Value) and not getattr(b, "wrapped", False) for b in given]
    if any(tensors) != all(tensors) or not all(isinstance(b, (Value, *NUMBERS)) for b in given):
        words = ", ".join(type(b).__name__ for b in given)
        raise TypeError(f"{name}() received an invalid combination of arguments - got ({words}), "
                        "but expected bounds that are all tensors or all numbers")  # fmt: skip
    if input.dtype.is_complex or any(
        b.dtype.is_complex if isinstance(b, Value) else isinstance(b, complex) for b in given
    ):
        raise NotImplementedError(f"{name} is not supported for complex types")


def _promoted(input: Any, *bounds: Any) -> Any:
    dtype = result_type([input, *(b for b in bounds if b is not None)])
    if dtype is bool_:
        raise no_kernel("clamp_scalar_cpu", dtype)
    return input if dtype is input.dtype else input.to(dtype)


@public("clamp_min", inplace=True)
def clamp_min(input: Any, min: Any) -> Any:
    """clamp_min(input, min)."""
    _check("clamp_min", input, min)
    if isinstance(min, Value):
        return clamp_min_tensor(input, min)
    return clamp_min_op(_promoted(input, min), bound=min)


@public("clamp_max", inplace=True)
def clamp_max(input: Any, max: Any) -> Any:
    """clamp_max(input, max)."""
    _check("clamp_max", input, max)
    if isinstance(max, Value):
        return clamp_max_tensor(input, max)
    return clamp_max_op(_promoted(input, max), bound=max)
