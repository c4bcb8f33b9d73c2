"""How the node of a compiled call knows what is done later to the memory that backward reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .in_part import same_bytes
from .rewritten import is_held_elsewhere, shown
from .tracer.pending import memory_of
from .tracer.readers import reads_later
from .tracer.storage import Storage, owner_of
from .tracer.tensor import Tensor


class MemoryWatch:
    """The part of such a node that is told of writes to inputs and results, and keeps what was
    there before."""

    __slots__ = ()
    before: Any
    came: frozenset[int]
    exposed: Mapping[int, np.ndarray]
    held: tuple[Any, ...] | None
    inputs: Any
    numbers: tuple[int, ...]
    reference: Any
    shown: Mapping[int, np.ndarray]
    split: Any

    def watch(self, results: Sequence[Tensor]) -> None:
        """Backward will look at inputs and results again."""
        self.watch_inputs()
        for k, (position, order) in self.split.handed_on.items():
            self.share_memory(results[k], self.inputs[position], order)
        for position, (whole, chain) in self.split.function.parts.items():
            self.inputs[position]._array = shown(self.inputs[whole]._array, chain)
        held = [results[k] for k in self.split.function.held]
        if held:
            facts = [(r._array, r.storage_, r.storage_.version) for r in held]
            self.held = tuple([fact for three in facts for fact in three])

    def share_memory(self, result: Tensor, value: Tensor, order: Any) -> None:
        """See Note [Handed on]."""
        if order is None:
            result._array = value._array.reshape(result._array.shape)
            return
        before, value._array = value._array, result._array.transpose(np.argsort(order))
        maker = value._node
        if isinstance(maker, MemoryWatch) and maker.held is not None:
            maker.held = tuple([value._array if fact is before else fact for fact in maker.held])

    def watch_inputs(self) -> None:
        """Writes to inputs will be told."""
        self.reference = reads_later(self)
        for tensor in self.inputs:
            if is_held_elsewhere(tensor):
                self.before_exposure(owner_of(memory_of(tensor)))

    def results_held(self) -> dict[int, tuple[np.ndarray, Storage, int]]:
        """The results that must not be written: their memory, its storage, and its version then."""
        facts = iter(self.held or ())
        return dict(zip(self.split.function.held, zip(facts, facts, facts)))

    def before_exposure(self, owner: np.ndarray) -> None:
        """Memory with this owner may be written from now on, without a word."""
        read = self.split.as_eager.sources
        found = {k: array.copy() for k, array in enumerate(map(memory_of, self.inputs or ()))
                 if k in read and k not in self.exposed and owner_of(array) is owner}  # fmt: skip
        if self.show(owner) or found:
            self.exposed = {**self.exposed, **found}

    def show(self, owner: np.ndarray) -> bool:
        """Takes copies of results that backward will read in this memory; are there any?"""
        held = {k: array for k, (array, *_) in self.results_held().items()
                if owner_of(array) is owner}  # fmt: skip
        if held:
            found = {k: array.copy() for k, array in held.items() if k not in self.shown}
            self.shown = {**self.shown, **found}
        return bool(held)

    def notice_writes(self) -> None:
        """Was anything written that NumPy's users can write to?"""
        for k, array in self.exposed.items():
            if not same_bytes(array, memory_of(self.inputs[k])):
                self.before = {k: array, **(self.before or {})}
        if self.are_results_written():
            self.before = self.before or {}

    def are_results_written(self) -> bool:
        held = self.results_held()
        return any(not same_bytes(array, held[k][0]) for k, array in self.shown.items())

    def is_rewritten(self) -> bool:
        """Is there anything else now where eager's backward looks?"""
        looked_at = self.split.as_eager.looked_at(self.numbers)
        return not looked_at.isdisjoint(self.before) or self.are_results_written()

    def before_write(self, owner: np.ndarray) -> None:
        """Memory with this owner is about to be written."""
        if self.inputs is None:
            return
        kept = {} if self.before is None else self.before
        left = self.split.shared.left(self.came) if self.came else None
        for k, tensor in enumerate(self.inputs):
            array = memory_of(tensor)
            if k not in kept and owner_of(array) is owner and (left is None or k in left):
                kept[k] = array.copy()
        if self.show(owner) or kept:
            self.before = kept

    def exposed_now(self) -> dict[int, np.ndarray]:
        """Inputs that eager has kept, and NumPy's users may write to, but those in `exposed`."""
        kept = self.split.as_eager.inputs
        return {k: memory_of(tensor).copy() for k, tensor in enumerate(self.inputs)
                if k in kept and k not in self.exposed and is_held_elsewhere(tensor)}  # fmt: skip
