"""Plain numbers for what stood for them in a recorded body, where it left that for others to see.

While recording, a float argument is a `RunTimeNumber`, a size may be a `Dim`. A body may put it, or
what it computes of it, into an attribute, a list, a closure: after the recording there must be
floats and ints.
"""

from __future__ import annotations

import collections
import types
import weakref
from typing import Any

from .tracer.referrers import referrers

Loose = list[tuple["weakref.ref[Any]", Any]]  # numbers, and what stands for each
MAX_DEPTH = 8  # of tuples in tuples


def replace_loose(numbers: Loose) -> None:
    """Replaces those that somebody still holds, in what can be changed."""
    held = [number for reference, _ in numbers if (number := reference()) is not None]
    values = {id(number): value for reference, value in numbers
              if (number := reference()) is not None}  # fmt: skip
    number = None
    for _ in range(MAX_DEPTH):
        if not held:
            return
        fixed = []
        for holder in referrers(held):
            if type(holder) is tuple or type(holder) is frozenset:
                fixed.append(holder)
            elif holder is not fixed:
                put(holder, values)
        # in their place others are put that are like them but for the numbers
        values = {id(holder): type(holder)(values.get(id(item), item) for item in holder)
                  for holder in fixed}  # fmt: skip
        held = fixed


def put(holder: Any, values: dict[int, Any]) -> None:
    """Replaces items of a container, attributes of an object, or the value of a cell."""
    if type(holder) is list:
        holder[:] = [values.get(id(item), item) for item in holder]
    elif isinstance(holder, collections.deque):
        for k, item in enumerate(holder):
            holder[k] = values.get(id(item), item)
    elif isinstance(holder, set):
        for item in [item for item in holder if id(item) in values]:
            holder.discard(item)
            holder.add(values[id(item)])
    elif isinstance(holder, dict):
        for name, item in dict(holder).items():
            if id(item) in values:
                holder[name] = values[id(item)]
        if any(id(name) in values for name in holder):
            pairs = [(values.get(id(name), name), item) for name, item in holder.items()]
            holder.clear()
            holder.update(pairs)
    elif isinstance(holder, BaseException):
        holder.args = values.get(id(holder.args), holder.args)
    elif isinstance(holder, types.CellType):
        holder.cell_contents = values.get(id(holder.cell_contents), holder.cell_contents)
    elif not isinstance(holder, type) and type(getattr(holder, "__dict__", None)) is dict:
        put(holder.__dict__, values)  # where Python keeps attributes without a dict
