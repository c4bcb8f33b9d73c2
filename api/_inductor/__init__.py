"""`torch._inductor`: torch's names for settings of its code generator."""

from __future__ import annotations

from typing import Any

from ..compile_options import MODES
from . import config

__all__ = ["config", "list_mode_options", "list_options"]


def list_mode_options(mode: str | None = None, dynamic: bool | None = None) -> dict[str, Any]:
    """list_mode_options(): what each mode changes, which is nothing."""
    known: dict[str, Any] = {name: {} for name in MODES}
    return known if mode is None else known[mode]


def list_options() -> list[str]:
    """list_options(): the names that `compile(options=...)` takes."""
    return [*config.shallow_copy_dict()]
