"""Faults of the compiler itself: one warning, or the error where that is wanted."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from .ir.places import user_level


def is_strict() -> bool:
    """Are faults of the compiler errors, where they happen?"""
    return os.environ.get("WENGERT_STRICT") == "1"


def warn_of_fault(compiled: Any, error: Exception) -> None:
    """The compiled function runs eagerly; the user is told once."""
    if is_strict():
        raise error
    if compiled.warned:
        return
    compiled.warned = True
    warnings.warn(
        f"W001: wengert could not compile {compiled.name} ({type(error).__name__}: {error}); it "
        "runs eagerly, so results are right. Make a bug report with\n"
        f"    {sys.executable} -m wengert bug {' '.join(sys.argv) or 'SCRIPT'}\n"
        "WENGERT_STRICT=1 raises the error instead.",
        RuntimeWarning,
        stacklevel=user_level(),
    )
