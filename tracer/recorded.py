"""What a recording knows of memory and tensors: the data the recorder keeps."""

from __future__ import annotations

import re
from typing import Any

from ..ir.graph import Place, Var
from ..ir.op import Op
from .tape import line_of, user_place
from .tensor import Tensor


class Refused(Exception):
    """This call can't be replayed; the message says why, with the user's line."""


class Memory:
    """What the graph knows of a piece of memory: its base tensor's current Var.

    `key` is the id of the array that owns the bytes.
    """

    __slots__ = ("apart", "counted", "external", "held", "key", "recorded", "var", "writes")

    def __init__(self, root: Any, var: Var, external: int | None):
        self.key, self.var, self.external = id(root), var, external
        self.held = root if external is not None else None  # see Note [What recording keeps]
        self.writes = 0
        self.counted = 0  # those that its version counts: not the ones by way of `.data`
        self.apart = False  # does another input lie in the same memory, unrelated in the graph?
        self.recorded = False  # did autograd see a write?


class Running:
    """An op that is run; `vars` are known when its results are, `number` is that of its node."""

    def __init__(self, op: Any, inputs: Any, operands: Any, attrs: Any):
        self.op, self.inputs, self.operands, self.attrs = op, inputs, operands, attrs
        self.vars: Any = None
        self.number = -1


class Entry:
    """A tensor: a view chain into its memory, and the Var it is, as of `seen` writes.

    `cut`: it has no history, though its memory may have. `outside`: the body did not make it.
    """

    __slots__ = ("chain", "cut", "extent", "memory", "outside", "reference", "seen", "var")

    def __init__(self, tensor: Tensor, memory: Memory, chain: Any, var: Var, cut: bool = False,
                 outside: bool = False):  # fmt: skip
        self.memory, self.chain, self.var, self.cut = memory, chain, var, cut
        self.outside = outside
        self.extent = extent_of(tensor)
        self.reference: Any = lambda: tensor
        self.seen = memory.writes

    @property
    def tensor(self) -> Tensor | None:
        """None if it is gone."""
        return self.reference()  # type: ignore[no-any-return]


class Branch:
    """A decision Python made on a value."""

    __slots__ = ("outcome", "place", "position", "var")

    def __init__(self, var: Var, outcome: Any, position: int, place: Place | None):
        self.var, self.outcome, self.position, self.place = var, outcome, position, place


def beyond_graphs(op: Op, inputs: Any, attrs: Any) -> str:
    """Why no graph can say what a call of the op does, if so."""
    if op.data_shape:
        advice = "run this part outside"
        if op.name in ("nonzero", "masked_select"):  # x[mask] asks for the first
            advice = "where(mask, x, 0) keeps the shape that x[mask] changes, or select outside"
        return f"the shape of {op.name}'s result depends on values; {advice}"
    if op.beyond is not None and op.beyond(tuple(inputs[0].shape), **attrs):
        return f"{op.name}() shows memory beside the elements of its tensor; call it on all of them"
    return ""


def extent_of(tensor: Tensor) -> Any:
    """Which bytes a tensor shows, and as what."""
    array = tensor._array
    return array.shape, array.strides, array.dtype, array.__array_interface__["data"][0]


def graph_name(name: str) -> str:
    """A function's name as the word that a graph is called by."""
    return re.sub(r"\W+", "_", name).strip("_") or "function"


def same_extent(a: Tensor, b: Tensor) -> bool:
    return bool(extent_of(a) == extent_of(b))


def chain_between(base: Tensor | None, tensor: Tensor) -> Any:
    """The view chain from a base to a view of it, if eager knows one."""
    view = tensor._view
    if view is None or base is None:
        return None
    return view.chain if view.base is base or same_extent(view.base, base) else None


def counts_apart(target: Tensor, external: Tensor | None, entries: list[Entry]) -> bool:
    """Does a write count in a tensor from outside that has a version of its own, as `.data` has?"""
    if external is None or target.storage_ is external.storage_:
        return False
    outside = [entry.tensor for entry in entries if entry.outside]
    return any(t is not None and t.storage_ is target.storage_ for t in outside)


def current_place() -> Place | None:
    place = user_place()
    return None if place is None else Place(place[0].co_filename, line_of(place))


def place_text() -> str:
    place = current_place()
    return "unknown place" if place is None else str(place)
