"""Places where a body finds values: closure cells, entries of dicts, items of lists.

What lies there is read again at each call: objects must be the same ones; a tensor may be another
one of its type (`trainer.batch = ...`), for it is an input like an argument.
"""

from __future__ import annotations

from typing import Any

from .tracer.tensor import Tensor

GONE = object()


class Cell:
    """A variable of a closure."""

    covered = False  # is it watched as part of something else, or told of by epochs?
    writable = True  # can another value lie there for a while?

    def __init__(self, cell: Any, name: str):
        self.cell = self.owner = cell
        self.name = name
        self.text = f"closure variable {name}"

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return GONE

    def write(self, value: Any) -> None:
        self.cell.cell_contents = value

    def words(self, watch: Any) -> Any:
        return watch.of_cell(self.cell)


class Entry:
    """An entry of a dict: a global variable, an attribute, an item."""

    def __init__(self, space: dict[Any, Any], name: Any, covered: bool, writable: bool = True):
        self.space = self.owner = space
        self.name, self.covered, self.writable = name, covered, writable
        self.text = f"global {name}"

    def read(self) -> Any:
        return self.space.get(self.name, GONE)

    def write(self, value: Any) -> None:
        self.space[self.name] = value

    def words(self, watch: Any) -> Any:
        return [] if self.covered else watch.of_entry(self.space, self.name)


class Item:
    """An item of a list that is watched."""

    covered = writable = True

    def __init__(self, items: list[Any], name: int):
        self.items = self.owner = items
        self.name, self.text = name, f"item {name} of a list"

    def read(self) -> Any:
        return self.items[self.name] if self.name < len(self.items) else GONE

    def write(self, value: Any) -> None:
        self.items[self.name] = value

    def words(self, watch: Any) -> Any:
        return []


class Slot:
    """An attribute that an object of the user's has in a slot."""

    covered = False
    writable = True

    def __init__(self, owner: Any, name: str):
        self.owner, self.name = owner, name
        self.text = f"{type(owner).__name__}.{name}"

    def read(self) -> Any:
        return getattr(self.owner, self.name, GONE)

    def write(self, value: Any) -> None:
        setattr(self.owner, self.name, value)

    def words(self, watch: Any) -> Any:
        return watch.of_slot(self.owner, self.name)


class Findings:
    """What was found at places, and whether it still is there."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Any]] = []
        self.tensors: dict[int, Any] = {}  # id of a tensor -> the first place it was found at
        self.same: list[tuple[Any, Any]] = []  # other places of these, and the first
        self.bound: set[int] = set()  # ids of those that are not read anew: modules have them

    def add(self, place: Any, value: Any) -> None:
        self.found.append((place, value))
        if isinstance(value, Tensor):
            first = self.tensors.setdefault(id(value), place)
            if first is not place:
                self.same.append((place, first))

    def among(self, chosen: Any) -> Findings:
        """Those at places of a kind."""
        some = Findings()
        some.found = [(place, value) for place, value in self.found if chosen(place)]
        some.bound = self.bound
        return some

    def change(self) -> str | None:
        """What is not as it was."""
        for place, before in self.found:
            now = place.read()
            if now is before:
                continue
            read_anew = isinstance(before, Tensor) and id(before) not in self.bound
            if not read_anew or type(now) is not type(before):
                return f"{place.name} is another object now"
        for place, first in self.same:  # what was one tensor is one input
            if place.read() is not first.read():
                return f"{place.name} and {first.name} are no longer the same tensor"
        return None

    def replaced(self) -> list[tuple[Any, Any]]:
        """Where another object lies now, be it a tensor, and which."""
        found = [(place, before, place.read()) for place, before in self.found]
        return [(place, now) for place, before, now in found if now is not before]

    def words(self, watch: Any) -> Any:
        return [word for place, _ in self.found for word in place.words(watch)]
