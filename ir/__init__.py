"""The op catalogue, the SSA graph and everything that transforms it."""

from importlib import import_module
from typing import Any

# imported when first used: all but the graph need the catalogue, which imports this package
PUBLIC = {
    "Graph": "graph",
    "ParseError": "parser",
    "VerifyError": "verify",
    "grad": "public",
    "instance_for": "instantiate",
    "parse": "parser",
    "run": "public",
    "trace": "public",
}
__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{PUBLIC[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
