"""`repr` of a tensor: torch's text, from the facts `printing` needs."""

from __future__ import annotations

from typing import Any

from ..ir.types import default_dtype
from .convert import escape
from .printing import format_tensor


def tensor_text(tensor: Any) -> str:
    """What `print(tensor)` shows."""
    escape(tensor, "printing")
    node = tensor.grad_fn
    return format_tensor(
        tensor._values_array(),
        dtype=tensor.dtype.name,
        default_dtype=default_dtype().name,
        requires_grad=tensor._requires_grad,
        grad_fn=None if node is None else type(node).__name__,
    )
