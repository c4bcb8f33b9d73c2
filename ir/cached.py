"""Properties that are computed once.

`functools.cached_property` of Python 3.10 and 3.11 holds a lock for all objects of a class while it
computes. A process that is forked then, by another thread, inherits the lock and waits forever.
Here two threads may compute a value twice, and one of the two is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """As `functools.cached_property`, without its lock."""

        def __init__(self, function: Callable[[Any], Any]):
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.name, self.function(instance))
