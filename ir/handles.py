"""Objects of the running process that graphs refer to: the generators that draws read.

The text form names such an object by a number. `parse` finds it again while the object lives; in
another process, or after its end, the text is refused with the place where it is named.
"""

from __future__ import annotations

import weakref
from itertools import count
from typing import Any

_numbers = count(1)
_by_number: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
_number_of: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def handle_of(thing: Any) -> int:
    """The number of an object, given when first asked for. TypeError if it can't have one."""
    found = _number_of.get(thing)
    if found is None:
        found = _number_of[thing] = next(_numbers)
        _by_number[found] = thing
    return found


def object_of(number: int) -> Any:
    """The object with that number, or None."""
    return _by_number.get(number)
