"""Several elementwise operations in one: addcmul, addcdiv, lerp."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Scalar, define
from ..types import FLOAT, TensorType, broadcast_shapes, type_word
from ..value import Value, public
from .arithmetic import conj, times
from .kinds import cast_number, pointwise, refuse, require_value


def _combine(name: str, function: Any) -> Any:
    def evaluate(x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
        refuse(name, "b", x)
        scaled = a if value == 1 else a * cast_number(value, a.dtype)
        return x + function(scaled, b)

    return evaluate


def _emit(method: str) -> Any:
    def emit(s: Any, x: Any, a: Any, b: Any, *, value: Any = 1) -> Any:
        scaled = a if value == 1 else s.mul(a, s.const(value))
        return s.add(x, getattr(s, method)(scaled, b))

    return emit


addcmul_op = pointwise(
    "addcmul", "self tensor1 tensor2 -> result", numpy=_combine("addcmul", np.multiply),
    scalar=_emit("mul"), domain=(-2, 2),
    vjp=dict(self=lambda grad: grad,
             tensor1=lambda grad, tensor2, value: times(grad * conj(tensor2), value),
             tensor2=lambda grad, tensor1, value: times(grad * conj(tensor1), value)),
)  # fmt: skip
addcdiv_op = pointwise(
    "addcdiv", "self tensor1 tensor2 -> result", promote="float",
    numpy=_combine("addcdiv", np.true_divide),
    scalar=_emit("div"), domain=(0.5, 2),
    vjp=dict(self=lambda grad: grad,
             tensor1=lambda grad, tensor2, value: times(grad / conj(tensor2), value),
             tensor2=lambda grad, tensor1, tensor2, value: -times(
                 grad * conj(tensor1 / (tensor2 * tensor2)), value)),
)  # fmt: skip


def _arguments(name: str, values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    """Also the deprecated order (input, value, tensor1, tensor2)."""
    if len(values) == 4 and not isinstance(values[1], Value):
        values, value = (values[0], *values[2:]), values[1]
    if len(values) != 3:
        raise TypeError(f"{name}() takes 3 positional arguments but {len(values)} were given")
    for position, (word, given) in enumerate(zip(("input", "tensor1", "tensor2"), values)):
        require_value(name, given, word, position)
    return values, value


def _scaled(op: Any, operands: tuple[Any, ...], value: Any) -> Any:
    """`op` with its second term times `value`, which may be a number known at run time only."""
    if isinstance(value, Value):
        start, tensor1, tensor2 = operands
        return op(start, tensor1 * value, tensor2)
    return op(*operands) if value == 1 else op(*operands, value=value)


def _named(values: tuple[Any, ...], tensor1: Any, tensor2: Any) -> tuple[Any, ...]:
    return (*values, *(t for t in (tensor1, tensor2) if t is not None))


@public("addcmul", inplace=True, out="cast")
def addcmul(input: Any, *tensors: Any, tensor1: Any = None, tensor2: Any = None,
            value: Any = 1) -> Any:  # fmt: skip
    """addcmul(input, tensor1, tensor2, *, value=1): input + value * tensor1 * tensor2."""
    given = (input, *_named(tensors, tensor1, tensor2))
    operands, value = _arguments("addcmul", given, value)
    return _scaled(addcmul_op, operands, value)


@public("addcdiv", inplace=True, out="cast")
def addcdiv(input: Any, *tensors: Any, tensor1: Any = None, tensor2: Any = None,
            value: Any = 1) -> Any:  # fmt: skip
    """addcdiv(input, tensor1, tensor2, *, value=1): input + value * tensor1 / tensor2."""
    given = (input, *_named(tensors, tensor1, tensor2))
    operands, value = _arguments("addcdiv", given, value)
    if all(t.dtype.category < FLOAT for t in operands[1:]):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv "
            "will perform a true division of tensor1 and tensor2. The historic addcdiv behavior "
            "can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype)"
            " for integer inputs and as (input + value * tensor1 / tensor2) for float inputs."
        )
    return _scaled(addcdiv_op, operands, value)


# --- lerp ----------------------------------------------------------------------------------------


def _lerp(start: Any, end: Any, weight: Any) -> Any:
    """Exact at both ends: from the nearer one."""
    refuse("lerp", "iub", start)
    span = end - start
    return np.where(np.abs(weight) < 0.5, start + weight * span, end - span * (1 - weight))


def _lerp_number(start: Any, end: Any, *, weight: Any) -> Any:
    refuse("lerp", "iub", start)
    weight = cast_number(weight, start.dtype)
    span = end - start
    return start + weight * span if abs(weight) < 0.5 else end - span * (1 - weight)


def _lerp_emit(s: Any, start: Any, end: Any, weight: Any) -> Any:
    span = s.sub(end, start)
    near = s.add(start, s.mul(weight, span))
    far = s.sub(end, s.mul(span, s.sub(s.const(1), weight)))
    return s.select(s.lt(s.abs(weight), s.const(0.5)), near, far)


def _lerp_number_emit(s: Any, start: Any, end: Any, *, weight: Any) -> Any:
    span = s.sub(end, start)
    if abs(weight) < 0.5:
        return s.add(start, s.mul(s.const(weight), span))
    return s.sub(end, s.mul(span, s.const(1 - weight)))


def _lerp_samples(rng: np.random.Generator) -> list[Any]:
    a, b = rng.standard_normal((2, 3)), rng.standard_normal((2, 3))
    return [((a, b), {"weight": w}) for w in (0.3, 0.8, -1.5)] + [((a, b[0]), {"weight": 0.25})]


lerp_number = define(
    "lerp_number", "self end -> result", numpy=_lerp_number, node="LerpBackward0",
    infer=lambda self, end, *, weight: TensorType(
        self.dtype, broadcast_shapes(self.shape, end.shape)),
    kind="pointwise", lower=Scalar(_lerp_number_emit), samples=_lerp_samples,
    vjp=dict(self=lambda grad, weight: grad * (1 - conj(weight)),
             end=lambda grad, weight: grad * conj(weight)),
)  # fmt: skip
lerp_tensor = pointwise(
    "lerp_tensor", "self end weight -> result", numpy=_lerp, scalar=_lerp_emit, publish=False,
    node="LerpBackward1", domain=(0.1, 0.45),
    vjp=dict(self=lambda grad, weight: grad * (1 - conj(weight)),
             end=lambda grad, weight: grad * conj(weight),
             weight=lambda grad, self, end: grad * conj(end - self)),
)  # fmt: skip


@public("lerp", inplace=True, out="cast")
def lerp(input: Any, end: Any, weight: Any) -> Any:
    """lerp(input, end, weight): input + weight * (end - input)."""
    require_value("lerp", input)
    require_value("lerp", end, "end", 1)
    for word, value in (("end", end), ("weight", weight)):
        if isinstance(value, Value) and value.dtype is not input.dtype and (
                word == "end" or value.ndim):  # fmt: skip
            raise RuntimeError(f"expected dtype {type_word(input.dtype).lower()} for `{word}` but "
                               f"got dtype {type_word(value.dtype).lower()}")  # fmt: skip
    if isinstance(weight, Value):
        return lerp_tensor(input, end, weight)
    return lerp_number(input, end, weight=weight)
