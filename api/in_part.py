"""Backwards that come to a part only of what a compiled node stands for.

Note [Freed in part]
    A backward that does not retain the graph frees the ops that it comes to. It may not come to
    all: a hook of a leaf raises, or gradients of some inputs only were asked for. The others can
    still be gone through, so the node keeps what it was given, and how far backward came. It goes
    on by its ops from then on (Note [Errors in backward]), of which those are freed.

    A hook that runs before another raises may write what the node was given. That is copied before,
    where ops that backward has not come to have values made of it.

Note [Hooks that write]
    Where such a hook does not raise, eager goes on with what it wrote. A compiled node has computed
    all gradients by then, so they are not used: its ops run in its place, from the beginning, with
    what this backward found. Leaves that were served get nothing (`Served`), and at the last of
    them what was saved becomes what it is now.

    So what they read on the way to ops to which backward has not come is copied as well, before a
    hook writes it: an optimizer that steps in hooks does, and may be followed by one that writes
    more. The copy of a parameter takes the room of its gradient, if the hook lets go of that:
    all gradients were computed before the first leaf was served.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from .tracer.derive import is_silent
from .tracer.engine import Expanded, Ready
from .tracer.pending import memory_of
from .tracer.reaching import count_dependencies
from .tracer.readers import readers, reads_later
from .tracer.storage import is_exposed, owner_of
from .tracer.tape import AccumulateGrad, Node


def serve(node: Any, freed: Any, needed: Any) -> Any:
    """`Node.serve` of nodes that stand for recorded ops."""
    leaves = {k: e[0] for k, e in enumerate(node.edges)
              if e is not None and e[0].__class__ is AccumulateGrad}  # fmt: skip
    silent = frozenset(k for k, leaf in leaves.items() if is_silent(leaf))
    order: Any = ()
    if len(silent) < len(leaves):
        order = [k for k in node.order(silent) if k in leaves]
    is_all = needed is None or len(needed) == sum(edge is not None for edge in node.edges)
    if not order and (freed is None or is_all):
        part = None
    else:
        part = Part(node, needed, is_all, silent, freed is None)
        order = part.noting(order)
    node.arrived = None
    if freed is not None:
        node.release(freed)
    return order, part


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Are two arrays of one dtype and shape the same, NaN by NaN?"""
    a, b = (np.atleast_1d(np.ascontiguousarray(x)).view(np.uint8) for x in (a, b))
    return bool((a == b).all())


class Served(Node):
    """Stands before a leaf that was served: the gradient that comes next is not for it.

    `then` is called when it comes. Then the nodes before it, which have run, lead to the leaf.
    """

    def __init__(self, edge: Any, then: Any = None):
        self.edges, self.edge, self.then = (), edge, then
        self.sequence, self.place, self.extra = sys.maxsize, None, None
        self.consumers: list[Any] = []

    def apply(self, grads: list[Any]) -> list[Any]:
        if self.edges:
            return grads
        self.edges = (self.edge,)
        for node in self.consumers:
            node.edges = tuple(self.edge if e is not None and e[0] is self else e
                               for e in node.edges)  # fmt: skip
        if self.then is not None:
            self.then()
        return []


class HeldResults:
    """Of results that eager's nodes keep as the caller holds them: what this backward found there.

    It is copied when a hook writes, or may write without a word. Such writes are rare, so nobody
    asks whether nodes have yet to read it.
    """

    def __init__(self, node: Any):
        self.arrays = {k: array for k, (array, *_) in node.results_held().items()}
        self.found: dict[int, np.ndarray] = {}
        self.is_told = False  # of a write, which may be one of the same values, and counted
        for array in self.arrays.values():
            if is_exposed(owner := owner_of(array)):
                self.before_exposure(owner)

    def before_write(self, owner: np.ndarray) -> None:
        self.before_exposure(owner)
        self.is_told |= any(owner_of(array) is owner for array in self.arrays.values())

    def before_exposure(self, owner: np.ndarray) -> None:
        for k, array in self.arrays.items():
            if k not in self.found and owner_of(array) is owner:
                self.found[k] = array.copy()

    def are_written(self) -> bool:
        return self.is_told or any(
            not same_bytes(array, self.arrays[k]) for k, array in self.found.items()
        )

    def as_found(self) -> dict[int, np.ndarray]:
        return {**self.arrays, **self.found}


class Part:
    """How far a backward came.

    `needed` are the edges that it was to take, None where nobody asked for some; `is_all` says that
    these are all. `last` is the edge to a leaf whose hook raised.
    """

    __slots__ = ("__weakref__", "arrived", "at", "before", "earlier", "exposed", "found", "held",
                 "is_all", "kept", "last", "needed", "node", "numbers", "overtaken", "reference",
                 "retains", "served", "silent")  # fmt: skip

    def __init__(self, node: Any, needed: Collection[int] | None, is_all: bool,
                 silent: frozenset[int], retains: bool):  # fmt: skip
        self.needed, self.numbers, self.last = needed, node.numbers, None
        self.is_all, self.silent, self.retains = is_all, silent, retains
        self.arrived = [grad for grad in node.arrived or () if grad is not None]
        self.served: list[int] = []  # edges
        self.at: int | None = None  # the edge to the leaf that is being served
        self.node, self.kept = node, node.kept()
        self.before: dict[int, np.ndarray] = {}  # inputs that hooks wrote
        self.overtaken = False  # was any of them still to be read?
        self.exposed: dict[int, np.ndarray] = {}  # those that they may write without a word
        # inputs that were written before this backward, and what it found there, if hooks wrote
        self.earlier: frozenset[int] = frozenset()
        self.found: dict[int, np.ndarray] = {}
        self.reference = self.held = None
        if node.watched():
            self.held = HeldResults(node)
            self.reference, self.exposed = reads_later(self), node.exposed_now()
            self.earlier = frozenset(node.before or ())
            self.found = {k: memory_of(node.inputs[k]).copy() for k in self.earlier
                          if k in node.exposed}  # fmt: skip

    def noting(self, order: Sequence[int]) -> Iterator[int]:
        for position in order:
            self.at = position
            self.served.append(position)
            yield position

    def before_write(self, owner: np.ndarray) -> None:
        """A hook is about to write memory with this owner."""
        self.held.before_write(owner)
        found = self.copies(owner, self.before)
        self.before.update(found)
        self.overtaken = self.overtaken or (bool(found) and not self.left().isdisjoint(found))
        for k in self.earlier.difference(self.found):
            array = memory_of(self.node.watched(self.kept)[k])
            if owner_of(array) is owner:
                self.found[k] = array.copy()

    def before_exposure(self, owner: np.ndarray) -> None:
        """A hook may write there from now on."""
        self.held.before_exposure(owner)
        self.exposed.update(self.copies(owner, self.exposed))

    def copies(self, owner: np.ndarray, known: Collection[int]) -> dict[int, np.ndarray]:
        """Of inputs in that memory, those that are still to be read, or read on the way there."""
        found = {k: array for k, array in enumerate(map(memory_of, self.node.watched(self.kept)))
                 if k not in known and owner_of(array) is owner}  # fmt: skip
        if not found:
            return {}
        # ops that will run again do so on all that it found
        read = found if self.overtaken else frozenset[int]().union(*self.reads())
        return {k: array.copy() for k, array in found.items() if k in read}

    def reads(self) -> Any:
        """The inputs that are read now; see `Reads`."""
        whole = self.needed is not None or self.at is None
        return self.node.left_to_read(self.silent, None if whole else self.at)

    def left(self) -> Any:
        """The inputs that ops are made of to which backward has not come."""
        return self.reads().left

    def is_overtaken(self) -> bool:
        """Has a hook written what ops are made of to which backward has not come?"""
        if self.overtaken or (self.held is not None and self.held.are_written()):
            return True
        node, watched = self.node, self.node.watched(self.kept)
        exposed = {**node.exposed, **self.exposed} if watched else {}
        arrays = {k: (array, memory_of(watched[k])) for k, array in exposed.items()}
        written = [k for k, both in arrays.items() if not same_bytes(*both)]
        return bool(written) and not self.left().isdisjoint(written)

    def by_ops(self, node: Any, edges: list[Any]) -> Expanded:
        """See Note [Hooks that write]; `edges` are those that are left."""
        readers.discard(self.reference)
        if not self.retains:
            node.take_back(self.kept, self.before, self.exposed)
        else:
            node.before = {**self.before, **(node.before or {})} or None
            node.exposed = {**self.exposed, **node.exposed}
        roots, arrived = node.ops_after(self), self.arrived
        self.kept = self.node = self.arrived = self.held = None
        return Expanded(RuntimeError(""), roots, arrived, edges)

    def settle(self, node: Any) -> None:
        """No hook will run: the node takes back what its next backward needs, if one can be."""
        readers.discard(self.reference)
        if not self.is_all and not self.retains:
            node.take_back(self.kept, self.before, self.exposed)
            node.expansion = self
        self.kept = self.node = self.arrived = self.held = None

    def stop(self, node: Any, last: int) -> None:
        """A hook raised while the leaf of that edge was served."""
        self.last, self.is_all = last, False
        self.settle(node)

    def free(self, node: Any, edges: list[Any]) -> None:
        """Frees the ops that backward came to; `edges` lead to them from the results."""
        for inner in self.reached(node.edges, [edges[k] for k in self.numbers]):
            inner.release(node.freed)

    def reached(self, outside: Any, roots: list[Any]) -> list[Any]:
        """The nodes between `roots` and `outside` that the engine would have run."""
        ends = {edge[0] for edge in outside if edge is not None}
        waiting = count_dependencies(list(dict.fromkeys(roots)), ends)
        goals = self.goals(outside, ends, waiting)
        last = None if self.last is None else outside[self.last][0]
        ready, found = Ready(), []
        for node in dict.fromkeys(root for root, _ in roots):
            if waiting[node] == 0 and node in goals:
                ready.push(node)
        while ready.nodes:
            node = ready.pop()
            if node is last:
                break
            if node in ends:
                continue
            found.append(node)
            for edge in node.edges:
                if edge is not None:
                    waiting[edge[0]] -= 1
                    if waiting[edge[0]] == 0 and edge[0] in goals:
                        ready.push(edge[0])
        return found

    def goals(self, outside: Any, ends: set[Any], nodes: Any) -> set[Any]:
        """Those of `nodes` from which backward was to come to an edge that is needed."""
        if self.needed is None:
            return set(nodes)
        found = {outside[k][0] for k in self.needed}
        for node in sorted(set(nodes) - ends, key=lambda node: node.sequence):  # oldest first
            if any(edge is not None and edge[0] in found for edge in node.edges):
                found.add(node)
        return found
