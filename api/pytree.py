"""Nested containers of tensors: flattened to leaves and a structure, and back.

Tuples, named tuples, lists, dicts and dataclasses are containers; everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
from typing import Any


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Appends the leaves of `value`; returns a hashable description of its structure."""
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, *[flatten(item, leaves) for item in value])
    if kind is dict:
        return (dict, tuple(value), *[flatten(item, leaves) for item in value.values()])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (kind, *[flatten(item, leaves) for item in value])
    if isinstance(value, dict):
        return (kind, tuple(value), *[flatten(item, leaves) for item in value.values()])
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = tuple(f.name for f in dataclasses.fields(value))
        return (kind, names, *[flatten(getattr(value, n), leaves) for n in names])
    leaves.append(value)
    return None


def unflatten(structure: Any, leaves: Any) -> Any:
    """Rebuilds a value from its structure; `leaves` is an iterator."""
    if structure is None:
        return next(leaves)
    kind, *rest = structure
    if kind is tuple or kind is list:
        return kind(unflatten(part, leaves) for part in rest)
    if issubclass(kind, tuple):
        items = [unflatten(part, leaves) for part in rest]
        return kind(*items) if hasattr(kind, "_make") else kind(items)
    names, *parts = rest
    items = [unflatten(part, leaves) for part in parts]
    if issubclass(kind, dict):
        return kind(zip(names, items))
    made = object.__new__(kind)
    for name, item in zip(names, items):
        object.__setattr__(made, name, item)
    return made
