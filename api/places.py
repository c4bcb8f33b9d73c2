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

    def __init__(self, cell: Any, name: str):
        self.cell, self.name = cell, name

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return GONE

    def words(self, watch: Any) -> Any:
        return watch.of_cell(self.cell)


class Entry:
    """An entry of a dict: a global variable, an attribute, an item."""

    def __init__(self, space: dict[Any, Any], name: Any, covered: bool):
        self.space, self.name = space, name
        self.covered = covered  # is the whole dict watched, or told of by epochs?

    def read(self) -> Any:
        return self.space.get(self.name, GONE)

    def words(self, watch: Any) -> Any:
        return [] if self.covered else watch.of_entry(self.space, self.name)


class Item:
    """An item of a list that is watched."""

    def __init__(self, items: list[Any], name: int):
        self.items, self.name = items, name

    def read(self) -> Any:
        return self.items[self.name] if self.name < len(self.items) else GONE

    def words(self, watch: Any) -> Any:
        return []


class Findings:
    """What was found at places, and whether it still is there."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, Any]] = []
        self.tensors: dict[int, Any] = {}  # id of a tensor -> the first place it was found at

    def add(self, place: Any, value: Any) -> None:
        self.found.append((place, value))
        if isinstance(value, Tensor):
            self.tensors.setdefault(id(value), place)

    def change(self) -> str | None:
        """What is not as it was."""
        for place, before in self.found:
            now = place.read()
            if now is before:
                continue
            if not (isinstance(before, Tensor) and isinstance(now, Tensor)):
                return f"{place.name} is another object now"
        return None

    def words(self, watch: Any) -> Any:
        return [word for place, _ in self.found for word in place.words(watch)]
