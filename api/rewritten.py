"""Backward of a compiled function whose inputs or results were written since.

Note [Written inputs]
    Eager's history keeps most values by themselves, and some as the tensors that the user holds:
    inputs, results and views of them. Of those it sees what was written to them by way of `.data`,
    and it raises where a write was counted. A compiled backward may keep other things. So before
    memory of its inputs is written (`tracer/readers.py`) a node takes a copy, and backward then
    runs as eager's would: `AsEager` computes again what eager had saved. What the
    function itself writes over is copied before the call. With create_graph all that eager saved is
    computed again, so nodes are told of writes wherever it saved more than inputs and views.

Note [Handed on]
    A value of one segment (see segments.py) may be a result of the last one. Native code copies it,
    but backward of either segment must see what is written to the result. So where eager keeps such
    a value, both are put into one memory: that of the segment which made it, or where it is turned
    in memory (Note [Turned results]) that of the result. Where the last segment is given views of
    it as well, which native code has copied too, these are views of that memory from then on.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from .ir import interp
from .ir.graph import RANDOM, RESULT, SAVED, Graph, Node
from .ir.partition import is_whole, memory_shown, partition, turned_by
from .ir.passes import absent_gradients, dead_code
from .tracer.pending import memory_of
from .tracer.storage import is_exposed, owner_of
from .tracer.tensor import Tensor


def handed_on(graph: Graph, held: Sequence[int]) -> dict[int, tuple[int, list[int] | None]]:
    """Of the results in `held`: which inputs they show, all of them; in which order, if turned."""
    producers = graph.producers()
    places = {i.var: k for k, i in enumerate(graph.inputs)}
    results = [o.var for o in graph.outputs if o.kind == RESULT]
    found: dict[int, tuple[int, list[int] | None]] = {}
    for k in held:
        root, chain = memory_shown(results[k], producers)
        if root not in places:
            continue
        if is_whole(chain, root):
            found[k] = places[root], None
        elif (order := turned_by(chain, root)) is not None:
            found[k] = places[root], order
    return found


def shown(array: np.ndarray, chain: Sequence[Node]) -> np.ndarray:
    """What these views show of an array."""
    for node in chain:
        if node.op.kind == "view":
            array = node.op.numpy(array, **node.attributes)
    return array


def is_held_elsewhere(tensor: Tensor) -> bool:
    """May anybody but the tensor hold its memory, who could write there without a word?"""
    array = memory_of(tensor)
    owner, storage = owner_of(array), tensor._storage
    exposed = is_exposed(owner)
    if owner.base is not None or not exposed:
        return exposed
    # beside the tensor: the variables here, the arguments of the count, and the storage
    ours = 3 if storage is None or storage.root is not owner else 4
    if array is owner:
        return sys.getrefcount(owner) > ours + 1
    return sys.getrefcount(owner) > ours or sys.getrefcount(array) > 3


class AsEager:
    """Forward and backward that save what eager saves; `held` results are at hand as they are, and
    those that are `unseen` are not."""

    def __init__(self, joint: Graph, held: Sequence[int], unseen: Collection[int] = ()):
        self.parts = partition(joint, as_eager=True, unseen=unseen)
        forward = self.parts.forward
        results = [o.var for o in forward.outputs if o.kind == RESULT]
        numbers = {results[k]: k for k in held}
        # what backward is given of forward, as numbers of results where it is one
        saved = [o for o in forward.outputs if o.kind == SAVED]
        self.shared = [numbers.get(o.var) for o in saved]
        made = tuple(o for o in saved if o.var not in numbers)
        self.forward = dead_code.run(forward.replace(outputs=made))
        read = {v for node in self.forward.nodes for v in node.present()} | {o.var for o in made}
        self._looked_at: dict[Any, frozenset[int]] = {}
        self.read_inputs = {k for k, i in enumerate(forward.inputs) if i.var in read}
        # of which anything is made that eager keeps, be it a result
        made_of = {*dead_code.needed_nodes(forward, {o.var for o in saved})}
        read = {v for node in made_of for v in node.present()} | {o.var for o in saved}
        self.sources = {k for k, i in enumerate(forward.inputs) if i.var in read
                        and i.kind != RANDOM}  # fmt: skip

    @property
    def inputs(self) -> frozenset[int]:
        """The inputs that eager keeps, or of which values are made that it keeps."""
        return frozenset({*self.read_inputs, *self.saved_inputs})

    @property
    def viewed(self) -> frozenset[int]:
        """The inputs of which it keeps views, which stay on the memory that they were made of."""
        return self.parts.viewed

    def looked_at(self, given: tuple[int, ...], counted: bool = False) -> frozenset[int]:
        """Which of `saved_inputs` eager looks at when these gradients arrive; where writes are
        `counted`, those alone that it does not know by their `.data`."""
        key = given, counted
        if key not in self._looked_at:
            graph, _ = absent_gradients.run(self.parts.backward, given)
            nodes = [n for n in graph.nodes if not (counted and dict(n.attrs).get("apart"))]
            read = {v for node in nodes for v in node.present()}
            read.update(o.var for o in graph.outputs)
            kept = graph.inputs[len(self.shared) :][: len(self.saved_inputs)]
            self._looked_at[key] = frozenset(
                position for position, i in zip(self.saved_inputs, kept) if i.var in read
            )
        return self._looked_at[key]

    @property
    def saved_inputs(self) -> tuple[int, ...]:
        """The inputs that eager keeps as they are, or as views of them."""
        return self.parts.saved_inputs

    def gradients(
        self,
        before: list[np.ndarray],
        now: list[np.ndarray],
        results: dict[int, np.ndarray],
        grads: dict[int, np.ndarray],
        left: tuple[int, ...],
    ) -> list[np.ndarray]:
        """Those gradients that there are.

        Inputs are given as they were at the call and as they are now, results as they are now.
        """
        made = iter(interp.run(self.forward, before))
        saved = [next(made) if number is None else results[number] for number in self.shared]
        kept = [now[k] for k in self.saved_inputs]
        graph, _ = absent_gradients.run(self.parts.backward, grads.keys(), left)
        return interp.run(graph, [*saved, *kept, *grads.values()])
