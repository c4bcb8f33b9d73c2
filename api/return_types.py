"""`torch.return_types`: the classes of named results, `torch.return_types.max` and so on."""

from __future__ import annotations

from typing import Any

from .ir.ops.results import class_titled


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return class_titled(name)
