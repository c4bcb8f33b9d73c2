"""The parameters of a function, from its code object.

`inspect.signature` costs more than defining the op it is asked for; importing the package asks two
thousand times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def unwrapped(function: Callable[..., Any]) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Positional and keyword-only parameters, in order; not `*args` and `**kwargs`."""
    code = unwrapped(function).__code__
    return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def positional_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The parameters that may be given by position, in order; not `*args`."""
    code = unwrapped(function).__code__
    return tuple(code.co_varnames[: code.co_argcount])


def keyword_only(function: Callable[..., Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Keyword-only parameters, and the defaults of those that have one."""
    inner = unwrapped(function)
    code = inner.__code__
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return tuple(names), dict(inner.__kwdefaults__ or {})
