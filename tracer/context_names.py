"""Attributes of a Function's context whose names are those of the node's own parts.

Note [Names of the user's]
    A custom Function's `ctx` is its graph node, which has parts of its own. torch's nodes keep
    theirs in C++, so that users may call an attribute `extra` or `edges`. Where one does, which is
    seen when forward or backward returns, the attribute is set aside and the node becomes one of a
    class that tells who asks: the library sees the parts, all others the user's attributes.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from .tape import Extra

SLOTS = ("edges", "extra", "place", "sequence")
PRIVATE = ("_saved", "_types", "_positions", "_in_types", "_count")
# what is asked of nodes of all kinds
_ASKED = frozenset({"at_once", "behind", "call_types", "is_op", "joins", "output_types",
                    "passes", "plan", "relay", "release", "serve"})  # fmt: skip
_HIDDEN = _ASKED.union(SLOTS, PRIVATE)
_LIBRARY = __name__.partition(".")[0]


def parts_of(node: Any) -> tuple[Any, ...]:
    """The parts that an attribute of the user's may have replaced: of `SLOTS` and `PRIVATE`."""
    return (node.edges, node.extra, node.place, node.sequence, node._saved, node._types,
            node._positions, node._in_types, node._count)  # fmt: skip


def set_aside(node: Any, own: tuple[Any, ...]) -> None:
    """Sets attributes aside that lie where the node's parts were, `own`, or hide what it does."""
    attributes = node.__dict__
    given = {} if _ASKED.isdisjoint(attributes) else {
        name: attributes.pop(name) for name in _ASKED.intersection(attributes)}  # fmt: skip
    for name, value, now in zip((*SLOTS, *PRIVATE), own, parts_of(node)):
        if now is not value and not isinstance(now, Extra):
            given[name] = now
            setattr(node, name, value)
    if given:
        give(node, given)


def give(node: Any, attributes: dict[str, Any]) -> None:
    """Gives a context attributes of the user's, apart from the node's parts."""
    hidden = {name: value for name, value in attributes.items() if name in _HIDDEN}
    node.__dict__.update((name, v) for name, v in attributes.items() if name not in hidden)
    if hidden:
        node.__dict__.setdefault("_given", {}).update(hidden)
        if not isinstance(node, _Telling):
            node.__class__ = _telling(type(node))


def given_to(node: Any) -> dict[str, Any]:
    """All attributes of a context that are not parts of the node."""
    own = {name: v for name, v in vars(node).items() if name != "_given" and name not in PRIVATE}
    return {**own, **vars(node).get("_given", {})}


def replaced(node: Any, own: tuple[Any, ...]) -> bool:
    """May backward have put attributes in the place of parts?"""
    return (
        node.edges is not own[0]
        or node.place is not own[2]
        or node.sequence != own[3]
        or (node.extra is not own[1] and not isinstance(node.extra, Extra))
        or not _ASKED.isdisjoint(node.__dict__)
    )


def _is_users(name: str) -> bool:
    """Does somebody other than the library ask for an attribute that may be the user's?"""
    if name not in _HIDDEN:
        return False
    asking: str = sys._getframe(2).f_globals.get("__name__", "")
    return asking.partition(".")[0] != _LIBRARY


class _Telling:
    """What the library sees is the node's, what others see is the user's."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if _is_users(name):
            given = object.__getattribute__(self, "__dict__")["_given"]
            if name in given:
                return given[name]
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if _is_users(name):
            self._given[name] = value
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if _is_users(name):
            if name not in self._given:
                raise AttributeError(name)
            del self._given[name]
        else:
            object.__delattr__(self, name)


@functools.cache
def _telling(kind: type) -> type:
    """The class of nodes of a kind that tell who asks."""
    return type(kind.__name__, (_Telling, kind), {"__slots__": (), "__module__": kind.__module__})
