"""What a base class says of a method that its subclasses write."""

from __future__ import annotations

from typing import Any


def unwritten(owner: Any, method: str) -> NotImplementedError:
    """The error of a method that the class of `owner` lacks."""
    kind = type(owner).__name__
    return NotImplementedError(f"{kind} does not implement {method}; define it in the class")


__all__ = ["unwritten"]
