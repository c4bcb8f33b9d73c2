"""Nested containers of tensors: flattened to leaves and a structure, and back.

Tuples, named tuples, lists, dicts, dataclasses and sparse tensors are containers, with the
attributes that dicts and dataclasses may have besides; everything else is a leaf.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator
from typing import Any

from .tracer.sparse import SparseTensor


def names_and_members(value: Any) -> tuple[Any, list[Any]] | None:
    """What a container calls its members, if it does, and the members; None of a leaf."""
    kind = type(value)
    if kind is tuple or kind is list or (isinstance(value, tuple) and hasattr(value, "_fields")):
        return None, list(value)
    if kind is dict:
        return tuple(value), list(value.values())
    if isinstance(value, dict) and not isinstance(value, collections.defaultdict):
        more = vars(value) if hasattr(value, "__dict__") else {}
        return (tuple(value), *more), [*value.values(), *more.values()]
    if kind is SparseTensor:
        return value.outline(), [value._indices(), value._values()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        items.update(getattr(value, "__dict__", {}))
        return tuple(items), list(items.values())
    return None


def flatten(value: Any, leaves: list[Any]) -> Any:
    """Appends the leaves of `value`; returns a hashable description of its structure."""
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, *[flatten(item, leaves) for item in value])
    if kind is dict:
        return (dict, tuple(value), *[flatten(item, leaves) for item in value.values()])
    found = names_and_members(value)
    if found is None:
        leaves.append(value)
        return None
    names, items = found
    parts = [flatten(item, leaves) for item in items]
    return (kind, *parts) if names is None else (kind, names, *parts)


def unflatten(structure: Any, leaves: Any) -> Any:
    """Rebuilds a value from its structure; `leaves` is an iterator."""
    if structure is None:
        return next(leaves)
    names, parts = split(structure)
    return rebuild(structure[0], names, [unflatten(part, leaves) for part in parts])


def split(structure: Any) -> tuple[Any, tuple[Any, ...]]:
    """The names of a structure's members, if they have any, and its parts."""
    kind, *rest = structure
    return (None, tuple(rest)) if issubclass(kind, tuple | list) else (rest[0], tuple(rest[1:]))


def rebuild(kind: Any, names: Any, items: list[Any]) -> Any:
    """A container of its members."""
    if kind is dict:
        return dict(zip(names, items))
    if names is None:
        return kind(*items) if hasattr(kind, "_make") else kind(items)
    if kind is SparseTensor:
        return SparseTensor(*items, *names)
    made = kind.__new__(kind)
    if issubclass(kind, dict):
        keys, *names = names
        fill = collections.OrderedDict if issubclass(kind, collections.OrderedDict) else dict
        fill.update(made, zip(keys, items))
        items = items[len(keys) :]
    for name, item in zip(names, items):
        object.__setattr__(made, name, item)
    return made


def containers_in(value: Any) -> Iterator[Any]:
    """The containers of a nesting that can be changed."""
    found = names_and_members(value)
    if found is None:
        return
    if not isinstance(value, tuple):
        yield value
    for item in found[1]:
        yield from containers_in(item)
