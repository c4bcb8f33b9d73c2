"""What mixed precision (`torch.autocast`) computes in float32: functions that say so here.

Products take the lower precision, which is told by their ops (api/amp). Functions that check
dtypes, or are made of several ops, have their 16-bit arguments cast before they start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..bind import casting
from ..op import TABLE
from ..types import float32
from ..value import Value


def full_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a function that autocast runs in float32."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if casting():
            args = tuple(map(raised, args))
            kwargs = {name: raised(value) for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return call


def raised(value: Any) -> Any:
    """A 16-bit tensor as float32; anything else as it is."""
    if isinstance(value, Value) and value.dtype.is_floating_point and value.dtype.itemsize < 4:
        return TABLE["cast"](value, dtype=float32)
    return value
