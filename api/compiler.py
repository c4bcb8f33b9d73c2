"""`torch.compiler`: questions and settings of compilation under torch's names."""

from __future__ import annotations

from typing import Any

from .compiling import compile, is_compiling

__all__ = ["assume_constant_result", "compile", "disable", "is_compiling", "is_dynamo_compiling",
           "list_backends", "reset"]  # fmt: skip

is_dynamo_compiling = is_compiling


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """disable(fn): the function itself; what cannot be compiled runs eagerly by itself."""
    return (lambda function: function) if fn is None else fn


def assume_constant_result(fn: Any) -> Any:
    """The function itself: what it reads is guarded anyway."""
    return fn


def reset() -> None:
    """Nothing to do: compiled functions keep their own records."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """None by name: there is one backend."""
    return []
