"""What nodes of ops keep that took the place of a compiled node, as the user sees it now.

See Note [Errors in backward] in expanding.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .replaced import counter_of, is_replaced, replaced, stands_for
from .saved_values import saved_in, storage_of
from .tracer.function import BackwardNode
from .tracer.pending import memory_of
from .tracer.readers import reads_later
from .tracer.storage import Storage, is_exposed, owner_of
from .tracer.tensor import Tensor


class Copies:
    """Of what a compiled call was given, and of results that the caller holds."""

    def __init__(self, node: Any, values: list[Tensor], results: list[Tensor]):
        self.inputs = [*zip(node.inputs or (), values)]
        found = replaced(node)
        self.memory = [found.get(k, array) for k, array in enumerate(self.now())]  # they stand for
        self.saved = {*node.split.as_eager.saved_inputs}  # of others eager kept values
        self.inner = node.split.function.inner
        self.counts: dict[int, int] = {}  # how many writes copies have more, where not as many
        self.held = [(theirs, results[k]._array, results[k].storage_, results[k].storage_.version)
                     for k, theirs in node.results_held().items()]  # fmt: skip
        apart = node.split.function.apart  # of which writes are not counted
        self.apart = {at for at, k in enumerate(node.results_held()) if k in apart}
        self.seen: list[np.ndarray] = []  # the memory of inputs; empty while copies are as of old
        self.is_written = False
        self.shown = {k: results[k] for k in node.results_held()}
        for k, tensor in node.moved.items():
            self.follow(k, tensor)
        reads_later(self)

    def follow(self, k: int, tensor: Tensor) -> None:
        """A result is given other memory, or input ~k; see Note [Replaced results]."""
        if k < 0:
            self.inputs[~k] = tensor, self.inputs[~k][1]
        elif not any(value is self.shown[k] for _, value in self.inputs):
            (theirs, _, version), _, _, count = self.held[[*self.shown].index(k)]
            self.saved.add(at := len(self.inputs))
            self.counts[at] = count - version
            self.inputs.append((tensor, self.shown[k]))
            self.memory.append(theirs)

    def before_replacement(self, tensor: Tensor) -> None:
        held = [(k, t, array) for (k, t), ((array, *_), *_) in zip(self.shown.items(), self.held)]
        inner = [(~k, self.inputs[k][1], self.memory[k]) for k in self.inner
                 if k < len(self.memory)]  # fmt: skip
        for k, copy, array in [*held, *inner]:
            if stands_for(tensor, array, copy._requires_grad):
                self.follow(k, tensor)

    def become(self, inputs: Mapping[int, np.ndarray], results: Mapping[int, np.ndarray]) -> None:
        """Some of the inputs, and all of the results, as they were in between."""
        for k, array in inputs.items():
            np.copyto(self.inputs[k][1]._array, array)
        for array, (_, copy, *_) in zip(results.values(), self.held):
            np.copyto(copy, array)

    def update(self) -> None:
        """Memory and counts become what they are now; so they stay from now on."""
        self.seen, self.is_written = self.now(), False
        for k, (tensor, _) in enumerate(self.inputs):
            if k in self.saved and is_replaced(tensor, self.memory[k]):
                self.renew(k, self.seen[k])
        for k, ((tensor, value), array) in enumerate(zip(self.inputs, self.seen)):
            if k not in self.saved:
                continue
            storage = tensor._storage
            if storage is not None:
                value.storage_.version = storage.version + self.counts.get(k, 0)
                value.storage_.written = storage.written
            np.copyto(value._array, array)
        for k, ((array, storage, version), copy, counter, count) in enumerate(self.held):
            if k not in self.apart:
                counter.version = count + storage.version - version
                counter.written = storage.written
            np.copyto(copy, array)

    def renew(self, k: int, array: np.ndarray) -> None:
        """An input was given other memory: a copy of it, too. Views stay on the old one."""
        (tensor, value), before = self.inputs[k], self.memory[k]
        count = value.storage_.version
        if k not in self.counts:  # of results, the old memory is in `held`
            theirs = counter_of(tensor, before) or Storage(before, count)
            self.held.append(((before, theirs, count), value._array, value.storage_, count))
        self.memory[k], value.dtype, value._array = array, tensor.dtype, array.copy(order="K")
        value._storage = Storage(value._array, count)

    def now(self) -> list[np.ndarray]:
        return [memory_of(tensor) for tensor, _ in self.inputs]

    def owners(self) -> list[np.ndarray]:
        """Of the memory that is copied."""
        return [owner_of(array) for array in (*self.now(), *(h[0][0] for h in self.held))]

    def before_write(self, owner: np.ndarray) -> None:
        self.is_written |= any(owner is known for known in self.owners())

    def before_exposure(self, owner: np.ndarray) -> None:
        pass  # `is_stale` asks

    def is_stale(self) -> bool:
        """May they be other than what the user sees?"""
        if not self.seen:
            return False
        return (
            self.is_written
            or any(a is not b for a, b in zip(self.seen, self.now()))
            or any(map(is_exposed, self.owners()))
        )

    def serve(self, nodes: list[Any]) -> None:
        """Before any of these nodes runs that keep such memory, it is made what it is now."""
        storages = {id(value.storage_) for _, value in self.inputs}
        storages.update(id(counter) for _, _, counter, _ in self.held)
        for node in nodes:
            kept = {id(storage_of(entry)) for entry, _ in saved_in(node)}
            if isinstance(node, BackwardNode) or not kept.isdisjoint(storages):
                node.register_prehook(self.look)

    def look(self, grads: Any) -> None:
        if self.is_stale():
            self.update()
