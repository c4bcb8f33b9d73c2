"""Compiled calls inside `saved_tensors_hooks` (and so those that a checkpoint runs).

Note [Packed calls]
    Hooks see each value that eager saves, in eager's order, and backward computes with what they
    hand back. So forward also gives the values inside that eager saves, these are packed when it
    has run, and backward is a compiled function of what is unpacked (`ir/slots.py`).

    A hook that raises stops eager in the middle, as checkpoints do once they have recomputed all
    values. Where forward has written or drawn more by then than eager has, it is taken back, and
    the body runs eagerly, without calling again the hooks that were called.

Note [Packed in part]
    Where a backward came to a part only of such a call (Note [Freed in part]), the nodes of its ops
    take its place. What they saved is in the hands of hooks, so the ops run on zeros, only to make
    nodes, and each is given what was packed for it. So they do at once where leaves have hooks as
    well: hooks of the user's see in which order values are unpacked and leaves are served.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .arrivals import arrivals, stops
from .compiled_node import numbers_of
from .executor import Executor
from .expanding import link, zeros
from .graph_function import GraphFunction
from .in_part import Part, serve
from .ir.bind import interpreting, state
from .ir.dims import plain_values
from .ir.graph import RESULT, Output
from .ir.inline import inline
from .ir.slots import Slot, Slots
from .ir.types import TensorType
from .plain import is_library
from .tracer.derive import is_silent
from .tracer.eager import history
from .tracer.engine import Expanded
from .tracer.hooks import active
from .tracer.modes import set_grad_mode
from .tracer.quiet import quiet, restore
from .tracer.saved import OWN, PackedSaved
from .tracer.tape import AccumulateGrad, Node, next_sequence, user_place
from .tracer.tensor import Tensor


class PackFailed(Exception):
    """A hook raised `error` after some values were packed; `packed` is None if all is done."""

    def __init__(self, packed: list[Any] | None, error: BaseException):
        super().__init__(str(error))
        self.packed, self.error = packed, error

    @property
    def is_done(self) -> bool:
        """Is all as eager leaves it?"""
        return self.packed is None

    def run_eagerly(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Runs until the hook's error; what was packed is not packed again."""
        if self.packed is None:
            raise self.error
        known = iter(self.packed)

        def pack(tensor: Tensor) -> Any:
            for packed in known:
                return packed
            raise self.error

        active.saved.append((pack, active.saved[-1][1]))
        try:
            return function(*args, **kwargs)
        finally:
            active.saved.pop()


@contextlib.contextmanager
def packing_outside(recorder: Any) -> Iterator[None]:
    """Hooks that are around a recorded call are no part of it; the recorder is told of values."""
    if not active.saved or not state.grad_enabled:
        yield
        return
    user_pack, user_unpack = active.saved[-1]
    recorder.packed = []
    recording = weakref.ref(recorder)  # which nodes must not keep

    def pack(tensor: Tensor) -> Any:
        packed = recording().packed
        packed.append((id(tensor), TensorType(tensor.dtype, tensor._array.shape)))
        with interpreting(state.bottom):
            return user_pack(tensor)

    def unpack(packed: Any) -> Any:
        if state.top is recording():
            recorder = recording()
            recorder.refuse("backward runs inside the function, and saved_tensors_hooks around it")
        return user_unpack(packed)

    active.saved.append((pack, unpack))
    try:
        yield
    finally:
        active.saved.pop()


def packing_problem(recording: Any) -> str:
    """Why calls like a recorded one can't be compiled where hooks are around them."""
    packed = recording.recorder.packed
    if packed is None:
        return ""
    if recording.recorder.branches:
        return "saved_tensors_hooks are around it, and it branches on values"
    found = Slots(
        recording.graph, given_gradients(recording.flags), [], recording.recorder.needing
    ).slots
    types = [(slot.var.dtype, plain_values(tuple(slot.var.shape))) for slot in found]
    if types != [(type_.dtype, type_.shape) for _, type_ in packed]:
        return "saved_tensors_hooks are around it, and its graph does not tell what eager saves"
    return ""


def given_gradients(flags: Sequence[bool]) -> list[int]:
    """The inputs that require grad."""
    return [k for k, flag in enumerate(flags) if flag]


class PackedFunction:
    """A GraphFunction whose calls hand what they save to hooks; see Note [Packed calls]."""

    def __init__(self, segment: Any):
        self.function: GraphFunction = segment.function
        self.wanted = given_gradients(segment.flags)
        self.end = segment.end
        self.slots = Slots(self.function.trace, self.wanted, self.function.differentiable,
                           segment.facts.needing, self.function.unseen)  # fmt: skip
        self._forward: Any = None
        self._orders: dict[Any, list[int]] = {}
        self._passed: dict[Any, frozenset[int]] = {}
        self._backward: dict[Any, tuple[Any, Any]] = {}

    @property
    def forward(self) -> Executor:
        if self._forward is None:
            graph = self.function._optimised("forward", self.slots.forward())
            self._forward = self.function.executor(graph)
        return self._forward  # type: ignore[no-any-return]

    def arrivals(self, given: tuple[int, ...], silent: frozenset[int]) -> list[int]:
        """As `Split.arrivals`."""
        if (given, silent) not in self._orders:
            values = [self.slots.seeds[k] for k in given]
            self._orders[given, silent] = arrivals(self.slots.graph, self.wanted, values, silent)
        return self._orders[given, silent]

    def passed(self, given: tuple[int, ...]) -> frozenset[int]:
        """The nodes of the graph to which the gradients numbered in `given` come."""
        if given not in self._passed:
            values = [self.slots.seeds[k] for k in given]
            found = stops(self.slots.graph, self.wanted, values, frozenset())
            self._passed[given] = frozenset(stop.sequence for stop in found if stop.position < 0)
        return self._passed[given]

    def backward(self, given: tuple[int, ...], again: bool) -> tuple[Any, Any]:
        """What computes gradients when those in `given` arrive, and what it is given."""
        found = self._backward.get((given, again))
        if found is None:
            made = self.slots.backward(given, again)
            settings = self.function.settings
            function = GraphFunction(made.graph, made.graph.name, settings=settings)
            found = self._backward[given, again] = (function, made)
        return found

    def run(self, inputs: list[Tensor], leaves: list[Any]) -> list[Tensor]:
        """The results for `inputs`, with history; `leaves` are those of the call."""
        forward, slots = self.forward, self.slots
        draws = [(g, g.snapshot()) for g in self.function.generators]
        before = [(inputs[k]._array, inputs[k]._array.copy()) for _, k in forward.writes]

        def take_back() -> None:
            for generator, known in draws:
                generator.resume(known)
            for array, values in before:
                np.copyto(array, values)

        try:
            arrays = forward.call(*[t._array for t in inputs])
        except Exception:
            take_back()
            raise
        outputs = [Tensor._wrap(arrays[k], dtype) for k, dtype in forward.results]
        roots = dict(zip((i.var for i in slots.graph.inputs), inputs))
        roots.update(zip((*slots.results, *slots.saved), outputs))
        node = CompiledFunctionBackward(self, inputs)
        try:
            node.pack(roots)
        except BaseException as error:
            stopped = slots.slots[len(node.saved)].node
            if stopped > slots.last_effect:
                forward.finish(arrays, inputs)
                self.end.count_writes(leaves)
                raise PackFailed(None, error) from error
            take_back()
            raise PackFailed([entry.packed for entry in node.saved], error) from error
        results = self.function.finished(forward, arrays, inputs)[: len(slots.results)]
        for number, position in enumerate(self.function.differentiable):
            tensor = results[position]
            tensor._node, tensor._nr, tensor._requires_grad = node, number, True
        return results


class CompiledFunctionBackward(Node):
    """The node of the results of a compiled call whose saved values went through hooks."""

    __module__ = "builtins"
    joins = True
    freed: Any = None
    arrived: Any = None
    expansion: Any = None  # see Note [Packed in part]
    relays = False  # do its edges lead to the nodes of its ops, one for each result?
    numbers: tuple[int, ...] = ()  # the gradients that arrived last
    passed: frozenset[int] = frozenset()  # the nodes of the graph that are freed

    def __init__(self, function: PackedFunction, inputs: list[Tensor]):
        self.function = function
        numbers = function.slots.numbers
        self.inputs = [t if i.var in numbers else None
                       for t, i in zip(inputs, function.slots.graph.inputs)]  # fmt: skip
        self.edges = tuple([history(inputs[k]) for k in function.wanted])
        self.saved: list[Any] = []  # a PackedSaved for each slot, None once it is freed
        self.sequence, self.place, self.extra = next_sequence(), user_place(), None

    @property
    def out_types(self) -> tuple[TensorType, ...]:
        return tuple(var.type for var in self.function.slots.seeds)

    def pack(self, roots: dict[Any, Tensor]) -> None:
        """Hands each value that eager saves to the hooks in force."""
        pair = active.saved[-1]
        for slot in self.function.slots.slots:
            tensor = looked_at(roots[slot.root], slot)
            edge = OWN if slot.var in self.function.slots.seed_numbers else (
                history(tensor) if slot.needs else None)  # fmt: skip
            self.saved.append(PackedSaved(pair, tensor, edge))

    def unpack(self, numbers: Sequence[int]) -> dict[int, Tensor]:
        """The values in these slots, the newest node's first."""
        slots = self.function.slots
        order = sorted(numbers, key=lambda k: (-slots.slots[k].node, k))
        return {k: self.saved[k].restore((self, slots.seed_numbers.get(slots.slots[k].var)))
                for k in order}  # fmt: skip

    def relay(self, number: int) -> Any:
        return self.edges[number] if self.relays else None

    def behind(self, number: int) -> Any:
        function = self.function
        if self.relays:
            return [self.edges[number]]
        if number >= len(function.function.differentiable):  # a value inside
            return self.edges
        return [self.edges[k] for k in function.function.led_to(function.wanted, number)]

    def passes(self, number: int) -> Any:
        known = () if self.relays else self.function.function.passed
        return known[number] if number < len(known) else ()

    def by_ops(self, grads: list[Any]) -> tuple[Expanded, list[Any]]:
        """As that of nodes without hooks."""
        self.numbers = numbers_of(grads)
        if self.expansion is None:
            self.expand()
        arrived = [g for g in grads if g is not None]
        own, edges = self.edges, self.ops_behind()
        self.edges, self.relays = tuple(self.expansion), True
        return Expanded(RuntimeError(self.error), edges, arrived, own), self.edges

    def apply(self, grads: list[Any]) -> list[Any]:
        self.numbers = numbers_of(grads)
        gone = not self.passed.isdisjoint(self.function.passed(self.numbers))
        if self.expansion is None and (gone or self.is_watched()):
            self.expand()
        if self.expansion is not None:
            arrived = [g for g in grads if g is not None]
            raise Expanded(RuntimeError(self.error), self.ops_behind(), arrived)
        function, made = self.function.backward(self.numbers, state.grad_enabled)
        values = self.unpack(made.slots)
        inputs = [*(self.inputs[k] for k in made.inputs), *(values[k] for k in made.slots),
                  *(g for g in grads if g is not None)]  # fmt: skip
        found = function.run(inputs)
        result: list[Any] = [None] * len(self.edges)
        for k, grad in zip(made.left, found):
            result[k] = grad
        return result

    @property
    def error(self) -> str:
        return "" if self.freed is None else self.freed.message()

    def is_watched(self) -> bool:
        """Can anybody see when values are unpacked, and when backward comes to leaves?"""
        leaves = [e[0] for e in self.edges if e is not None and e[0].__class__ is AccumulateGrad]
        entry = next((entry for entry in self.saved if entry is not None), None)
        if entry is None or all(map(is_silent, leaves)):
            return False
        return not is_library(getattr(entry.unpack, "__module__", None))

    def expand(self) -> None:
        """Nodes of ops take its place from now on; see Note [Packed in part]."""
        try:
            self.expansion = ops_of(self)
        except Exception:  # zeros do not do for an op
            if self.freed is not None:
                raise RuntimeError(self.error) from None

    def ops_behind(self) -> list[Any]:
        """For each gradient that arrived: where it goes among nodes of ops."""
        part = self.expansion
        if part.__class__ is Part:
            self.expand()
            part.free(self, self.expansion)
        return [self.expansion[number] for number in self.numbers]

    def serve(self, freed: Any, needed: Any) -> Any:
        return serve(self, freed, needed)

    def order(self, silent: frozenset[int]) -> Sequence[int]:
        return self.function.arrivals(self.numbers, silent)

    def kept(self) -> Any:
        return self.saved, self.passed

    def watched(self, kept: Any = None) -> Any:
        return ()  # all that backward reads is packed

    def take_back(self, kept: Any, *_: Any) -> None:
        self.saved, self.passed = kept

    def release(self, freed: Any) -> None:
        self.freed = freed
        self.passed = passed = self.passed | self.function.passed(self.numbers)
        self.saved = [None if slot.node in passed else entry
                      for slot, entry in zip(self.function.slots.slots, self.saved)]  # fmt: skip


def ops_of(node: CompiledFunctionBackward) -> list[Any]:
    """Edges into nodes of the ops behind a node, for each of its gradients.

    See Note [Packed in part].
    """
    slots, customs = node.function.slots, node.function.function.customs
    packed: dict[int, list[Any]] = {}
    for slot, entry in zip(slots.slots, node.saved):
        if entry is not None:
            packed.setdefault(slot.node, []).append(entry)
    numbers = itertools.count()

    def run(op: Any, operands: Any) -> Any:
        number = next(numbers)
        entries = packed.get(number, ())
        known = iter(entries)
        pair = (lambda tensor: next(known).packed, entries[0].unpack) if entries else None
        with set_grad_mode(not slots.needing.isdisjoint(op.outputs)), hooks_in_force(pair):
            results = customs.run(op, operands)
        made = results[0] if isinstance(results, tuple) else results
        if number in node.passed and made._node is not None:
            made._node.release(node.freed)
        return results

    values = zeros(slots.graph)
    for k, known in enumerate(node.inputs):
        values[k] = values[k] if known is None else known  # a Python number
    link(values, node.function.wanted, node.edges)
    graph = slots.graph.unmarked()
    graph = graph.replace(outputs=tuple(Output(var, RESULT) for var in slots.seeds))
    token = quiet()
    try:
        found = inline(graph, values, again=True, run=run)
    finally:
        restore(token)
    return [(tensor._node, tensor._nr) for tensor in found]


@contextlib.contextmanager
def hooks_in_force(pair: Any) -> Iterator[None]:
    """The hooks for what ops save now."""
    if pair is None:
        yield
        return
    active.saved.append(pair)
    try:
        yield
    finally:
        active.saved.pop()


def looked_at(tensor: Tensor, slot: Slot) -> Tensor:
    """The value in a slot, as a view of the tensor at its root."""
    with set_grad_mode(False):
        for node, number in slot.chain:
            seen = node.op(tensor, **dict(node.attrs))
            tensor = seen[number] if isinstance(seen, tuple | list) else seen
    return tensor
