"""How torch's messages name a value, and the indentation of nested text."""

from __future__ import annotations

import inspect
from typing import Any

from ...tracer.convert import type_name
from ...tracer.tensor import Tensor


def typename(obj: Any) -> str:
    """`torch.FloatTensor` for a tensor; module and qualified name of the type for the rest."""
    if isinstance(obj, Tensor):
        return f"torch.{type_name(obj.dtype)}"
    if hasattr(obj, "__qualname__") and (inspect.isclass(obj) or inspect.isroutine(obj)):
        module, name = getattr(obj, "__module__", "") or "", obj.__qualname__
    else:
        module, name = type(obj).__module__ or "", type(obj).__qualname__
    return name if module in ("", "builtins") else f"{module}.{name}"


def indented(text: str, spaces: int = 2) -> str:
    """`text` with all lines but the first moved right; blank lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def shown(module: Any, *names: str) -> str:
    """Attributes as an `extra_repr`: "dim=1, eps=1e-08"."""
    return ", ".join(f"{name}={getattr(module, name)}" for name in names)
