"""Arithmetic: add, sub, mul, div and their relatives; casts and copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import format_order
from ..op import Decompose, Scalar, define
from ..types import COMPLEX, FLOAT, DType, TensorType, bfloat16, bool_, complex128, float64
from ..value import Value, public
from .kinds import no_derivative, operands, pointwise, refuse, require_value
from .looking import divisor


def conj(value: Any) -> Any:
    """The conjugate of a Value or number; the value itself where it is real."""
    if isinstance(value, Value):
        return value.conj() if value.dtype.category == COMPLEX else value
    return value.conjugate() if isinstance(value, complex) else value


def lift(value: Any, like: Any) -> Any:
    """A number as a 0-d Value of `like`'s dtype, for rules whose operand may be either."""
    return value if isinstance(value, Value) else like.new_full((), value)


def times(value: Any, alpha: Any) -> Any:
    return value if alpha == 1 else value * conj(alpha)


def _scaled(combine: Any) -> Any:
    """`a + alpha * b`; bools add as "or", so they are widened for alpha only."""

    def evaluate(a: Any, b: Any, *, alpha: Any = 1) -> Any:
        if alpha != 1:
            kind = b.dtype.type if isinstance(b, np.ndarray) else type(b)
            if kind is np.uint8:  # -3 is 253 there
                alpha = int(alpha) & 255
            b = b * kind(alpha)
        return combine(a, b)

    return evaluate


def refuse_bools(*operands: Any) -> None:
    """Subtraction takes no bools, tensors or numbers."""
    bools = [
        v.dtype.name == "bool" if isinstance(v, Value) else isinstance(v, bool) for v in operands
    ]
    if all(bools):
        raise RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. "
                           "Use the `^` or `logical_xor()` operator instead.")  # fmt: skip
    if any(bools):
        raise RuntimeError("Subtraction, the `-` operator, with a bool tensor is not supported. If "
                           "you are trying to invert a mask, use the `~` or `logical_not()` "
                           "operator instead.")  # fmt: skip


add = pointwise(
    "add", "self other -> result", ufunc=np.add,
    numpy=_scaled(np.add), publish=False,
    scalar=lambda s, a, b, alpha=1: s.add(a, b if alpha == 1 else s.mul(b, s.const(alpha))),
    vjp=dict(self=lambda grad: grad, other=lambda grad, alpha: times(grad, alpha)),
)  # fmt: skip
_minus = _scaled(np.subtract)
sub = pointwise(
    "sub", "self other -> result", ufunc=np.subtract,
    numpy=_minus, publish=False,
    scalar=lambda s, a, b, alpha=1: s.sub(a, b if alpha == 1 else s.mul(b, s.const(alpha))),
    vjp=dict(self=lambda grad: grad, other=lambda grad, alpha: -times(grad, alpha)),
)  # fmt: skip
rsub = pointwise(
    "rsub", "self other -> result", ufunc=lambda a, b: np.subtract(b, a),
    number_nodes=(None, "RsubBackward1"),
    numpy=lambda a, b, *, alpha=1: _minus(b, a, alpha=alpha), publish=False,
    lower=Decompose(lambda self, other, alpha=1: other - (self if alpha == 1 else self * alpha)),
    vjp=dict(self=lambda grad, alpha: -times(grad, alpha), other=lambda grad: grad),
)  # fmt: skip
mul = pointwise(
    "mul", "self other -> result", names=("multiply",), numbers="self other alone",
    numpy=np.multiply, scalar=lambda s, a, b: s.mul(a, b), exact_second=True,
    vjp=dict(self=lambda grad, other: grad * conj(other),
             other=lambda grad, self: grad * conj(self)),
)  # fmt: skip
div_op = pointwise(
    "div", "self other -> result", promote="float", domain=(0.5, 3),
    numpy=np.true_divide, publish=False, scalar=lambda s, a, b: s.div(a, b), exact_second=True,
    vjp=dict(self=lambda grad, other: grad / conj(other),
             other=lambda grad, self, other: -grad * conj((self / other) / other)),
)  # fmt: skip
# torch's kernels divide by plain numbers through an overload of its own
div_number = pointwise(
    "div_number", "self other -> result", promote="float", domain=(0.5, 3), node="DivBackward1",
    numpy=np.true_divide, publish=False, lower=Decompose(lambda self, other: self / other),
    vjp=dict(self=lambda grad, other: grad / conj(other)),
)  # fmt: skip
mul_number = pointwise(
    "mul_number", "self other -> result", node="MulBackward1",
    numpy=np.multiply, publish=False, lower=Decompose(lambda self, other: self * other),
    vjp=dict(self=lambda grad, other: grad * conj(other)),
)  # fmt: skip
neg = pointwise(
    "neg", "self -> result", names=("negative",), ufunc=np.negative, numpy=lambda x: _no_bool("Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.", x, np.negative),  # noqa: E501
    scalar=lambda s, x: s.neg(x), vjp=dict(self=lambda grad: -grad),
)  # fmt: skip


def _no_bool(message: str, x: np.ndarray, function: Any) -> Any:
    if x.dtype == np.bool_:
        raise RuntimeError(message)
    return function(x)


ZERO_DIVISION = "ZeroDivisionError: integers cannot be divided by 0; use floats, or where()"


def _trunc_divide(a: Any, b: Any) -> Any:
    dtype = np.result_type(a, b)
    if dtype.kind == "f":
        return np.trunc(np.true_divide(a, b))
    if np.any(np.equal(b, 0)):
        raise RuntimeError(ZERO_DIVISION)
    quotient = np.floor_divide(np.abs(a), np.abs(b))
    return (np.sign(a) * np.sign(b) * quotient).astype(dtype)


def _floor_divide(a: Any, b: Any) -> Any:
    dtype = np.result_type(a, b)
    refuse("div_floor", "cb", np.empty(0, dtype))
    if dtype.kind != "f":
        if np.any(np.equal(b, 0)):
            raise RuntimeError(ZERO_DIVISION)
        return np.floor_divide(a, b)
    quotient = np.floor_divide(a, b)
    return np.where(np.equal(b, 0), np.true_divide(a, b), quotient).astype(dtype, copy=False)


floor_divide = pointwise(
    "floor_divide", "self other -> result", raises=divisor, numbers="self other alone",
    exact_second=True, numpy=_floor_divide, scalar=lambda s, a, b: s.floor_divide(a, b),
    node="NotImplemented",
    vjp=dict.fromkeys(("self", "other"), no_derivative(
        "derivative for aten::floor_divide is not implemented")),
)  # fmt: skip
trunc_divide = pointwise(
    "trunc_divide", "self other -> result", raises=divisor, publish=False, exact_second=True,
    numpy=_trunc_divide, scalar=lambda s, a, b: s.trunc(s.div(a, b)),
    node="DivBackward2", vjp=dict(self=lambda grad: grad * 0, other=lambda grad: grad * 0),
)  # fmt: skip
floor_divide_mode = pointwise(
    "floor_divide_mode", "self other -> result", raises=divisor, publish=False, exact_second=True,
    numpy=_floor_divide, scalar=lambda s, a, b: s.floor_divide(a, b),
    node="DivBackward2", vjp=dict(self=lambda grad: grad * 0, other=lambda grad: grad * 0),
)  # fmt: skip


def _rest(name: str, function: Any) -> Any:
    def evaluate(a: Any, b: Any) -> Any:
        dtype = np.result_type(a, b)
        refuse(name, "cb", np.empty(0, dtype))
        if dtype.kind in "iu" and np.any(np.equal(b, 0)):
            raise RuntimeError(ZERO_DIVISION)
        return function(a, b)

    return evaluate


def _remainder(a: Any, b: Any) -> Any:
    """What is left; where nothing is, a zero with the sign of `a`, as in torch."""
    left = np.remainder(a, b)
    return np.where(left == 0, np.copysign(left, a), left) if left.dtype.kind == "f" else left


remainder = pointwise(
    "remainder", "self other -> result", raises=divisor,
    numpy=_rest("remainder", _remainder), scalar=lambda s, a, b: s.remainder(a, b),
    node="RemainderBackward1", number_nodes=(None, "RemainderBackward0"),
    vjp=dict(self=lambda grad: grad,
             other=lambda grad, self, other: -grad * div(self, other, rounding_mode="floor")),
    domain=(1, 5),
)  # fmt: skip
fmod = pointwise(
    "fmod", "self other -> result", raises=divisor, numbers="other",
    numpy=_rest("fmod", np.fmod), scalar=lambda s, a, b: s.fmod(a, b),
    node="FmodBackward1", number_nodes=(None, "FmodBackward0"),
    vjp=dict(self=lambda grad: grad,
             other=lambda grad, self, other: -grad * div(self, other, rounding_mode="trunc")),
    domain=(1, 5),
)  # fmt: skip


@public("add", inplace=True, out="cast")
def add_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """add(input, other, *, alpha=1): input + alpha * other."""
    check_alpha("add", input, other, alpha)
    input, other = operands("add", input, other, alone=True)
    if isinstance(alpha, Value):  # a number known at run time only
        return add(input, mul(other, alpha))
    return add(input, other) if alpha == 1 else add(input, other, alpha=alpha)


add_.op = add  # type: ignore[attr-defined]


@public("sub", "subtract", inplace=True, out="cast")
def sub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """sub(input, other, *, alpha=1): input - alpha * other."""
    check_alpha("sub", input, other, alpha)
    input, other = operands("sub", input, other, alone=True)
    refuse_bools(input, other)
    if isinstance(alpha, Value):  # a number known at run time only
        return sub(input, mul(other, alpha))
    return sub(input, other) if alpha == 1 else sub(input, other, alpha=alpha)


sub_.op = sub  # type: ignore[attr-defined]


@public("rsub", method=False, out="cast")
def rsub_(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """rsub(input, other, *, alpha=1): other - alpha * input."""
    require_value("rsub", input)
    input, other = operands("rsub", input, other)
    refuse_bools(input, other)
    check_alpha("rsub", input, other, alpha)
    return rsub(input, other) if alpha == 1 else rsub(input, other, alpha=alpha)


def minus(input: Any, other: Any) -> Any:
    """The operator `-`: sub() with the least checks."""
    if other is True or other is False or bool_ in (input.dtype, getattr(other, "dtype", None)):
        refuse_bools(input, other)
    return sub(input, other)


def check_alpha(name: str, input: Any, other: Any, alpha: Any) -> None:
    if isinstance(alpha, int) or (not isinstance(alpha, Value) and alpha == 1):
        return
    dtypes = [v.dtype for v in (input, other) if isinstance(v, Value)]
    numbers_float = any(isinstance(v, float | complex) for v in (input, other))
    if isinstance(alpha, float | complex) and dtypes and not numbers_float and (
            max(d.category for d in dtypes) < FLOAT):  # fmt: skip
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating "
                           "point number.")  # fmt: skip
    if isinstance(alpha, complex) and dtypes and not (
            any(d.is_complex for d in dtypes) or isinstance(other, complex)):  # fmt: skip
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex "
                           "number.")  # fmt: skip


@public("div", "divide", "true_divide", inplace=True, out="cast")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """div(input, other, *, rounding_mode=None): "trunc" and "floor" round the quotient."""
    input, other = operands("div", input, other, alone=True)
    if rounding_mode is None:
        return div_op(input, other)
    if rounding_mode == "trunc":
        return trunc_divide(input, other)
    if rounding_mode == "floor":
        return floor_divide_mode(input, other)
    raise RuntimeError("div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
                       f"found '{rounding_mode}'")  # fmt: skip


# --- casts and copies ----------------------------------------------------------------------------


def _cast(x: np.ndarray, *, dtype: DType) -> np.ndarray:
    if x.dtype.kind == "c" and not dtype.is_complex and dtype.name != "bool":
        x = x.real
    if dtype is bfloat16:
        return x.astype(np.float32)  # rounding to bfloat16 is the interpreter's, see run_half
    # NumPy would make the dimensions of an expanded array the fastest ones
    return x.astype(dtype.storage, order="C" if 0 in x.strides else "K")


cast = define(
    "cast", "self -> result", samples=lambda rng: [((rng.standard_normal((2, 3)),), {
        "dtype": dtype}) for dtype in (float64, complex128)],
    numpy=_cast, infer=lambda self, *, dtype: TensorType(dtype, self.shape),
    lower=Scalar(lambda s, x, *, dtype: s.cast(x, dtype.name)), kind="pointwise",
    node="ToCopyBackward0",
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip
clone = define(
    "clone", "self -> result",
    # repeated elements have no order of their own to keep
    numpy=lambda x: x.copy(order="C" if 0 in x.strides else "K"), infer=lambda self: self,
    lower=Scalar(lambda s, x: x), kind="pointwise", moves_data=True,
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip
contiguous = define(
    "contiguous", "self -> result", node="CloneBackward0",
    numpy=lambda x, *, order=None: x.copy() if order is None else (
        x.transpose(order).copy().transpose(np.argsort(order))),
    infer=lambda self, *, order=None: self,
    lower=Decompose(lambda self, *, order=None: self), kind="pointwise", moves_data=True,
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip
alias = define(
    "alias", "self -> result",
    numpy=lambda x: x.view(), infer=lambda self: self, kind="view",
    lower=Decompose(lambda self: self), is_view=True, moves_data=True,
    put=lambda base, patch: patch,
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip


@public("clone")
def clone_(input: Any, *, memory_format: Any = None) -> Any:
    """clone(input, *, memory_format=preserve_format): a copy that gradients flow through."""
    if memory_format is None or memory_format.name == "preserve_format":
        return clone(input)
    order = format_order(memory_format, input.ndim)
    return contiguous(input) if order is None else contiguous(input, order=order)


# Cuts the gradient in IR, where there is no grad mode: recorded for detach() and under no_grad, and
# for `.data`: then writes are counted apart.
stop_gradient = define(
    "stop_gradient", "self -> result", numpy=lambda x, *, apart=False: x,
    infer=lambda self, apart=False: self,
    kind="pointwise", moves_data=True, lower=Scalar(lambda s, x, *, apart=False: x),
)  # fmt: skip
# A write that autograd did not see (under no_grad, or through detach()): the value is the new one,
# the history that of `self`.
overwrite = define(
    "overwrite", "self value -> result", numpy=lambda self, value: value,
    infer=lambda self, value: value, moves_data=True,
    lower=Decompose(lambda self, value: value), vjp=dict(self=lambda grad: grad),
)  # fmt: skip
