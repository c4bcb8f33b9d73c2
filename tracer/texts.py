"""Functions that are written as text."""

from __future__ import annotations

from functools import cache
from types import CodeType


@cache
def code_of(text: str, file: str) -> CodeType:
    """The code of the one function that a text defines; `file` is its name in tracebacks."""
    (code,) = (c for c in compile(text, file, "exec").co_consts if isinstance(c, CodeType))
    return code
