"""Objects of Python's own through which a body sees values that lie elsewhere.

Proxies and views of dicts, memory views, weak references, context variables, what makes attributes
from names that are not in the code, and the modules of the standard library, `os.environ` above
all: each is followed to what it shows.
"""

from __future__ import annotations

import contextvars
import gc
import operator
import os
import threading
import types
import weakref
from collections.abc import ItemsView, KeysView, ValuesView
from typing import Any

from .places import GONE, Entry
from .plain import PLAIN

VIEWS = (types.MappingProxyType, KeysView, ValuesView, ItemsView)
NAMING = (operator.attrgetter, operator.methodcaller)


class Asked:
    """What an object answers when it is called or asked for its value."""

    covered = writable = False
    name = "value"

    def __init__(self, owner: Any, ask: Any):
        self.owner, self.ask = owner, ask
        self.text = f"what a {type(owner).__name__} refers to"

    def read(self) -> Any:
        return self.ask()

    def words(self, watch: Any) -> Any:
        raise watch.Unwatchable(self.text)


def follow(reach: Any, value: Any) -> bool:
    """Visits what an object shows; False if it is none of these."""
    if isinstance(value, VIEWS) and type(value).__module__ == "builtins":
        reach.visit_all(gc.get_referents(value))
    elif isinstance(value, memoryview):
        reach.visit(value.obj)
    elif isinstance(value, weakref.ref):
        if id(value()) in reach.seen:  # what a hook knows of its module
            return True
        reach.problem("the body can reach a weak reference, and no recording may keep alive what "
                      "it refers to; pass that")  # fmt: skip
    elif isinstance(value, contextvars.ContextVar):
        place = Asked(value, lambda: value.get(GONE))
        reach.find(place, place.read())
    elif isinstance(value, threading.local):
        reach.problem(f"the body can reach a {type(value).__name__}, which nobody can watch; pass "
                      "what it holds")  # fmt: skip
    elif isinstance(value, NAMING):
        reach.names.all = True
    else:
        return False
    return True


def enter_standard(reach: Any, space: dict[str, Any], name: str, value: Any) -> None:
    """An attribute of a module of the standard library that code in sight names."""
    if isinstance(value, PLAIN):
        reach.find(Entry(space, name, False), value)
    elif value is os.environ or value is os.getenv:
        reach.visit(os.environ)
