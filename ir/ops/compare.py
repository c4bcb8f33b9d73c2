"""Comparisons, logic and bits, `where` and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, Scalar, define
from ..types import TensorType, bool_, broadcast_shapes, result_type
from ..value import Value, public
from .kinds import operands, pointwise


def _comparison(name: str, function: Any, *names: str) -> Any:
    return pointwise(name, "self other -> result", promote="compare", numpy=function, names=names,
                     scalar=lambda s, a, b: getattr(s, name)(a, b))  # fmt: skip


eq = _comparison("eq", np.equal)
ne = _comparison("ne", np.not_equal, "not_equal")
lt = _comparison("lt", np.less, "less")
le = _comparison("le", np.less_equal, "less_equal")
gt = _comparison("gt", np.greater, "greater")
ge = _comparison("ge", np.greater_equal, "greater_equal")


def _logic(name: str, function: Any) -> Any:
    return pointwise(
        name, "self other -> result", promote="compare", numpy=function,
        scalar=lambda s, a, b: getattr(s, name)(s.cast(a, "bool"), s.cast(b, "bool")),
    )  # fmt: skip


logical_and = _logic("logical_and", np.logical_and)
logical_or = _logic("logical_or", np.logical_or)
logical_xor = _logic("logical_xor", np.logical_xor)
logical_not = pointwise("logical_not", "self -> result", promote="compare", numpy=np.logical_not,
                        scalar=lambda s, x: s.logical_not(s.cast(x, "bool")))  # fmt: skip


def _classify(name: str, function: Any) -> Any:
    return pointwise(name, "self -> result", promote="compare", numpy=function, inplace=False,
                     scalar=lambda s, x: getattr(s, name)(x))  # fmt: skip


isnan = _classify("isnan", np.isnan)
isinf = _classify("isinf", np.isinf)
isfinite = _classify("isfinite", np.isfinite)
signbit = _classify("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0)


def _bits(name: str, function: Any, method: str = "") -> Any:
    method = method or name

    def evaluate(a: Any, b: Any) -> Any:
        _integers_only(name, a, b)
        return function(a, b)

    return pointwise(name, "self other -> result", numpy=evaluate,
                     scalar=lambda s, a, b: getattr(s, method)(a, b))  # fmt: skip


def _integers_only(name: str, *arrays: Any) -> None:
    kind = np.result_type(*arrays)
    if kind.kind not in "iub":
        raise NotImplementedError(f'"{name}_cpu" not implemented for {kind.name!r}')


bitwise_and = _bits("bitwise_and", np.bitwise_and)
bitwise_or = _bits("bitwise_or", np.bitwise_or)
bitwise_xor = _bits("bitwise_xor", np.bitwise_xor)
bitwise_left_shift = _bits("bitwise_left_shift", np.left_shift, "shl")
bitwise_right_shift = _bits("bitwise_right_shift", np.right_shift, "shr")


def _invert(x: np.ndarray) -> np.ndarray:
    _integers_only("bitwise_not", x)
    return np.invert(x)


bitwise_not = pointwise("bitwise_not", "self -> result", numpy=_invert,
                        scalar=lambda s, x: s.bitwise_not(x))  # fmt: skip

# --- choosing ------------------------------------------------------------------------------------


def _where_infer(condition: Any, self: Any, other: Any) -> TensorType:
    shape = broadcast_shapes(condition.shape, self.shape, other.shape)
    return TensorType(result_type((self, other)), shape)


where = define(
    "where", "condition self other -> result",
    numpy=np.where, infer=_where_infer, kind="pointwise",
    lower=Scalar(lambda s, c, a, b: s.select(c, a, b)),
    vjp=dict(self=lambda grad, condition: grad.where(condition, grad.new_zeros(())),
             other=lambda grad, condition: grad.new_zeros(()).where(condition, grad)),
)  # fmt: skip


@public("where", method=False)
def where_(condition: Any, input: Any = None, other: Any = None) -> Any:
    """where(condition, input, other), or where(condition) for the indices of true elements."""
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Value):
        raise TypeError("where(): argument 'condition' (position 1) must be Tensor, not "
                        f"{type(condition).__name__}")  # fmt: skip
    if condition.dtype is not bool_:
        if condition.dtype.name != "uint8":
            raise RuntimeError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{condition.dtype.name}"
            )
        condition = condition.to(bool_)
    if not isinstance(input, Value) and not isinstance(other, Value):
        dtype = result_type((input, other))
        input = condition.new_full((), input, dtype=dtype)
        other = condition.new_full((), other, dtype=dtype)
    operands("where", condition, input, other)
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
    return np.where(mask, filler, x)


masked_fill_op = define(
    "masked_fill", "self mask -> result",
    numpy=_masked_fill, kind="pointwise",
    infer=lambda self, mask, *, value: TensorType(
        self.dtype, broadcast_shapes(self.shape, mask.shape)),
    lower=Scalar(lambda s, x, m, *, value: s.select(m, s.const(value), x)),
    vjp=dict(self=lambda grad, mask: grad.masked_fill(mask, 0)),
)  # fmt: skip
masked_fill_tensor = define(
    "masked_fill_tensor", "self mask value -> result",
    numpy=lambda x, mask, value: np.where(mask, value.astype(x.dtype), x), kind="pointwise",
    infer=lambda self, mask, value: TensorType(
        self.dtype, broadcast_shapes(self.shape, mask.shape)),
    lower=Decompose(lambda self, mask, value: value.to(self.dtype).where(mask, self)),
    node="MaskedFillBackward1",
    vjp=dict(self=lambda grad, mask: grad.masked_fill(mask, 0),
             value=lambda grad, mask: grad.where(mask, grad.new_zeros(())).sum()),
)  # fmt: skip


@public("masked_fill", inplace=True)
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    """masked_fill(input, mask, value): `value` where `mask` is true."""
    if mask.dtype is not bool_:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{mask.dtype.name}")  # fmt: skip
    if isinstance(value, Value):
        if value.ndim:
            raise RuntimeError("masked_fill only supports a 0-dimensional value tensor, but got "
                               f"tensor with {value.ndim} dimension(s).")  # fmt: skip
        return masked_fill_tensor(input, mask, value)
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("value cannot be converted to type without overflow")
    return masked_fill_op(input, mask, value=value)
