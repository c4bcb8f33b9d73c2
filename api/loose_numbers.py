"""Plain numbers for run-time numbers that a recorded body left where others see them.

While recording, a float argument is a `RunTimeNumber`. A body may put it, or what it computes of
it, into an attribute, a list, a closure: after the recording there must be floats.
"""

from __future__ import annotations

import gc
import types
import weakref
from typing import Any

from .tracer.scalars import RunTimeNumber

Loose = list[tuple["weakref.ref[RunTimeNumber]", Any]]  # numbers, and what stands for each


def replace_loose(numbers: Loose) -> None:
    """Replaces those that somebody still holds, in what can be changed."""
    alive = {id(number): value for reference, value in numbers
             if (number := reference()) is not None}  # fmt: skip
    if not alive:
        return
    held = [number for reference, _ in numbers if (number := reference()) is not None]
    tuples = {}
    for holder in gc.get_referrers(*held):
        if type(holder) is tuple:
            tuples[id(holder)] = tuple(alive.get(id(item), item) for item in holder)
        elif holder is not held:
            put(holder, alive)
    kept = [holder for holder in gc.get_referrers(*held) if id(holder) in tuples]
    for holder in gc.get_referrers(*kept) if kept else ():
        if holder is not kept:
            put(holder, tuples)


def put(holder: Any, values: dict[int, Any]) -> None:
    """Replaces items of a container, attributes of an object, or the value of a cell."""
    if type(holder) is list:
        holder[:] = [values.get(id(item), item) for item in holder]
    elif isinstance(holder, dict):
        for name, item in dict(holder).items():
            if id(item) in values:
                holder[name] = values[id(item)]
    elif isinstance(holder, types.CellType):
        holder.cell_contents = values.get(id(holder.cell_contents), holder.cell_contents)
    elif not isinstance(holder, type) and type(getattr(holder, "__dict__", None)) is dict:
        put(holder.__dict__, values)  # where Python keeps attributes without a dict
