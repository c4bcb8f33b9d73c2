"""The arguments of a recorded call: floats replaced by run-time numbers, changes noticed.

The body gets the caller's own containers; only those that hold a float are made anew. What it
changes in them (`batch["loss"] = loss`) must reach the caller, and replay could not do it. Where
it hands one back or keeps it, that must be the caller's own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from .loose_numbers import put
from .pytree import containers_in, flatten, names_and_members, rebuild, split
from .tracer.referrers import referrers
from .tracer.scalars import RunTimeNumber


class GivenArguments:
    """`call` is what the body is called with; see the module's text."""

    def __init__(self, call: tuple[Any, Any], leaves: list[Any]):
        self.given = call
        self.twins: list[tuple[Any, Any]] = []  # the caller's containers, and ours in their place
        self.call = self.replaced(call, iter(leaves))
        self.before = self.state()

    def replaced(self, value: Any, leaves: Iterator[Any]) -> Any:
        """`value` with its leaves replaced; itself where they are the same."""
        found = names_and_members(value)
        if found is None:
            return next(leaves)
        items = found[1]
        new = [self.replaced(item, leaves) for item in items]
        if all(a is b for a, b in zip(items, new)):
            return value
        made = remade(value, new)
        self.twins.append((value, made))
        return made

    def handed_back(self, value: Any) -> Any:
        """What the body returns, with the caller's own containers."""
        for own, made in self.twins:
            if value is made:
                return own
        found = names_and_members(value)
        if found is None or not self.twins:
            return value
        new = [self.handed_back(item) for item in found[1]]
        changed = {id(a): b for a, b in zip(found[1], new) if a is not b}
        if changed and isinstance(value, tuple):
            return remade(value, new)
        if changed:
            put(value, changed)
        return value

    def give_back(self) -> None:
        """Whoever keeps a container of ours gets the caller's."""
        self.call = None
        owners = {id(made): value for value, made in self.twins}
        twins = [made for _, made in self.twins]
        self.twins, kept, made = [], [], None
        while twins:
            made = twins.pop()  # those around others come first, and go
            if sys.getrefcount(made) > 2:  # the variable here, and the argument of the count
                kept.append(made)
        for holder in referrers(kept) if kept else ():
            put(holder, owners)

    def container_ids(self) -> set[int]:
        """The containers that can be changed, by id."""
        return {id(c) for value in (self.given, self.call) for c in containers_in(value)}

    def state(self) -> Any:
        """What the containers hold now."""
        leaves: list[Any] = []
        structures = [
            flatten(self.given, leaves),
            *(flatten(made, leaves) for _, made in self.twins),
        ]
        return structures, leaves

    def were_changed(self) -> bool:
        """Did the body put something else into a container? If so, the caller gets it."""
        structures, leaves = self.state()
        if structures == self.before[0] and all(a is b for a, b in zip(leaves, self.before[1])):
            return False
        for value, made in self.twins:
            fill(value, made)
        return True


def remade(value: Any, items: list[Any]) -> Any:
    """A container like `value` with other items."""
    return rebuild(type(value), names_and_members(value)[0], items)


def fill(value: Any, made: Any) -> None:
    """Gives the caller's container what ours holds, with plain numbers."""
    if isinstance(value, dict):
        items = {k: plain(v) for k, v in made.items()}
        value.clear()
        value.update(items)
    elif isinstance(value, list):
        value[:] = map(plain, made)
    elif not isinstance(value, tuple):
        for name, item in vars(made).items():
            object.__setattr__(value, name, plain(item))


def plain(value: Any) -> Any:
    return value._array.item() if isinstance(value, RunTimeNumber) else value


def leaf_names(function: Any, structure: Any, leaves: list[Any]) -> list[str]:
    """Names of the arguments' leaves: the parameter's name, numbered within containers."""
    args, kwargs = structure[1], structure[2]
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    parts = [(parameters[k] if k < len(parameters) else f"arg{k}", part)
             for k, part in enumerate(args[1:])]  # fmt: skip
    parts += list(zip(kwargs[1], kwargs[2:]))
    for name, part in parts:
        count = leaf_count(part)
        names += [name] if part is None else [f"{name}.{k}" for k in range(count)]
    return names


def leaf_count(structure: Any) -> int:
    return 1 if structure is None else sum(map(leaf_count, split(structure)[1]))
