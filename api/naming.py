"""Classes belong to the modules where users find them: so they print, and there pickles look."""

from __future__ import annotations


def found_in(module: str, *classes: type) -> None:
    """Says of classes that users find them in `module`."""
    for kind in classes:
        kind.__module__ = module
