"""Plain numbers for symbolic sizes that a recorded body left where others see them."""

from __future__ import annotations

from typing import Any

from .ir.dims import is_dim, plain_values


def is_symbolic(value: Any) -> bool:
    """A Dim, or a tuple (a shape) with one in it?"""
    return is_dim(value) or (isinstance(value, tuple) and any(map(is_dim, value)))


def settle(container: Any) -> None:
    """Replaces symbolic sizes among the items of a dict or list."""
    pairs = container.items() if isinstance(container, dict) else enumerate(container)
    for name, item in [(k, v) for k, v in pairs if is_symbolic(v)]:
        container[name] = plain_values(item)
    if isinstance(container, dict) and any(map(is_symbolic, container)):
        items = [(plain_values(name), item) for name, item in container.items()]
        container.clear()
        container.update(items)


def settle_all(value: Any) -> None:
    """Does so in all dicts and lists of a nesting."""
    if isinstance(value, dict | list):
        settle(value)
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            settle_all(item)
