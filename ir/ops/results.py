"""Named results, torch's `return_types`: tuples with fields, e.g. `.values` and `.indices`."""

from __future__ import annotations

import operator
from typing import Any


class NamedResult(tuple[Any, ...]):
    """A tuple whose members have names; prints as torch's do."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _title = ""

    def __repr__(self) -> str:
        lines = ",\n".join(f"{name}={value!r}" for name, value in zip(self._fields, self))
        return f"torch.return_types.{self._title}(\n{lines})"

    def __reduce__(self) -> Any:
        return named_result, (" ".join((self._title, *self._fields)), tuple(self))


_CLASSES: dict[str, type[NamedResult]] = {}  # by title
_SPECS: dict[str, type[NamedResult]] = {}


def class_titled(title: str) -> type[NamedResult]:
    """The class torch.return_types.max of "max"; its fields come with its first result."""
    found = _CLASSES.get(title)
    if found is None:
        body = {"__slots__": (), "_title": title, "__module__": "torch.return_types"}
        found = _CLASSES[title] = type(title, (NamedResult,), body)
    return found


def result_class(spec: str) -> type[NamedResult]:
    """The class of "max values indices": a title and its fields."""
    found = _SPECS.get(spec)
    if found is None:
        title, *fields = spec.split()
        found = _SPECS[spec] = class_titled(title)
        found._fields = tuple(fields)
        for position, name in enumerate(fields):
            setattr(found, name, property(operator.itemgetter(position)))
    return found


def named_result(spec: str, values: Any) -> Any:
    """`values` with the names of `spec`, e.g. "max values indices"."""
    return result_class(spec)(values)
