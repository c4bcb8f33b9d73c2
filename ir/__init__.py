"""The op catalogue, the SSA graph and everything that transforms it."""

from typing import Any


def __getattr__(name: str) -> Any:
    # imported when first used: the parser needs the catalogue, which imports this package
    if name == "parse":
        from .parser import parse

        return parse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
