"""Functions that are written as text."""

from __future__ import annotations

from functools import cache
from types import CodeType, FunctionType
from typing import Any


@cache
def code_of(text: str, file: str) -> CodeType:
    """The code of the one function that a text defines; `file` is its name in tracebacks."""
    (code,) = (c for c in compile(text, file, "exec").co_consts if isinstance(c, CodeType))
    return code


def function_of(text: str, file: str, space: dict[str, Any]) -> Any:
    """The function of a text; `space` holds the names it uses.

    Nothing is run to make it: Python ends by SIGINT if an interrupt, even one that is caught, ever
    falls into an `exec` of text.
    """
    return FunctionType(code_of(text, file), space)
