"""Functions that make tensors on a device: the CPU, or "meta", where tensors have no values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .facts import WHERE, device


def is_meta(where: Any) -> bool:
    """Does an argument `device` name the device "meta"?"""
    if isinstance(where, str):
        return where.startswith("meta")
    return isinstance(where, device) and where.type == "meta"


def placed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result lies on the device that it is given, or on that of the block."""

    @functools.wraps(function)
    def make(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        if device is None:
            if not WHERE or kwargs.get("out") is not None:
                return function(*args, **kwargs)
            device = WHERE[-1]
        if not is_meta(device):
            return function(*args, device=device, **kwargs)
        from .meta import made_without_values

        return made_without_values(function, args, kwargs)

    return make
