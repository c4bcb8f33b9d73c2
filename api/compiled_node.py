"""The node that the results of a compiled function carry: its backward is compiled too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from .arrivals import Reads
from .both_passes import Split
from .custom_backwards import Careful, gradients
from .expanding import Expansion, Rewritten, Unreadable, edges_of, ops_after
from .gradient_layouts import LaidOutAgain, laid_out
from .in_part import serve
from .ir.bind import state
from .ir.types import TensorType, uint8
from .memory_watch import MemoryWatch
from .replaced import check_kept, kept_arrays, needs_ops, note_replacement, old_tensor, replaced
from .to_leaves import ToLeaves
from .tracer.batching import any_batched
from .tracer.eager import history
from .tracer.engine import Expanded
from .tracer.facts import Unmade
from .tracer.pending import memory_of
from .tracer.readers import readers
from .tracer.saved import attach_edge
from .tracer.storage import Storage
from .tracer.tape import (
    ANOMALY,
    Node,
    accumulator_of,
    describe_place,
    next_sequence,
    user_place,
)
from .tracer.tensor import Tensor


def numbers_of(grads: list[Any]) -> tuple[int, ...]:
    """Which of the gradients arrived."""
    return tuple([k for k, g in enumerate(grads) if g is not None])


NOTHING: Mapping[int, np.ndarray] = MappingProxyType({})
# what is in the slots of a new node, beside what the call gives
NEW_SLOTS: tuple[tuple[str, Any], ...] = (
    ("before", None), ("came", frozenset()), ("expansion", None), ("exposed", NOTHING),
    ("extra", None), ("freed", None), ("given", NOTHING),
    ("held", None), ("left", NOTHING), ("moved", NOTHING), ("numbers", ()), ("reference", None),
    ("shown", NOTHING), ("states", ()), ("unmade", ()),
)  # fmt: skip


class CompiledFunctionBackward(MemoryWatch, Node):
    """The node of a compiled function's results."""

    __module__ = "builtins"
    joins = True
    __slots__ = ("arrived", "before", "came", "expansion", "exposed", "freed", "given", "held",
                 "inputs", "left", "moved", "numbers", "reference", "saved", "shown", "split",
                 "states", "unmade", "versions")  # fmt: skip
    new_slots = NEW_SLOTS
    freed: Any
    arrived: Any  # the gradients that arrived last, until leaves are served; set by `apply`
    numbers: tuple[int, ...]  # the gradients that arrived last
    came: frozenset[int]  # those that freed what is behind them; see Note [Shared histories]
    states: Sequence[Any]  # of the generators before the call
    held: tuple[Any, ...] | None  # see `results_held`
    reference: Any  # among `readers`
    given: Mapping[int, np.ndarray]  # inputs that the call itself wrote over
    left: Mapping[int, np.ndarray]  # see Note [Replaced memory]
    moved: Mapping[int, Tensor]  # results that have other memory now; see Note [Replaced results]
    before: Any  # inputs as they were before somebody wrote; see Note [Written inputs]
    expansion: Any  # edges into the nodes of its ops, by result; see Note [Errors in backward]
    # inputs that NumPy's users may write to, as they were at the call
    exposed: Mapping[int, np.ndarray]
    shown: Mapping[int, np.ndarray]  # results that were written, or may be, as they were
    # where `edges` is not set: edges or an Unmade for each; once `inputs` is gone, leaves follow
    unmade: tuple[Any, ...]

    def __init__(self, split: Split, inputs: list[Tensor], saved: list[Any]):
        for slot, value in NEW_SLOTS:
            setattr(self, slot, value)
        self.split, self.saved = split, (*saved, *[inputs[k]._array for k in split.kept])
        self.inputs: Any = tuple(inputs)
        self.versions = tuple([0 if t._storage is None else t._storage.version for t in inputs])
        self.edges = tuple([history(inputs[k]) for k in split.wanted])
        self.sequence, self.place = next_sequence(), user_place()

    def __getattr__(self, name: str) -> Any:
        if name != "edges":
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        self.edges = tuple([(known.accumulator or accumulator_of(leaf), 0)
                            if known.__class__ is Unmade else known
                            for known, leaf in zip(self.unmade, self.leaves())])  # fmt: skip
        self.unmade = ()
        return self.edges

    def leaves(self) -> Sequence[Any]:
        """Of edges that are not made, the leaves; see Note [Unmade accumulators]."""
        wanted = self.split.wanted
        return self.unmade[len(wanted) :] or [self.inputs[k] for k in wanted]

    def forget_inputs(self) -> None:
        """Whoever asks for edges will still find leaves."""
        if self.inputs is not None and self.unmade:
            leaves = zip(self.unmade, self.leaves())
            self.unmade += tuple([leaf if known.__class__ is Unmade else None
                                  for known, leaf in leaves])  # fmt: skip
        self.inputs = None

    @property
    def plan(self) -> Split | None:  # type: ignore[override]
        return None if self.split.function.customs.states else self.split

    def call_types(self) -> tuple[tuple[TensorType, ...], tuple[TensorType, ...]]:
        """Of what has gradients: the inputs, the results."""
        inputs = self.split.function.trace.inputs
        return tuple([inputs[k].var.type for k in self.split.wanted]), self.out_types

    @property
    def out_types(self) -> tuple[TensorType, ...]:
        return self.split.function.out_types  # type: ignore[no-any-return]

    def order(self, silent: frozenset[int]) -> Sequence[int]:
        return self.split.arrivals(self.numbers, silent)

    def left_to_read(self, silent: frozenset[int], at: int | None) -> Any:
        if at is None:
            return Reads(self.split.as_eager.inputs, frozenset())
        return self.split.left_to_read(self.numbers, silent, at)

    def ops_after(self, part: Any) -> Any:
        return ops_after(self, part)

    def kept(self) -> Any:
        if self.reference is None:
            self.watch_inputs()
        return self.inputs, self.held, self.before, self.came, kept_arrays(self)

    def watched(self, kept: Any = ((),)) -> Any:
        return self.inputs or kept[0]

    def take_back(self, kept: Any, before: Any, exposed: Any) -> None:
        self.inputs, self.held, known, self.came, arrays = kept
        self.saved = arrays if self.saved is None else self.saved
        self.before = {**before, **(known or {})} or None
        self.exposed = {**exposed, **self.exposed}
        self.watch_inputs()

    @property
    def relays(self) -> bool:
        """Do its edges lead to the nodes of its ops, one for each result?"""
        return self.expansion.__class__ is Expansion and self.edges is self.expansion.edges

    def relay(self, number: int) -> Any:
        if self.relays:
            return self.edges[number]
        position = self.split.function.handed.get(number)
        wanted = self.split.wanted
        return self.edges[wanted.index(position)] if position in wanted else None

    def behind(self, number: int) -> list[Any]:
        if self.relays:
            return [self.edges[number]]
        return [self.edges[k] for k in self.split.function.led_to(self.split.wanted, number)]

    def passes(self, number: int) -> Any:
        return () if self.relays else self.split.function.passed[number]

    def by_ops(self, grads: list[Any]) -> tuple[Expanded, list[Any]]:
        """What makes the nodes of ops run instead, and the edges of all results into them."""
        self.numbers, error = numbers_of(grads), Rewritten("")
        own, edges = self.edges, edges_of(self, error)
        self.edges = self.expansion.edges
        return Expanded(error, edges, [g for g in grads if g is not None], own), self.edges

    def serve(self, freed: Any, needed: Any) -> Any:
        return serve(self, freed, needed)

    def is_stale(self) -> bool:
        """Was anything written that backward may look at?"""
        if self.before is not None or self.expansion is not None or replaced(self):
            return True
        for tensor, version in zip(self.inputs, self.versions):
            if tensor._storage is not None and tensor._storage.version != version:
                return True
        held = self.results_held().values()
        return any(storage.version != version for _, storage, version in held)

    def apply(self, grads: list[Any]) -> list[Any]:
        self.numbers, self.arrived = numbers_of(grads), grads
        try:
            if self.expansion is not None:
                raise Unreadable("" if self.freed is None else self.freed.message())
            if self.came and self.split.shared.is_met(self.came, self.numbers):
                raise Unreadable(self.freed.message())
            return self.gradients(grads)
        except Unreadable as error:
            arrived = [g for g in grads if g is not None]
            own, edges = self.edges, edges_of(self, error)
            if state.grad_enabled:  # gradients lead to nodes of ops as well, which wait for all
                self.edges = self.expansion.edges
            raise Expanded(error, edges, arrived, own) from None

    def gradients(self, grads: list[Any]) -> list[Any]:
        """Those of the inputs in `wanted`; raises Unreadable, where eager reads a value again."""
        if self.moved:
            raise Rewritten("")
        if self.held is not None:
            self.check_results()
        if self.exposed or self.shown:
            self.notice_writes()
        arrived = [g for g in grads if g is not None]
        if (self.split.kept or self.left) and needs_ops(self):
            raise Rewritten("")
        if ANOMALY or not self.split.function.customs.are_current():
            return self.apply_op_by_op(arrived)
        if state.grad_enabled or any_batched(arrived):
            if self.before is not None and self.is_rewritten():
                raise Rewritten("")
            return self.differentiable_apply(arrived)
        if self.before is not None and self.split.rereads:
            return self.apply_as_eager(grads)
        arguments = [*self.saved, *self.saved_input_arrays(), *[g._array for g in arrived]]
        laid = laid_out(self, arrived)
        if laid is not None:
            return self.spread(laid.left, laid.run(arguments, arrived))
        backward, left = self.split.for_gradients(self.numbers)
        return self.spread(left, backward.finish(backward.call(*arguments), ()))

    def before_replacement(self, tensor: Tensor) -> None:
        note_replacement(self, tensor)

    def at_once(self, number: int, gradient: Any, keep: bool) -> bool:
        way = self.split.to_leaves.get(number)
        if way is None:
            customs = self.split.function.customs
            way = ToLeaves(self.split, number)
            if customs.states:
                way = Careful(way, customs)
            self.split.to_leaves[number] = way
        return way.serve(self, gradient, keep)  # type: ignore[no-any-return]

    def inputs_before(self) -> list[Tensor]:
        """The inputs and random states as they were at the call."""
        inputs = [self.as_before(k) for k in range(len(self.inputs))]
        return inputs + [Tensor._wrap(snapshot.state(), uint8) for snapshot in self.states]

    def inputs_now(self) -> list[np.ndarray]:
        """The same as arrays, as they are now: for how they lie in memory."""
        states = [snapshot.state() for snapshot in self.states]
        return [*map(memory_of, self.inputs), *states]

    def apply_op_by_op(self, arrived: list[Any]) -> list[Any]:
        """See Note [Custom backwards]."""
        return gradients(self.split.function, self, self.inputs_before(), arrived)

    def differentiable_apply(self, arrived: list[Any]) -> list[Any]:
        """create_graph: backward as a compiled function of the same inputs."""
        inputs = self.inputs_before()
        laid = None if any_batched(arrived) else laid_out(self, arrived, LaidOutAgain)
        if laid is not None:
            return self.spread(laid.left, laid.run(inputs, arrived))
        function, left = self.split.function.gradient(self.split.wanted, self.numbers)
        return self.spread(left, function.run([*inputs, *arrived]))

    def spread(self, left: Sequence[int], found: list[Any]) -> list[Any]:
        """None for inputs that none of the gradients given leads to: they get none at all."""
        if len(left) == len(self.split.wanted):
            return found
        result: list[Any] = [None] * len(self.split.wanted)
        for k, grad in zip(left, found):
            result[k] = grad
        return result

    def apply_as_eager(self, grads: list[Any]) -> list[Any]:
        """See Note [Written inputs]."""
        as_eager = self.split.as_eager
        for position in as_eager.looked_at(self.numbers, counted=True):
            self.checked(position)
        states = [snapshot.state() for snapshot in self.states]
        now = [t._array for t in self.inputs]
        known = {**self.before, **self.given}
        before = [known.get(k, array) for k, array in enumerate(now)]
        results = {k: held[0] for k, held in self.results_held().items()}
        arrived = {k: g._array for k, g in enumerate(grads) if g is not None}
        left, types = self.split.left(self.numbers)
        values = [*before, *states], [*now, *states]
        found = as_eager.gradients(*values, results, arrived, left)
        return self.spread(left, [Tensor._wrap(a, t.dtype) for a, t in zip(found, types)])

    def as_before(self, position: int) -> Tensor:
        """An input as it was at the call, with its history."""
        known = {**(self.before or {}), **self.given}
        counted = self.split.as_eager.looked_at(self.numbers, counted=True)
        if position not in known:
            old = old_tensor(self, position)
            if old is not None:
                return old
            return self.checked(position) if position in counted else self.inputs[position]
        if position in counted:
            self.checked(position)
        tensor = Tensor._wrap(known[position], self.inputs[position].dtype)
        edge = history(self.inputs[position])
        if edge is not None:
            attach_edge(tensor, edge)
        return tensor

    def checked(self, position: int) -> Tensor:
        tensor = self.inputs[position]
        if tensor._storage is not None:
            self.check(tensor._storage, self.versions[position], f"input {position}")
        return tensor

    def check_results(self) -> None:
        """Where eager kept results for the gradients that arrived, nobody may have written."""
        held = self.results_held()
        for number in self.numbers:
            for position in self.split.function.reread[number]:
                _, storage, version = held[position]
                self.check(storage, version, f"result {position}")

    def check(self, storage: Storage, version: int, what: str) -> None:
        if storage.version == version:
            return
        raise Unreadable(
            "one of the variables needed for gradient computation has been modified by an "
            f"inplace operation: {what} of compiled {self.split.function.name}, called at "
            f"{describe_place(self.place)}, is at version {storage.version}; expected "
            f"version {version} instead. It was changed at {describe_place(storage.written)}. "
            "Hint: clone() the value before changing it."
        )

    def saved_input_arrays(self) -> list[np.ndarray]:
        """The inputs that backward is given again, but those in `kept`; eager may not look at all
        of them now."""
        split = self.split
        looked_at = split.as_eager.looked_at(self.numbers, counted=True)
        if split.kept:
            check_kept(self, looked_at)
        return [self.checked(k)._array if k in looked_at else self.inputs[k]._array
                for k in split.parts.saved_inputs[len(split.kept) :]]  # fmt: skip

    def release(self, freed: Any) -> None:
        self.freed = freed
        self.came = self.came.union(self.numbers)
        if not self.split.shared.left(self.came):
            self.let_go()

    def let_go(self) -> None:
        """Nothing is left to do with what the call was given."""
        self.forget_inputs()
        self.saved = self.held = self.before = None
        if self.reference is not None:
            readers.discard(self.reference)
