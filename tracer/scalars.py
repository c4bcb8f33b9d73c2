"""Python floats as run-time values while recording.

A float argument or hyper-parameter must not be frozen into a trace. While recording it is a
`RunTimeNumber`: a 0-d float64 tensor that promotes as a Python number does (it never widens a
tensor's dtype). Comparing one with a number gives a plain bool and leaves a guard; asking for its
value (`float()`, `math.sqrt`) makes the trace depend on that value.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from ..ir.bind import notify
from ..ir.dims import Dim
from ..ir.op import TABLE
from ..ir.places import is_ours
from ..ir.types import float64
from .tensor import Tensor

OF_FLOATS = frozenset(dir(float))


def caller_file() -> str:
    """The file of the code that asks for an attribute."""
    return sys._getframe(2).f_code.co_filename


class RunTimeNumber(Tensor):
    """A number known only at run time; see the module's text."""

    wrapped = True

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """isinstance(lr, float) is as true while recording as it ever is."""
        return float

    def __getattribute__(self, name: str) -> Any:
        """Users find what floats have, and no more: `getattr(lr, "data", lr)` may ask."""
        if name[0] != "_" and name not in OF_FLOATS and not is_ours(caller_file()):
            raise AttributeError
        return super().__getattribute__(name)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'float' object has no attribute '{name}'", name=name, obj=self)

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("'float' object is not subscriptable")

    def __len__(self) -> int:
        raise TypeError("object of type 'float' has no len()")

    def __iter__(self) -> Any:
        raise TypeError("'float' object is not iterable")

    def __hash__(self) -> int:
        return hash(float(self))

    def _compare(self, other: Any, how: Any) -> Any:
        if is_tensor(other):
            return NotImplemented
        if isinstance(other, np.ndarray | np.generic):
            return how(float(self), other)
        mine = self._array.item()
        theirs = other._array.item() if isinstance(other, RunTimeNumber) else other
        outcome = bool(how(mine, theirs))
        notify("compared", self, how, other, outcome)
        return outcome

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, operator.eq)

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, operator.ne)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, operator.lt)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, operator.le)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, operator.gt)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, operator.ge)

    def __pow__(self, other: Any) -> Any:
        return super().__pow__(other) if is_tensor(other) else power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return super().__rpow__(other) if is_tensor(other) else power(other, self)

    def __mul__(self, other: Any) -> Any:
        return NotImplemented if is_tensor(other) else super().__mul__(other)

    def __truediv__(self, other: Any) -> Any:
        if is_tensor(other):
            return NotImplemented
        return super().__truediv__(divisor(other, "float division by zero"))

    def __rtruediv__(self, other: Any) -> Any:
        other = divided(other, self, "float division by zero")
        # not the product with a reciprocal that tensors make of it: numbers divide exactly
        return TABLE["div"](other, self) if type(other) in NUMBERS else super().__rtruediv__(other)

    def __floordiv__(self, other: Any) -> Any:
        return super().__floordiv__(divisor(other, "float floor division by zero"))

    def __rfloordiv__(self, other: Any) -> Any:
        return super().__rfloordiv__(divided(other, self, "float floor division by zero"))

    def __mod__(self, other: Any) -> Any:
        return super().__mod__(divisor(other, "float modulo"))

    def __rmod__(self, other: Any) -> Any:
        return super().__rmod__(divided(other, self, "float modulo"))

    def __divmod__(self, other: Any) -> Any:
        if type(other) not in NUMBERS and not isinstance(other, RunTimeNumber):
            return divmod(float(self), other)
        other = divisor(other, "float divmod()")
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        if type(other) not in NUMBERS:
            return divmod(other, float(self))
        other = divided(other, self, "float divmod()")
        return other // self, other % self

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(float(self))

    __str__ = __repr__

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self), digits)

    def __trunc__(self) -> int:
        return int(float(self))

    def __floor__(self) -> int:
        return math.floor(float(self))

    def __ceil__(self) -> int:
        return math.ceil(float(self))

    def __bool__(self) -> bool:
        return bool(self._compare(0.0, operator.ne))

    # what floats have and tensors have not, or not so

    @property
    def real(self) -> Any:
        return self

    @property
    def imag(self) -> float:
        return 0.0

    def conjugate(self) -> Any:
        return self

    def is_integer(self) -> bool:
        return float(self).is_integer()

    def as_integer_ratio(self) -> tuple[int, int]:
        return float(self).as_integer_ratio()

    def hex(self) -> str:
        return float(self).hex()


def _with_others(name: str, how: Any, turned: bool) -> Any:
    """An operator beside what is no tensor, float or int: of the float, as Python has it.

    Python asks the number first where a tensor is on its left: the tensor answers.
    """
    inner, of_tensor = getattr(RunTimeNumber, name), getattr(Tensor, name.replace("__r", "__"))

    def method(self: RunTimeNumber, other: Any) -> Any:
        if turned and is_tensor(other):
            return of_tensor(other, self)
        if type(other) in NUMBERS or isinstance(other, Tensor | Dim):
            return inner(self, other)
        return how(other, float(self)) if turned else how(float(self), other)

    return method


def _refused(how: Any, turned: bool) -> Any:
    """An operator that floats have not: Python says so."""
    return lambda self, other: how(other, float(self)) if turned else how(float(self), other)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    _how = getattr(operator, _name)
    for _turned in (False, True):
        _method = f"__{'r' * _turned}{_name}__"
        setattr(RunTimeNumber, _method, _with_others(_method, _how, _turned))
for _name in ("matmul", "lshift", "rshift", "and_", "or_", "xor"):
    _how, _name = getattr(operator, _name), _name.strip("_")
    setattr(RunTimeNumber, f"__{_name}__", _refused(_how, False))
    setattr(RunTimeNumber, f"__r{_name}__", _refused(_how, True))
for _name in [name for name in dir(Tensor) if name.startswith("__i") and (
        f"__{name[3:]}" in dir(RunTimeNumber))]:  # fmt: skip
    # `s *= 2` gives another number
    setattr(RunTimeNumber, _name, lambda self, other: NotImplemented)

NUMBERS = (int, float, bool)


def is_tensor(value: Any) -> bool:
    """No number: it knows itself what a number on its left does to it."""
    return isinstance(value, Tensor) and not isinstance(value, RunTimeNumber)


def divisor(value: Any, message: str) -> Any:
    """A number that a number is divided by: as in Python it must not be zero."""
    if value == 0 if type(value) in NUMBERS else (
            isinstance(value, RunTimeNumber) and is_zero(value)):  # fmt: skip
        raise ZeroDivisionError(message)
    return value


def is_zero(number: RunTimeNumber) -> bool:
    """Of a number that divides another; the recorder sees to it that it stays so."""
    outcome = bool(number._array.item() == 0)
    notify("divides", number, operator.eq, outcome)
    return outcome


def power(base: Any, exponent: Any) -> Any:
    """`base ** exponent` of numbers, at least one of them known at run time only."""
    plain = value_of(base) ** value_of(exponent)  # or an error
    if isinstance(plain, complex):
        return float(base) ** float(exponent)
    if type(exponent) in NUMBERS:
        result = TABLE["pow_scalar"](base, exponent=exponent)
    else:
        result = TABLE["pow_tensor"](base, exponent)
    notify("raised", result, base, exponent)
    return result


def value_of(number: Any) -> Any:
    """A number as it is now, without a word to the recorder."""
    return number._array.item() if isinstance(number, RunTimeNumber) else number


def divided(value: Any, by: RunTimeNumber, message: str) -> Any:
    """A number, or a tensor, that a run-time number divides."""
    if type(value) in NUMBERS:
        divisor(by, message)
    return value


def with_plain_numbers(attrs: dict[str, Any]) -> dict[str, Any]:
    """Attributes without run-time numbers: those are asked for their value."""
    return {name: plain_number(value) for name, value in attrs.items()}


def plain_number(value: Any) -> Any:
    if isinstance(value, RunTimeNumber):
        return float(value)
    return type(value)(map(plain_number, value)) if type(value) in (tuple, list) else value


def run_time_number(value: float) -> RunTimeNumber:
    """`value` as a run-time number."""
    return RunTimeNumber._wrap(np.asarray(float(value), np.float64), float64)
