"""Comparisons, logic and bits, `where` and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import warn_once
from ..op import Decompose, Scalar, define
from ..types import (
    FLOAT,
    TensorType,
    bool_,
    broadcast_shapes,
    c_word,
    check_number,
    check_run_time,
    result_type,
    type_word,
)
from ..value import FUNCTIONS, Value, public
from .choosing import choose
from .kinds import operands, pointwise, refuse, refusing, require_value
from .views import zeros


def _comparison(name: str, function: Any, *names: str) -> Any:
    op = pointwise(name, "self other -> result", promote="compare", numpy=function, names=names,
                   numbers="other", scalar=lambda s, a, b: getattr(s, name)(a, b))  # fmt: skip

    def inplace_result(result: Any, before: Any, other: Any) -> Any:
        """What `x.name_(other)` writes into a tensor with history; see `flat`."""
        both = isinstance(other, Value)
        operands = (before, other) if both else (before,)
        return flat(*operands, result.to(before.dtype), node=f"{name.title()}Backward{both:d}")

    FUNCTIONS[name].call.inplace_result = inplace_result  # type: ignore[attr-defined]
    return op


# Written in place, a comparison is a float and has a history, torch's: its slope is zero.
flat = define(
    "flat", "*operands -> result", numpy=lambda *arrays, node: arrays[-1], moves_data=True,
    infer=lambda *types, node: types[-1], node=lambda attrs: attrs["node"],
    lower=Decompose(lambda *operands, node: operands[-1]),
    vjp=dict(operands=lambda grad, operands_type, i: zeros(operands_type[i])),
    # the value is a constant, so only what it replaces may move
    samples=lambda rng: [((rng.standard_normal(3), np.ones(3, np.int64)), {"node": "Flat"})],
)  # fmt: skip
eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal, "not_equal")
lt = _comparison("lt", refusing("lt", "c", np.less), "less")
le = _comparison("le", refusing("le", "c", np.less_equal), "less_equal")
gt = _comparison("gt", refusing("gt", "c", np.greater), "greater")
ge = _comparison("ge", refusing("ge", "c", np.greater_equal), "greater_equal")


def _logic(name: str, function: Any) -> Any:
    return pointwise(
        name, "self other -> result", promote="compare", numpy=function, numbers="",
        scalar=lambda s, a, b: getattr(s, name)(s.cast(a, "bool"), s.cast(b, "bool")),
    )  # fmt: skip


logical_and = _logic("logical_and", np.logical_and)
logical_or = _logic("logical_or", np.logical_or)
logical_xor = _logic("logical_xor", np.logical_xor)
logical_not = pointwise("logical_not", "self -> result", promote="compare", out="cast",
                        numpy=np.logical_not,
                        scalar=lambda s, x: s.logical_not(s.cast(x, "bool")))  # fmt: skip


def _classify(name: str, function: Any) -> Any:
    return pointwise(name, "self -> result", promote="compare", numpy=function, inplace=False,
                     scalar=lambda s, x: getattr(s, name)(x))  # fmt: skip


isnan = _classify("isnan", np.isnan)
isinf = _classify("isinf", np.isinf)
isfinite = _classify("isfinite", np.isfinite)


def _infinite(name: str, function: Any, comparison: str) -> Any:
    def evaluate(x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return function(x) if x.dtype.kind == "f" else np.zeros(x.shape, np.bool_)

    def emit(s: Any, x: Any) -> Any:
        if not str(x.dtype).startswith(("float", "bfloat")):
            return s.const(False, "bool")
        return s.logical_and(s.isinf(x), getattr(s, comparison)(x, s.const(0)))

    return pointwise(name, "self -> result", promote="compare", numpy=evaluate, inplace=False,
                     scalar=emit)  # fmt: skip


isposinf = _infinite("isposinf", np.isposinf, "gt")
isneginf = _infinite("isneginf", np.isneginf, "lt")
signbit = _classify("signbit", refusing(
    "signbit", "c", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0))  # fmt: skip


def whole_numbers(count: int, low: int = -9, high: int = 9) -> Any:
    """Samples for ops of integers."""
    return lambda rng: [(tuple(rng.integers(low, high, (2, 3)) for _ in range(count)), {}),
                        (tuple(rng.integers(low, high, ()) for _ in range(count)), {})]  # fmt: skip


def _bits(name: str, function: Any, method: str = "", kinds: str = "fc", kernel: str = "") -> Any:
    """`kernel` is what torch's errors call the op, `method` what the scalar reader does."""
    method = method or name
    return pointwise(name, "self other -> result", numpy=refusing(kernel or name, kinds, function),
                     samples=whole_numbers(2),
                     scalar=lambda s, a, b: getattr(s, method)(a, b))  # fmt: skip


def _shift(function: Any, beyond: Any) -> Any:
    """A shift count outside the width gives 0, or the sign to the right, as torch does."""

    def evaluate(a: Any, count: Any) -> Any:
        dtype = np.result_type(a, count)
        a, count = np.asarray(a, dtype), np.asarray(count, dtype)
        outside = (count < 0) | (count >= a.dtype.itemsize * 8)
        if not np.any(outside):
            return function(a, count)
        shifted = function(a, np.where(outside, 0, count).astype(a.dtype))
        return np.where(outside, beyond(a), shifted).astype(a.dtype)

    return evaluate


bitwise_and = _bits("bitwise_and", np.bitwise_and)
bitwise_or = _bits("bitwise_or", np.bitwise_or)
bitwise_xor = _bits("bitwise_xor", np.bitwise_xor)
bitwise_left_shift = _bits("bitwise_left_shift", _shift(np.left_shift, np.zeros_like), "shl",
                           "fcb", "lshift")  # fmt: skip
bitwise_right_shift = _bits("bitwise_right_shift", _shift(
    np.right_shift, lambda a: np.where(a < 0, -1, 0)), "shr", "fcb", "rshift")  # fmt: skip


def _invert(x: np.ndarray) -> Any:
    refuse("bitwise_not", "fc", x)
    return np.invert(x)


bitwise_not = pointwise("bitwise_not", "self -> result", numpy=_invert, samples=whole_numbers(1),
                        scalar=lambda s, x: s.bitwise_not(x))  # fmt: skip


def invert(self: Any) -> Any:
    """~self: bitwise not of whole numbers and bools."""
    if self.dtype.category >= FLOAT:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type "
                        "tensors")  # fmt: skip
    return bitwise_not(self)


# --- choosing ------------------------------------------------------------------------------------


def _where_infer(condition: Any, self: Any, other: Any) -> TensorType:
    shape = broadcast_shapes(condition.shape, self.shape, other.shape)
    return TensorType(result_type((self, other)), shape)


def _mask_samples(*shapes: tuple[int, ...], **attrs: Any) -> Any:
    """Samples for ops of a mask and operands of these shapes; the mask comes second."""

    def samples(rng: np.random.Generator) -> list[Any]:
        mask = rng.random((3, 4)) > 0.5
        first, *rest = (rng.standard_normal(shape) for shape in shapes)
        return [((first, mask, *rest), attrs)]

    return samples


def _where_samples(rng: np.random.Generator) -> list[Any]:
    a, b = rng.standard_normal((3, 4)), rng.standard_normal(4)
    return [((rng.random((3, 4)) > 0.5, a, b), {}), ((np.asarray(True), a[0, 0], b), {})]


where = define(
    "where", "condition self other -> result", samples=_where_samples,
    numpy=choose, infer=_where_infer, kind="pointwise",
    lower=Scalar(lambda s, c, a, b: s.select(c, a, b)),
    vjp=dict(self=lambda grad, condition: grad.where(condition, grad.new_zeros(())),
             other=lambda grad, condition: grad.new_zeros(()).where(condition, grad)),
)  # fmt: skip


@public("where", method=False, overlap="aligned")
def where_(condition: Any, input: Any = None, other: Any = None) -> Any:
    """where(condition, input, other), or where(condition) for the indices of true elements."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    require_value("where", condition, "condition")
    if condition.dtype is not bool_:
        if condition.dtype.name != "uint8":
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{type_word(condition.dtype)}"
            )
        warn_once("where received a uint8 condition tensor. This behavior is deprecated and will "
                  "be removed in a future version of PyTorch. Use a boolean condition "
                  "instead.")  # fmt: skip
        condition = condition.to(bool_)
    if not isinstance(input, Value) and not isinstance(other, Value):
        dtype = result_type((input, other))
        input = condition.new_full((), input, dtype=dtype)
        other = condition.new_full((), other, dtype=dtype)
    _, input, other = operands("where", condition, input, other)
    dtype = result_type((input, other))
    return where(condition, as_value(input, dtype, condition), as_value(other, dtype, condition))


def as_value(operand: Any, dtype: Any, like: Any) -> Any:
    """A number as a 0-d Value; a Value cast to `dtype`."""
    if isinstance(operand, Value):
        return operand if operand.dtype is dtype else operand.to(dtype)
    return like.new_full((), operand, dtype=dtype)


def _where_method(input: Any, condition: Any, other: Any) -> Any:
    """input.where(condition, other)."""
    return where_(condition, input, other)


Value.where = _where_method  # type: ignore[attr-defined]


def _masked_fill(x: Any, mask: Any, *, value: Any) -> Any:
    filler = np.asarray(value).astype(x.dtype)
    return np.asarray(choose(mask, filler, x), order="C")  # torch clones to the usual order


masked_fill_op = define(
    "masked_fill", "self mask -> result", samples=_mask_samples((3, 4), value=1.5),
    numpy=_masked_fill, kind="pointwise",
    infer=lambda self, mask, *, value: TensorType(
        self.dtype, broadcast_shapes(self.shape, mask.shape)),
    lower=Scalar(lambda s, x, m, *, value: s.select(m, s.const(value), x)),
    vjp=dict(self=lambda grad, mask: grad.masked_fill(mask, 0)),
)  # fmt: skip
masked_fill_tensor = define(
    "masked_fill_tensor", "self mask value -> result", samples=_mask_samples((3, 4), ()),
    numpy=lambda x, mask, value: np.asarray(choose(mask, value.astype(x.dtype), x), order="C"),
    kind="pointwise",
    infer=lambda self, mask, value: TensorType(
        self.dtype, broadcast_shapes(self.shape, mask.shape)),
    lower=Decompose(lambda self, mask, value: value.to(self.dtype).where(mask, self)),
    node="MaskedFillBackward1", batch="decompose",
    vjp=dict(self=lambda grad, mask: grad.masked_fill(mask, 0),
             value=lambda grad, mask: grad.where(mask, grad.new_zeros(())).sum()),
)  # fmt: skip


@public("masked_fill", inplace=True)
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """masked_fill(input, mask, value): `value` where `mask` is true."""
    if mask.dtype is not bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{c_word(mask.dtype)}")  # fmt: skip
    if isinstance(value, Value):
        if value.ndim:
            raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got "
                               f"tensor with {value.ndim} dimension(s).")  # fmt: skip
        if value.dtype.is_complex and not input.dtype.is_complex:
            check_number(1j, input.dtype)
        check_run_time(value, input.dtype)
        return masked_fill_tensor(input, mask, value)
    _, value = operands("masked_fill", input, value)
    return masked_fill_op(input, mask, value=check_number(value, input.dtype))
