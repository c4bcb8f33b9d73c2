"""Compiled functions as functions are: their attributes, as methods, and copies of them.

An object has a function of its own for each of its compiled methods, with traces of its own. It
lies in the object's `__dict__`, so that both go together: whatever else knew both would keep the
object for ever. Classes, and objects without a `__dict__`, are arguments of the one function.
"""

from __future__ import annotations

import copy
import sys
import types
from typing import Any

NAME = "_compiled_methods"


class Bound(dict[Any, Any]):
    """The compiled methods of `owner`, by the functions of its classes.

    A copy of the object begins anew: shallow ones share this table, whose owner is another then.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: Any):
        super().__init__()
        self.owner = owner

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, ()


def bound(compiled: Any, instance: Any, owner: Any) -> Any:
    """What `instance.name` is where its class has `name = compiled`."""
    bind = getattr(type(compiled.function), "__get__", None)
    if bind is None:
        return compiled  # of an object that is called, which Python does not bind
    space = None if isinstance(instance, type) else getattr(instance, "__dict__", None)
    if not isinstance(space, dict):
        method = bind(compiled.function, instance, owner)
        return compiled if method is compiled.function else types.MethodType(compiled, instance)
    known = space.get(NAME)
    if type(known) is not Bound or known.owner is not instance:
        known = space[NAME] = Bound(instance)
    found = known.get(compiled)
    if found is None:
        method = bind(compiled.function, instance, owner)
        is_bound = method is not compiled.function
        found = type(compiled)(method, compiled.options) if is_bound else compiled
        found = known.setdefault(compiled, found)
    return found


def copied(compiled: Any, memo: Any) -> Any:
    """Its deep copy: functions are copied by reference, methods with their objects."""
    function = copy.deepcopy(compiled.function, memo)
    is_same = function is compiled.function
    return compiled if is_same else type(compiled)(function, compiled.options)


def reduced(compiled: Any) -> Any:
    """How it is pickled: by name where that finds it, as functions are, or compiled anew."""
    found: Any = sys.modules.get(getattr(compiled, "__module__", None) or "")
    name = getattr(compiled, "__qualname__", "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return name if found is compiled else (type(compiled), (compiled.function, compiled.options))


class LikeFunction:
    """Has the attributes of `function`, but those that a compiled function has for itself."""

    function: Any
    is_made = False

    def __getattr__(self, name: str) -> Any:
        if name == "function" or name[:2] == "__":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        is_own = not self.is_made or name[:2] == "__" or name in self.__dict__
        if is_own or hasattr(type(self), name):
            object.__setattr__(self, name, value)
        else:  # what bodies read of functions is watched there
            setattr(self.function, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            object.__delattr__(self, name)
        else:
            delattr(self.function, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        try:  # the usual case first
            known = instance.__dict__[NAME]
            if known.owner is instance:
                return known[self]
        except (AttributeError, KeyError):
            pass
        return bound(self, instance, owner)

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return copied(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduced(self)
