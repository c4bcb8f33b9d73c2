"""Compiled calls inside `saved_tensors_hooks` (and so those that a checkpoint runs).

Note [Packed calls]
    Hooks see each value that eager saves, in eager's order, and backward computes with what they
    hand back. So forward also gives the values inside that eager saves, these are packed when it
    has run, and backward is a compiled function of what is unpacked (`ir/slots.py`).

    A hook that raises stops eager in the middle, as checkpoints do once they have recomputed all
    values. Where forward has written or drawn more by then than eager has, it is taken back, and
    the body runs eagerly, without calling again the hooks that were called.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .compiled_node import numbers_of
from .executor import Executor
from .graph_function import GraphFunction
from .ir.bind import interpreting, state
from .ir.dims import plain_values
from .ir.slots import Slot, Slots
from .ir.types import TensorType
from .tracer.eager import history
from .tracer.hooks import active
from .tracer.modes import set_grad_mode
from .tracer.saved import OWN, PackedSaved
from .tracer.tape import Node, next_sequence, user_place
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


@contextmanager
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
                           segment.facts.needing)  # fmt: skip
        self._forward: Any = None
        self._backward: dict[Any, tuple[Any, Any]] = {}

    @property
    def forward(self) -> Executor:
        if self._forward is None:
            graph = self.function._optimised("forward", self.slots.forward())
            self._forward = self.function._executor(graph)
        return self._forward  # type: ignore[no-any-return]

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
    numbers: tuple[int, ...] = ()  # the gradients that arrived last
    spent: frozenset[int] = frozenset()  # those that may not arrive again

    def __init__(self, function: PackedFunction, inputs: list[Tensor]):
        self.function = function
        numbers = function.slots.numbers
        self.inputs = [t if i.var in numbers else None
                       for t, i in zip(inputs, function.slots.graph.inputs)]  # fmt: skip
        self.edges = tuple([history(inputs[k]) for k in function.wanted])
        self.saved: list[PackedSaved] = []
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

    def behind(self, number: int) -> Any:
        function = self.function
        if number >= len(function.function.differentiable):  # a value inside
            return self.edges
        return [self.edges[k] for k in function.function.led_to(function.wanted, number)]

    def apply(self, grads: list[Any]) -> list[Any]:
        self.numbers = numbers_of(grads)
        if self.freed is not None and not self.spent.isdisjoint(self.numbers):
            raise RuntimeError(self.freed.message())
        function, made = self.function.backward(self.numbers, state.grad_enabled)
        values = self.unpack(made.slots)
        inputs = [*(self.inputs[k] for k in made.inputs), *(values[k] for k in made.slots),
                  *(g for g in grads if g is not None)]  # fmt: skip
        found = function.run(inputs)
        result: list[Any] = [None] * len(self.edges)
        for k, grad in zip(made.left, found):
            result[k] = grad
        return result

    def release(self, freed: Any) -> None:
        self.freed, spends = freed, self.function.function.spends
        for number in self.numbers:  # beyond the results are values inside, which all may share
            self.spent |= spends[number] if number < len(spends) else self.everything
        if self.spent == self.everything:
            self.saved = self.inputs = []

    @property
    def everything(self) -> set[int]:
        return {*range(len(self.out_types))}


def looked_at(tensor: Tensor, slot: Slot) -> Tensor:
    """The value in a slot, as a view of the tensor at its root."""
    with set_grad_mode(False):
        for node, number in slot.chain:
            seen = node.op(tensor, **dict(node.attrs))
            tensor = seen[number] if isinstance(seen, tuple | list) else seen
    return tensor
