"""Backward through graphs that came before, as one written function.

Note [Familiar graphs]
    A training loop builds the same graph at every step, from new nodes. When a graph that looks
    like an earlier one comes for the third time, backward through it is written as a Python
    function (familiar_text.py): first it goes along the edges and sees that everything is as it was
    when the function was written (ops, settings, types, what was saved, nothing written since, no
    hooks); then it calls the derivatives of all nodes, as straight code on arrays, in the engine's
    order. Gradients between nodes are no tensors then, and nothing is counted or queued. Results
    are the engine's, bit for bit. Where anything differs, nothing has happened yet, and the engine
    takes over.

    Nodes of compiled functions may be among the ops': they are called as they are.

    A graph is found by its last node: the plan of that node has an `Album` of functions, each of
    which says itself whether a graph is its own. Programs whose graphs never come again pay for
    looking at them; so the looking becomes rare when it finds nothing.
"""

from __future__ import annotations

from typing import Any

from ..ir.derivative import settings_of
from .familiar_text import Sketch, write
from .quiet import quietly
from .saved import Freed, SavedOutput
from .tape import AccumulateGrad
from .tensor import PLAIN

OFTEN = 3  # a graph that comes so often is written out
MOST_NODES = 2000  # of a graph
MOST_KNOWN = 8  # functions of an album: the ones used last
MOST_COUNTED = 32  # graphs whose number of visits an album remembers
LONGEST_PAUSE = 255  # backward calls between two looks where graphs never come again


class Album:
    """The functions for graphs that end in one kind of node, and how often others came."""

    __slots__ = ("counts", "known", "pause", "wait")

    def __init__(self) -> None:
        self.known: tuple[Any, ...] = ()
        self.counts: dict[int | None, int] = {}  # None: graphs that cannot be written
        self.pause = self.wait = 0  # calls between two looks, and until the next

    def run(self, node: Any, number: int, array: Any, freed: Any, place: Any) -> bool:
        """Runs the function whose graph this is; False if there is none."""
        for function in self.known:
            if quietly(function, node, number, array, freed, place):
                if function is not self.known[0]:
                    others = tuple([f for f in self.known if f is not function])
                    self.known = (function, *others)
                return True
        return False

    def meet(self, node: Any, number: int) -> None:
        """Counts a graph without function, and writes one when it comes often."""
        if self.wait:
            self.wait -= 1
            return
        found = sketch(node, number)
        # with the number of leaves, since -1 and -2, the first two, have one hash
        shape = None if found is None else hash((found.key, len(found.leaves)))
        count = self.counts[shape] = self.counts.get(shape, 0) + 1
        if found is not None and count == OFTEN:
            function = write(found)
            if function is not None:
                self.known = (function, *self.known[: MOST_KNOWN - 1])
                self.pause = 0
                return
        if count >= OFTEN or len(self.counts) > MOST_COUNTED:  # looking led to nothing
            self.counts.clear()
            self.pause = min(2 * self.pause + 1, LONGEST_PAUSE)
        self.wait = self.pause


def backward(node: Any, number: int, grad: Any, freed: Freed | None, place: Any) -> bool:
    """Backward from output `number` of a node with a plan if the graph is familiar; else False.

    Saved values are released to `freed`, if there is one; `place` is where the user called.
    """
    if grad.__class__ not in PLAIN:
        return False
    plan = node.plan
    album = plan.album
    if album is None:
        album = plan.album = Album()
    if album.run(node, number, grad._array, freed, place):
        return True
    album.meet(node, number)
    return False


# --- what a graph looks like ----------------------------------------------------------------------


def sketch(root: Any, number: int) -> Sketch | None:
    """The graph behind a node; None where it has hooks, or nodes that have no plan."""
    nodes = reachable(root)
    if nodes is None:
        return None
    nodes.sort(key=lambda node: -node.sequence)
    places = {node: position for position, node in enumerate(nodes)}
    leaves: dict[Any, int] = {}
    key: list[Any] = [number]
    for position, node in enumerate(nodes):
        edges: list[Any] = []
        for edge in node.edges:
            if edge is None:
                edges.append(None)
                continue
            target, slot = edge
            if target.__class__ is AccumulateGrad:
                edges.append((~leaves.setdefault(target, len(leaves)), slot))
            elif places[target] <= position:
                return None  # written in place: not in the order of the calls
            else:
                edges.append((places[target], slot))
        kinds = saved_kinds(node) if node.is_op else ()
        if kinds is None:
            return None
        settings = settings_of(node.attrs) if node.is_op else None
        key.append((node.plan, node.call_types(), settings, kinds, tuple(edges)))
    return Sketch(nodes, list(leaves), tuple(key))


def reachable(root: Any) -> list[Any] | None:
    """All nodes with a plan that gradients of `root` reach."""
    nodes, stack, seen = [], [root], {root}
    while stack:
        node = stack.pop()
        if node.extra is not None or node.plan is None or len(nodes) == MOST_NODES:
            return None
        nodes.append(node)
        for edge in node.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                if edge[0].__class__ is not AccumulateGrad:
                    stack.append(edge[0])
    return nodes


def saved_kinds(node: Any) -> tuple[Any, ...] | None:
    """What each saved value is: Tensor, SavedOutput, None, or a number with its class."""
    if node.saved.__class__ is not tuple:
        return None
    kinds: list[Any] = []
    for entry in node.saved:
        if entry.__class__ in PLAIN:
            kinds.append("tensor")
        elif entry.__class__ is SavedOutput:
            kinds.append("output")
        elif entry is None or entry.__class__ in (int, float):
            kinds.append((entry.__class__, entry))
        else:
            return None
    return tuple(kinds)
