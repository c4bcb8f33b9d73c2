"""Binding a trace to the tensors it reads from outside, so that one native call does it all.

As long as parameters, buffers, gradients and the Python values that guards look at stay where they
are, their addresses are part of the callable, and a few words of memory tell that they do
(`runtime/watch.py`). What is left per call are the arguments, which native code checks too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .eager_graph import EAGER
from .finishing import NAMES, Ending, native_history
from .for_inference import ForInference
from .holders import as_tensor, number_array, with_history
from .ir.bind import epoch, state
from .native_ending import after, spent_by, storages
from .recycling import is_private
from .replay import MISS
from .runtime import watch
from .runtime.effects import Effects, States
from .runtime.expected import Argument as Expected
from .runtime.expected import Array, Fixed, Float, Ignored
from .runtime.history import History, Input
from .sharing import shared_arguments
from .sources import (
    Argument,
    Captured,
    Direct,
    GradOf,
    HyperParameter,
    Number,
    Placed,
    Reached,
    Whole,
)
from .tracer.generator import SNAPSHOT_SLOTS, Snapshot
from .tracer.hooks import uses as hook_uses
from .tracer.readers import readers
from .tracer.tensor import Tensor
from .unpacking import Writer

NO_INFERENCE = (("_mark", "inference"),)
MAX_TENSORS = 32  # among the arguments: each pair is looked at for shared memory


class Unbindable(Exception):
    """Something of the trace must be looked at anew at each call."""


class Binding:
    """`call` takes the arguments of a replay, and answers with what it made, or MISS; `ending` has
    the code that makes the result of that. `lines` are all of this as text, which uses `names`.
    With `packed`, `call` does it all, and takes `(args, kwargs)`."""

    def __init__(self, trace: Any, leaves: list[Any], specialised: set[int], taken: Writer):
        if watch.trouble() or trace.bound or shared_arguments(leaves) is not None:
            raise Unbindable
        if sum(isinstance(leaf, Tensor) for leaf in leaves) > MAX_TENSORS:
            raise Unbindable
        self.trace, self.segment, self.leaves = trace, trace.root, leaves
        self.function, self.end = self.segment.function, self.segment.end
        self.wanted = self.segment.wanted(trace.history) if self.function.differentiable else ()
        self.executor = self.function.forward(self.wanted)
        if self.executor.native is None or self.end.assigned:
            raise Unbindable
        split = self.function.split(self.wanted) if self.wanted else None
        if split is not None and (split.overwritten or split.handed_on or self.function.parts):
            raise Unbindable  # these are copied before the call, or results get other memory
        self.drawing = bool(self.wanted and self.function.generators)
        if hook_uses.value:
            raise Unbindable
        self.words = [*watch.of_slot(hook_uses, "value"), *watched(trace.environment)]
        ((address, _),) = watch.of_slot(self.executor, "call")
        self.words.append((address, id(self.executor.direct)))
        if self.executor.writes:  # nobody must have to be told
            ((address, _),) = watch.of_size(readers)
            self.words.append((address, 0))
        if not trace.environment.varies_in_modules:  # they tell of changes by epochs
            self.words += watch.of_slot(epoch, "value")
        self.fixed: dict[int, int] = {}
        self.held: list[int] = []
        self.reached: list[tuple[Reached, Any]] = []  # what was found there
        self.arguments: list[Expected] = [
            Ignored() if not trace.reads(k) else (
                Fixed(leaf) if k in specialised else self.expected(leaf))
            for k, leaf in enumerate(leaves)
        ]  # fmt: skip
        self.places = [-1] * len(leaves)
        self.reads: list[tuple[int, Any]] = []  # HyperParameters, and what is Placed
        for place, source in enumerate(self.segment.sources):
            self.bind(place, source)
        self.unset = [self.tensor_of(owner) for owner, was_none in trace.grad_guards if was_none]
        for owner, was_none in trace.grad_guards:
            ((address, now),) = watch.of_slot(self.tensor_of(owner), "_grad")
            self.words.append((address, id(None) if was_none else now))
        self.numbers = self.hyper_parameters()
        self.count_writes()
        self.recycled = self.recycle_gradients()
        self.linked = (
            bool(self.wanted)
            and not self.recycled
            and all(isinstance(source, Argument | Captured | Reached | Number)
                    for source in self.segment.sources)
        )  # fmt: skip  # is history given by native code?
        self.plan_results()
        self.after = after(self)
        self.ending = self.finished(taken)
        self.packed = self.ending.is_native() and taken.taking is not None
        self.taking = taken.taking if self.packed else None
        self.call = self.executor.native.runnable.bound(
            self.arguments, self.places, self.fresh, self.fixed, **self.native_options()
        )
        if self.call is None:
            raise Unbindable

    def native_options(self) -> dict[str, Any]:
        """What native code does beside running."""
        check = self.executor.native.runnable.check

        def failed(status: int) -> Any:
            if status > 0:
                check(status)
            return MISS

        modes = watch.modes(state, top=state.top, grad_enabled=state.grad_enabled,
                            inference=state.inference)  # fmt: skip
        states = None
        if self.linked and self.drawing:  # backward may need to know what was drawn
            states = States(self.function.generators, Snapshot, SNAPSHOT_SLOTS)
        effects, answer = self.after or (Effects(EAGER, versions=storages(self)), None)
        single = self.after is not None and self.end.structure is None
        return {
            "tuple_result": not single, "effects": effects, "answer": answer,
            "numbers": self.numbers and (self.numbers.unchanged, self.numbers.renew),
            "states": states, "depth": 0 if self.packed else self.trace.frames,
            "watched": self.words, "held": self.held, "modes": modes, "declined": MISS,
            "failed": failed, "counter": self.trace.counter, "taking": self.taking,
            "history": self.history() if self.linked else None,
            "recycles": True, "name": "bound_replay", "keep": [self.trace, self.numbers],
        }  # fmt: skip

    def history(self) -> History:
        split = self.function.split(self.wanted)
        inputs = [self.input(place) for place in range(len(self.segment.sources))]
        linked = [k in self.function.differentiable for k in range(len(self.executor.results))]
        return native_history(split, inputs, linked)

    def input(self, place: int) -> Input:
        """What is read at a place, as the node of native code keeps it."""
        source = self.segment.sources[place]
        if not isinstance(source, Number):
            return Input(source.place) if isinstance(source, Argument) else (
                Input(tensor=self.tensor_of(source)))  # fmt: skip
        if isinstance(source.read, Argument):
            return Input(source.read.place, number=number_array())
        return Input(cell=self.fixed[place], number=number_array())

    def before(self) -> list[str]:
        """The lines before the call."""
        if self.drawing and not self.linked:
            return ["states = [generator.snapshot() for generator in generators]"]
        return []

    def lines(self) -> list[str]:
        """From named arguments to `ending.result`, or the end of the function with `missing`."""
        return [
            *self.before(),
            f"made = call({', '.join(self.ending.arguments)})",
            "if made is missing: return missing",
            *self.ending.lines,
        ]

    def names(self) -> dict[str, Any]:
        return {**NAMES, "call": self.call, "generators": self.function.generators}

    # --- inputs ---

    def tensor_of(self, source: Any) -> Any:
        """A tensor that stays where it is as long as this binding does."""
        if not isinstance(source, Captured | Reached):
            raise Unbindable
        tensor = source(())
        if isinstance(source, Reached):
            self.reached.append((source, tensor))
        return tensor

    def expected(self, leaf: Any) -> Expected:
        if not isinstance(leaf, Tensor):
            return Float() if type(leaf) is float else Fixed(leaf)
        facts = (("dtype", leaf.dtype), ("_requires_grad", leaf._requires_grad))
        array = leaf._array
        writes = any(isinstance(s, Argument) and self.leaves[s.place] is leaf
                     for s in self.written())  # fmt: skip
        kept = any(keeps and isinstance(s, Argument) and self.leaves[s.place] is leaf
                   for s, keeps in zip(self.segment.sources, self.segment.kept))  # fmt: skip
        plain = Array(leaf.dtype.storage, array.shape, writeable=writes, holder=type(leaf),
                      slot="_array", facts=facts, unlike=NO_INFERENCE if kept else ())  # fmt: skip
        if writes and not array.flags.c_contiguous:
            raise Unbindable  # native code writes rows, and results may lie as the argument does
        return plain if writes else plain.laid_out_as(array)

    def written(self) -> list[Any]:
        """Sources of the inputs that the graph writes."""
        return [self.segment.sources[target] for _, target in self.executor.writes]

    def bind(self, place: int, source: Any) -> None:
        if isinstance(source, Argument):
            self.places[source.place] = place
        elif isinstance(source, Captured | Reached):
            self.bind_tensor(place, self.tensor_of(source))
        elif isinstance(source, GradOf):
            owner = self.tensor_of(source.owner)
            self.words += watch.of_slot(owner, "_grad")
            self.bind_tensor(place, owner._grad)
        elif isinstance(source, Number) and isinstance(source.read, Argument):
            self.places[source.read.place] = place
        elif isinstance(source, Number) and isinstance(source.read, HyperParameter | Placed):
            self.reads.append((place, source.read))
        else:
            raise Unbindable

    def bind_tensor(self, place: int, tensor: Any) -> None:
        if tensor is None:  # the call itself took a gradient away
            raise Unbindable
        array = tensor._array
        flags = array.flags
        if type(array) is not np.ndarray or not (flags.c_contiguous and flags.aligned) or (
                not flags.writeable):  # fmt: skip
            raise Unbindable
        for slot in ("_array", "_requires_grad", "dtype"):
            self.words += watch.of_slot(tensor, slot)
        self.words += watch.of_array(array)
        self.fixed[place] = array.__array_interface__["data"][0]
        self.held.append(id(array))

    def hyper_parameters(self) -> Numbers | None:
        guards = self.trace.comparisons
        if any(not isinstance(read, HyperParameter | Placed) for read, *_ in guards):
            raise Unbindable
        environment = self.trace.environment
        if not (self.reads or guards or environment.loose or environment.varies_in_modules):
            return None
        numbers = Numbers([read for _, read in self.reads], guards, self)
        for k, (place, _) in enumerate(self.reads):
            self.fixed[place] = numbers.cells[k:].ctypes.data
        return numbers

    # --- outputs ---

    def count_writes(self) -> None:
        """How often each storage is written by a call: of tensors from outside, of arguments."""
        self.storages: list[tuple[Any, int]] = []
        self.argument_writes: list[tuple[int, int]] = []
        for source, count in [*((s, 1) for s in self.written()), *self.end.more_writes]:
            if isinstance(source, Argument):
                self.argument_writes.append((source.place, count))
                continue
            tensor = self.tensor_of(source.owner)._grad if isinstance(source, GradOf) else (
                self.tensor_of(source))  # fmt: skip
            self.storages.append((tensor.storage_, count))
            self.words += watch.of_slot(tensor, "_storage")

    def recycle_gradients(self) -> set[int]:
        """Results that go into the memory of the last call's; see Note [Recycled gradients]."""
        runnable = self.executor.native.runnable
        outputs = [k for k, r in enumerate(runnable.program.results) if r.target is None]
        uses = [m.number for m in (*self.end.makers, *(m for _, m in self.end.grad_effects))
                if hasattr(m, "number")]  # fmt: skip
        recycled = set()
        for owner, maker in self.end.grad_effects:
            if not isinstance(owner, Captured) or not isinstance(maker, Direct):
                continue
            unset = any(owner.tensor is tensor for tensor in self.unset)
            version, _ = self.function.versions.get(maker.number, (0, None))
            if unset or uses.count(maker.number) > 1 or not is_private(owner.tensor, version):
                continue
            grad = owner.tensor._grad
            position, dtype = self.executor.results[maker.number]
            at = outputs.index(position)
            expected = runnable.results[at]
            if grad.dtype is not dtype or grad._array.shape != expected.shape:
                continue
            self.words += watch.of_slot(owner.tensor, "_grad")
            self.words += watch.of_body(grad)
            if version:
                self.words += watch.of_body(grad._storage)
            holders = 1 + bool(version)
            self.words += [(id(grad._array), holders), *watch.of_array(grad._array)]
            self.fixed[len(runnable.inputs) + at] = grad._array.__array_interface__["data"][0]
            self.held.append(id(grad._array))
            recycled.add(maker.number)
        return recycled

    def plan_results(self) -> None:
        """What `call` makes: tensors for results, arrays for what backward will need."""
        runnable = self.executor.native.runnable
        recycled = {self.executor.results[number][0] for number in self.recycled}
        dtypes = dict(self.executor.results)
        with_node = self.function.differentiable if self.linked else ()
        numbers = {self.executor.results[k][0]: n for n, k in enumerate(with_node)}
        made = [k for k, r in enumerate(runnable.program.results) if r.target is None]
        spent = spent_by(self)
        unseen = {self.executor.results[m.number][0]: m.shape for m in self.end.makers
                  if isinstance(m, Whole)}  # fmt: skip
        inferred = {self.executor.results[m.number][0] for m in self.end.makers
                    if isinstance(m, ForInference)}  # fmt: skip
        self.unseen = self.unseen_condition()
        bare = None if self.unseen is None else self.executor.results[self.unseen][0]
        self.fresh: dict[int, Array] = {}
        self.made_at: dict[int, int] = {}  # where an output of the graph is among what is made
        # what is shown comes first, what is saved last
        for at, position in sorted(enumerate(made), key=lambda pair: pair[1] not in dtypes):
            if position in recycled:
                continue
            expected = runnable.results[at]
            if position in dtypes and position != bare:
                expected = as_tensor(expected, dtypes[position])
            if position in numbers:
                expected = with_history(expected, numbers[position])
            elif position in spent:
                expected = with_history(expected, 0)
            if position in inferred:
                marked = {**dict(expected.facts), "_mark": "inference"}
                expected = replace(expected, facts=tuple(marked.items()))
            if position in unseen:
                expected = replace(expected, facts=(*expected.facts, ("_unseen", unseen[position])))
            self.made_at[position] = len(self.fresh)
            self.fresh[at] = expected

    def unseen_condition(self) -> int | None:
        """The result that needs no tensor: native code looks at it, and nobody else."""
        number = getattr(self.end, "unseen", None)
        if number is None or (self.wanted and not self.linked):
            return None
        positions = [position for position, _ in self.executor.results]
        return number if positions.count(positions[number]) == 1 else None

    def fresh_at(self, position: int) -> Array:
        """What is made for an output of the graph."""
        return [*self.fresh.values()][self.made_at[position]]

    def finished(self, taken: Writer) -> Ending:
        """How what was made becomes the result of the call."""
        if self.after is not None:
            return Ending(taken, {}, 0)
        results, end = self.executor.results, self.end
        ending = Ending(taken, {number: self.made_at[k] for number, (k, _) in enumerate(results)
                                if number not in self.recycled}, len(results))  # fmt: skip
        ending.note_writes(self.storages, self.argument_writes)
        if self.wanted and not self.linked:
            saved = [self.made_at[k] for k in self.executor.saved]
            ending.give_history(self.function.split(self.wanted), self.segment.sources, saved)
        for owner, maker in self.new_gradients():
            ending.set_grad(owner, maker)
        for owner, flag in end.flag_effects:
            ending.set_flag(owner, flag)
        ending.give(end.structure, end.makers)
        return ending

    def new_gradients(self) -> list[tuple[Any, Any]]:
        """Tensors whose `.grad` the call sets, and makers of what to."""
        return [(owner, maker) for owner, maker in self.end.grad_effects
                if getattr(maker, "number", None) not in self.recycled]  # fmt: skip


class Numbers:
    """Hyper-parameters and floats that vary in native memory, read again when any has changed."""

    def __init__(self, reads: list[Any], guards: list[Any], binding: Binding):
        self.reads, self.guards, self.reached = reads, guards, binding.reached
        trace = self.trace = binding.trace
        self.cells = np.empty(max(1, len(reads)))
        self.held: list[Any] = []  # what was read: no other object can be where it is
        groups = {id(r.group): r.group for r in (*reads, *(read for read, *_ in guards))
                  if isinstance(r, HyperParameter)}  # fmt: skip
        words = [word for group in groups.values() for word in watch.of_dict(group)]
        words += [word for guard in trace.environment.loose for word in words_of(guard)]
        if trace.environment.varies_in_modules:
            words += watch.of_slot(epoch, "value")
        self.valid = np.ones(1, np.uint64)  # is one of the words
        words.append((self.valid.ctypes.data, 1))
        self.unchanged: Any = watch.watch(words)
        if not self.fill():
            raise Unbindable

    def renew(self) -> bool:
        """Brings the cells up to date, when a word differs. False if a guard on one fails."""
        self.valid[0] = 1
        watch.renew(self.unchanged)
        self.valid[0] = 0  # until all is seen to be so
        environment = self.trace.environment
        if environment.loose_failure() is not None:
            return False
        if any(source(()) is not tensor for source, tensor in self.reached):
            return False  # what has varying floats beside it is no longer watched
        if environment.varies_in_modules and (self.trace.outside_change() is not None
                                              or environment.failure() is not None):  # fmt: skip
            return False
        for read, how, other, outcome in self.guards:
            if bool(how(read(()), other)) is not outcome:
                return False
        self.valid[0] = well = self.fill()
        return well

    def fill(self) -> bool:
        self.held = []
        for k, read in enumerate(self.reads):
            value = read(())
            self.held.append(value)
            if type(value) is not float and type(value) is not int:
                return False
            self.cells[k] = value
        return True


def watched(environment: Any) -> watch.Words:
    """The words behind a trace's guards on Python values."""
    try:
        return [*environment.words(), *environment.words_of_modules()]
    except watch.Unwatchable as error:
        raise Unbindable from error


def words_of(guard: Any) -> watch.Words:
    """The words behind one of them."""
    try:
        return guard.words(watch)  # type: ignore[no-any-return]
    except watch.Unwatchable as error:
        raise Unbindable from error
