"""Calls of compiled functions inside another interpreter: a recording, a transform, autocast.

Note [Calls inside autocast]
    A recording and the levels of `vmap` take in what the body does. `torch.autocast` around a call
    is part of what the call does: such calls are those of another compiled function, whose body
    enters autocast itself, with one for each dtype.
"""

from __future__ import annotations

from typing import Any

from .ir.bind import state
from .ir.types import DType


def call_inside(compiled: Any, args: Any, kwargs: Any) -> Any:
    """The result of a call where ops are not run at once."""
    from .amp import is_plainly_cast

    top = state.top
    if not is_plainly_cast(top):
        return compiled.function(*args, **kwargs)
    function = function_that_casts(compiled, top.dtype)
    state.top = state.marking if state.inference else state.bottom
    try:
        return function(*args, **kwargs)
    finally:
        state.top = top


def function_that_casts(compiled: Any, dtype: DType) -> Any:
    """The compiled function that enters autocast; see Note [Calls inside autocast]."""
    with compiled.lock:
        if dtype not in compiled.casting:
            body = casting_body(compiled.function, dtype)
            body.__name__ = f"{compiled.name} in autocast to {dtype.name}"
            made = type(compiled)(body, compiled.options)
            compiled.casting = {**compiled.casting, dtype: made}
        return compiled.casting[dtype]


def casting_body(function: Any, dtype: DType) -> Any:
    from .amp import autocast

    def casting(*args: Any, **kwargs: Any) -> Any:
        with autocast("cpu", dtype):
            return function(*args, **kwargs)

    casting.__wrapped__ = function  # type: ignore[attr-defined]
    return casting
