"""Python's operators on Values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import plain_scalar
from ..value import Value
from . import arithmetic, compare, mathematics, powers, products, rounding
from .kinds import NUMBERS


def _forward(function: Any) -> Any:
    """`self op other`; NotImplemented for operands that are neither Values nor numbers.

    NumPy's arrays are none: NumPy computes with them, by its own rules, if the tensor lets it.
    """

    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, (Value, *NUMBERS)):
            return function(self, other)
        if isinstance(other, np.generic):
            return function(self, plain_scalar(other))
        return NotImplemented

    return operator


def _reflected(function: Any) -> Any:
    """`other op self`."""
    return _forward(lambda self, other: function(other, self))


def _equal(self: Any, other: Any) -> Any:
    """`self == other`, the one operator that takes an array for a tensor."""
    if isinstance(other, np.ndarray) and hasattr(Value, "_from_array"):
        other = Value._from_array(other)
    return _compared(self, other)


_compared = _forward(compare.eq)


def _named(operator: Any, name: str) -> Any:
    operator.__name__ = operator.__qualname__ = name
    return operator


_BINARY: dict[str, Any] = {
    "add": arithmetic.add, "sub": arithmetic.minus, "mul": arithmetic.mul,
    "truediv": arithmetic.div_op, "floordiv": arithmetic.floor_divide,
    "mod": arithmetic.remainder, "pow": powers.pow_,
    "and": compare.bitwise_and, "or": compare.bitwise_or, "xor": compare.bitwise_xor,
    "lshift": compare.bitwise_left_shift, "rshift": compare.bitwise_right_shift,
}  # fmt: skip
_COMPARE: dict[str, Any] = {
    "ne": compare.ne, "lt": compare.lt, "le": compare.le, "gt": compare.gt, "ge": compare.ge,
}  # fmt: skip

for _name, _function in {**_BINARY, **_COMPARE}.items():
    setattr(Value, f"__{_name}__", _named(_forward(_function), f"__{_name}__"))
for _name, _function in _BINARY.items():
    setattr(Value, f"__r{_name}__", _named(_reflected(_function), f"__r{_name}__"))
# these commute, or have an op of their own, so that the tensor comes first in the graph
for _name, _function in {
    "rsub": arithmetic.rsub_, "radd": arithmetic.add, "rmul": arithmetic.mul
}.items():  # fmt: skip
    setattr(Value, f"__{_name}__", _named(_forward(_function), f"__{_name}__"))


def _matmul(self: Any, other: Any) -> Any:
    return products.matmul(self, other) if isinstance(other, Value) else NotImplemented


def _reflected_division(self: Any, other: Any) -> Any:
    """number / self is reciprocal times number, with torch's node names."""
    if isinstance(other, int | float) and not isinstance(other, bool):
        return mathematics.reciprocal(self) * other
    return arithmetic.div_op(other, self)


def _divided(self: Any, other: Any) -> Any:
    if isinstance(other, np.ndarray):
        return mathematics.reciprocal(self) * other
    return _division(self, other)


_division = _forward(_reflected_division)


def _reflected_matmul(self: Any, other: Any) -> Any:
    return products.matmul(other, self) if isinstance(other, Value) else NotImplemented


_OTHERS: dict[str, Any] = {
    "matmul": _matmul, "rmatmul": _reflected_matmul,
    "eq": _equal, "rtruediv": _divided, "rdiv": _divided,
    "div": _forward(arithmetic.div_op), "neg": lambda self: arithmetic.neg(self),
    "pos": lambda self: self.positive(), "abs": lambda self: rounding.abs_op(self),
    "invert": compare.invert,
}  # fmt: skip
for _name, _function in _OTHERS.items():
    setattr(Value, f"__{_name}__", _named(_function, f"__{_name}__"))


# Operators that are one op on tensors and numbers.
OPERATORS: dict[str, Any] = {
    "__add__": arithmetic.add, "__radd__": arithmetic.add, "__sub__": arithmetic.sub,
    "__mul__": arithmetic.mul, "__rmul__": arithmetic.mul, "__truediv__": arithmetic.div_op,
    "__rsub__": arithmetic.rsub, "__neg__": arithmetic.neg, "__lt__": compare.lt,
    "__le__": compare.le, "__gt__": compare.gt, "__ge__": compare.ge, "__eq__": compare.eq,
    "__ne__": compare.ne,
}  # fmt: skip


def _inplace_operator(method: str) -> Any:
    def operator(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):  # Python goes on with `self op other`
            return NotImplemented
        return getattr(self, method)(other)

    return operator


for _name, _method in {
    "add": "add_", "sub": "sub_", "mul": "mul_", "truediv": "div_", "floordiv": "floor_divide_",
    "mod": "remainder_", "pow": "pow_", "and": "bitwise_and_", "or": "bitwise_or_",
    "xor": "bitwise_xor_", "lshift": "bitwise_left_shift_", "rshift": "bitwise_right_shift_",
}.items():  # fmt: skip
    setattr(Value, f"__i{_name}__", _inplace_operator(_method))
setattr(Value, "__idiv__", _inplace_operator("div_"))  # noqa: B010
