"""`repr` of a tensor: torch's text, from the facts `printing` needs."""

from __future__ import annotations

from typing import Any

from ..ir.types import default_dtype
from .convert import escape
from .printing import format_tensor
from .tensor import PLAIN

# While dual tensors live: gives the value of a tensor without its tangent, and the tangent.
unpack: Any = None


def tensor_text(tensor: Any) -> str:
    """What `print(tensor)` shows."""
    tangent = None
    if unpack is not None:
        tensor, tangent = unpack(tensor)
    text = _text(tensor, None if tangent is None else f"{tangent}")  # a number, if it has no dims
    return f"Parameter({text})" if tensor.__dict__.get("_is_param") else text


def _text(tensor: Any, tangent: str | None) -> str:
    escape(tensor, "printing")
    try:
        node = tensor.grad_fn
        name = None if node is None else type(node).__name__
    except RuntimeError:  # a view whose base was written in a way that forbids using it
        name = "Invalid"
    return format_tensor(
        tensor._values_array(),
        dtype=tensor.dtype.name,
        default_dtype=default_dtype().name,
        requires_grad=tensor.requires_grad,
        grad_fn=name,
        class_name="tensor" if type(tensor) in PLAIN else type(tensor).__name__,
        tangent=tangent,
    )
