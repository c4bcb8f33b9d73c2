"""What a recording knows of memory and tensors: the data the recorder keeps."""

from __future__ import annotations

from typing import Any

from ..ir.graph import Place, Var
from .tape import line_of, user_place
from .tensor import Tensor


class Refused(Exception):
    """This call can't be replayed; the message says why, with the user's line."""


class Memory:
    """What the graph knows of a piece of memory: its base tensor's current Var."""

    __slots__ = ("apart", "external", "recorded", "root", "var", "writes")

    def __init__(self, root: Any, var: Var, external: int | None):
        self.root, self.var, self.external = root, var, external
        self.writes = 0
        self.apart = False  # does another input lie in the same memory, unrelated in the graph?
        self.recorded = False  # did autograd see a write?


class Entry:
    """A tensor: a view chain into its memory, and the Var it is, as of `seen` writes."""

    __slots__ = ("chain", "cut", "memory", "seen", "tensor", "var")

    def __init__(self, tensor: Tensor, memory: Memory, chain: Any, var: Var, cut: bool = False):
        self.tensor, self.memory, self.chain, self.var, self.cut = tensor, memory, chain, var, cut
        self.seen = memory.writes


class Branch:
    """A decision Python made on a value."""

    __slots__ = ("outcome", "place", "position", "var")

    def __init__(self, var: Var, outcome: Any, position: int, place: Place | None):
        self.var, self.outcome, self.position, self.place = var, outcome, position, place


def same_extent(a: Tensor, b: Tensor) -> bool:
    one, two = a._array, b._array
    return (
        one.shape == two.shape
        and one.strides == two.strides
        and one.dtype == two.dtype
        and one.__array_interface__["data"][0] == two.__array_interface__["data"][0]
    )


def chain_between(base: Tensor | None, tensor: Tensor) -> Any:
    """The view chain from a base to a view of it, if eager knows one."""
    view = tensor._view
    if view is None or base is None:
        return None
    return view.chain if view.base is base or same_extent(view.base, base) else None


def current_place() -> Place | None:
    place = user_place()
    return None if place is None else Place(place[0].co_filename, line_of(place))


def place_text() -> str:
    place = current_place()
    return "unknown place" if place is None else str(place)
