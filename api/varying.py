"""Floats that a body finds at places of its own, and that change from call to call.

Note [Varying floats]
    A float in a closure cell, a global variable, an attribute or a container is part of what the
    first trace relies on. Once it was seen to change, it is data, as a float argument is: while
    the body is recorded again a run-time number lies at its place, and replays read it anew. Where
    Python looks at the value, it is relied on after all, one trace for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .plain import same


class Varying:
    """Which floats vary; those whose value Python was seen to look at never do."""

    def __init__(self) -> None:
        self.names: dict[int, set[Any]] = {}  # by the id of what holds them
        self.fixed: set[tuple[int, Any]] = set()
        self.reckons = True  # may what `item()` gives be data? See Note [Numbers of tensors]

    def at(self, owner: Any) -> Any:
        """The names under which `owner` holds some."""
        return self.names.get(id(owner), ())

    def among(self, floats: list[tuple[Any, float]]) -> dict[tuple[int, Any], tuple[Any, float]]:
        """Those of `floats`, places and values, that vary, by what tells places apart."""
        return {identity(place): (place, value) for place, value in floats if self.has(place)}

    def has(self, place: Any) -> bool:
        return place.name in self.at(place.owner)

    def learn(self, traces: Any) -> None:
        """Looks for floats that are not what traces rely on."""
        for trace in traces:
            for place, value in trace.environment.floats:
                now = place.read()
                changed = type(now) is float and not same(now, value)
                if changed and identity(place) not in self.fixed:
                    self.names.setdefault(id(place.owner), set()).add(place.name)

    def fix(self, places: Any) -> None:
        """Python looks at these values."""
        for place in places:
            self.fixed.add(identity(place))
            self.names[id(place.owner)].discard(place.name)


def identity(place: Any) -> tuple[int, Any]:
    return id(place.owner), place.name


@contextmanager
def numbers_at(numbers: list[tuple[Any, Any, float]]) -> Iterator[list[str]]:
    """Run-time numbers lie at their places in the block; gives what was found to be changed."""
    changed: list[str] = []
    for place, number, _ in numbers:
        place.write(number)
    try:
        yield changed
    finally:
        for place, number, value in numbers:
            if place.read() is number:
                place.write(value)
            else:
                changed.append(f"{place.text} changed")
