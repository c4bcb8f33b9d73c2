"""Python floats as run-time values while recording.

A float argument or hyper-parameter must not be frozen into a trace. While recording it is a
`RunTimeNumber`: a 0-d float64 tensor that promotes as a Python number does (it never widens a
tensor's dtype). Comparing one with a number gives a plain bool and leaves a guard; asking for its
value (`float()`, `math.sqrt`) makes the trace depend on that value.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ..ir.bind import notify
from ..ir.types import float64
from .tensor import Tensor


class RunTimeNumber(Tensor):
    """A number known only at run time; see the module's text."""

    wrapped = True

    @property
    def __class__(self) -> type:  # type: ignore[override]
        """isinstance(lr, float) is as true while recording as it ever is."""
        return float

    def __hash__(self) -> int:
        return id(self)

    def _compare(self, other: Any, how: Any) -> Any:
        if isinstance(other, Tensor) and not isinstance(other, RunTimeNumber):
            return NotImplemented
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
