"""What layers share when they make their parameters and read size arguments."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import Any

from ...tracer.creation import empty
from ..parameter import Parameter


def new_parameter(size: Any, device: Any = None, dtype: Any = None) -> Parameter:
    """An uninitialised parameter; `reset_parameters` fills it."""
    return Parameter(empty(size, device=device, dtype=dtype))


def ntuple(value: Any, count: int) -> tuple[Any, ...]:
    """`value` repeated, unless it is a sequence already."""
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(value)
    return tuple(repeat(value, count))


def reverse_repeat(values: tuple[int, ...], count: int) -> list[int]:
    """Padding per dimension in the order `pad` wants: last dimension first, both sides."""
    return [value for value in reversed(values) for _ in range(count)]
