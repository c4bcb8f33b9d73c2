"""Records running ops into a Graph. The first call of a compiled function *is* the eager call.

Note [Functional recording]
    Eager tensors share memory and are written in place; the graph is functional. Every piece of
    memory has a current Var; a tensor is a chain of view ops into it. Reading a tensor after its
    memory was written looks through the chain again; writing one puts the new value back through
    it. Memory that came from outside and was written becomes a write-back of the graph.

Note [Stop gradients]
    IR has no grad mode: where eager cut the history (detach, no_grad), a `stop_gradient` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.bind import interpreting, state
from ..ir.builder import Builder, Symbol
from ..ir.graph import Graph, Origin, Output, Var
from ..ir.op import TABLE, Op
from ..ir.ops.drawing import sample
from ..ir.types import FLOAT
from .accumulate import dense
from .inplace import overlaps, put
from .rebase import Unwritable
from .recorded import (
    Branch,
    Entry,
    Running,
    beyond_graphs,
    counts_apart,
    current_place,
    graph_name,
    place_text,
)
from .recorded_checks import Checks
from .recorded_draws import RandomStates
from .recorded_entries import Entries
from .recorded_facts import FactsSeen
from .recorded_functions import record_function
from .recorded_grads import GradFields
from .recorded_looks import Looks
from .recorded_numbers import Numbers
from .recorded_refusals import Refusals
from .recorded_shapes import Shapes
from .recorded_sizes import PlainSizes
from .recorded_views import WrittenViews
from .scalars import RunTimeNumber, is_tensor, with_plain_numbers
from .tape import AccumulateGrad, next_sequence
from .tensor import Tensor


class Recorder(
    Entries, WrittenViews, Numbers, RandomStates, Checks, Refusals, Looks, FactsSeen, Shapes,
    GradFields, PlainSizes,
):  # fmt: skip
    """The interpreter that runs ops eagerly and appends them to a graph."""

    def __init__(self, name: str):
        super().__init__()
        self.builder = Builder(graph_name(name))
        self.needing: set[Var] = set()  # Vars that require grad in eager's eyes
        self.kept: set[tuple[int, int]] = set()  # externals that eager's nodes save, and which node
        self.branches: list[Branch] = []
        self.backward_roots: set[Var] = set()
        self.on_handed: Any = None
        self.may_run_ahead: Any = lambda function: True  # is a custom backward mere arithmetic?
        self.reads_state: Any = lambda node: False  # can what it reads of Python's state change?
        self.is_known_object: Any = lambda value: False  # is it the same at each call?
        self.custom_count = 0
        self.customs: dict[str, Any] = {}  # by the name of their backward: CustomCalls, or None
        self.custom_views: set[Var] = set()  # views whose derivative is not that of their chain
        # what hooks around the call got: ids and types; None where there are none
        self.packs_inside = False  # are there hooks inside that may change what they are given?
        self.packed: list[tuple[int, Any]] | None = None
        self.restores_history = False  # see `history_restored`
        self.first_sequence = next_sequence()  # of nodes of this recording
        self.running: Running | None = None  # the op that runs now
        self.numbers: dict[int, int] = {}  # id of an eager graph's node -> the op it belongs to

    # --- the interpreter ---

    def __call__(self, op: Op, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        self.builder.place = current_place()
        attrs = with_plain_numbers(attrs)
        operands = [self.operand(op, value, inputs) for value in inputs]
        self.expect(op, attrs)
        running = Running(op, inputs, operands, attrs)
        before, self.running = self.running, running
        try:
            result = self.run(op, inputs, attrs)
        finally:
            self.running = before
        outputs = result if isinstance(result, tuple) else (result,)
        if RunTimeNumber in map(type, inputs):  # it says that it is a float
            self.keep_wrapped(inputs, outputs)
        if running.vars is None:
            self.note_results(running, outputs)
        self.remember(op, inputs, operands, outputs, running.vars, attrs)
        for tensor in outputs:
            self.numbers[id(tensor._node)] = running.number
        if outputs and outputs[0]._node is not None:
            self.note_saved(outputs[0]._node, running.number)
        if reason := beyond_graphs(op, inputs, attrs):
            self.refuse(reason)
        if self.of_tensors and not any(is_tensor(value) for value in inputs):
            return self.settled_number(result, operands, running.vars[0])
        return result

    def results_packed(self, outputs: Sequence[Tensor]) -> None:
        """Hooks are about to be given results of the op that runs: they may compute of them."""
        if self.running is not None and self.running.vars is None:
            self.note_results(self.running, outputs)

    def note_results(self, running: Running, outputs: Sequence[Tensor]) -> None:
        """Appends the op, and tells what its results are."""
        op, inputs, operands, attrs = running.op, running.inputs, running.operands, running.attrs
        running.vars = vars_ = self.result_vars(op, operands, outputs, attrs)
        self.append(op, operands, vars_, attrs)
        running.number = len(self.builder.nodes) - 1
        self.note_fixed(op, inputs, operands, vars_, attrs)
        needed = any(v in self.needing for v in operands if v is not None)
        for position, (tensor, var) in enumerate(zip(outputs, vars_)):
            var = self.checked(op, var)
            self.define(op, inputs, tensor, self.cut_if(tensor, var, needed), attrs, position)

    def note_saved(self, node: Any, number: int) -> None:
        """Which tensors from outside, or views of them, does eager's node keep?"""
        for value in node.saved if node.is_op and node.saved.__class__ is tuple else ():
            entry = self.entries.get(id(value)) if isinstance(value, Tensor) else None
            if entry is not None and entry.memory.external is not None:
                self.kept.add((entry.memory.external, number))

    def cut_if(self, tensor: Tensor, var: Var, needed: bool) -> Var:
        """See Note [Stop gradients]. A view made where no history is recorded is a leaf, which
        requires grad as its base does."""
        if tensor._requires_grad:
            if needed and tensor._node is None:
                var = self.emit("stop_gradient", var)
            self.needing.add(var)
            return var
        if needed and tensor.dtype.category >= FLOAT:
            return self.emit("stop_gradient", var)
        return var

    def define(self, op: Op, inputs: Any, tensor: Tensor, var: Var, attrs: Any, k: int) -> None:
        if op.is_view:
            source = self.entries[id(inputs[0])]
            chain = (*source.chain, (op, attrs, k))
            if source.var in self.custom_views:
                self.custom_views.add(var)
            self.enter(Entry(tensor, source.memory, chain, var, source.cut))
            return
        root = tensor._array if tensor._storage is None else tensor._storage.root
        memory = self.new_memory(root, var)
        # an op may hand back its operand's own array, which stays that of the operand
        self.memories.setdefault(id(root), memory)
        self.enter(Entry(tensor, memory, (), var))

    def operand(self, op: Op, value: Any, inputs: Any) -> Var | None:
        if type(value) is RunTimeNumber:
            return self.number_operand(op, value, inputs)
        if isinstance(value, Tensor):
            return self.var_of(value)
        if value is None:
            return None
        return self.builder.constant(value, self.constant_type(op, value, inputs))

    def custom_function(self, node: Any, inputs: list[Tensor], outputs: list[Any]) -> None:
        """A custom Function ran: its outputs get a derivative of their own, recorded from it."""
        record_function(self, node, inputs, outputs)

    # --- what the tracer tells us ---

    def detached(self, source: Tensor, result: Tensor) -> None:
        """`result` is the same value without history."""
        var = self.var_of(source)
        entry = self.entries[id(source)]
        if var in self.needing or entry.memory.external is not None:
            # also where nothing is cut: it stays on this memory, if `source` is given another
            how = {"apart": True} if result._storage is not source._storage else {}
            var = self.emit("stop_gradient", var, **how)
        self.enter(Entry(result, entry.memory, entry.chain, var, True))

    def aliased(self, source: Tensor, result: Tensor) -> None:
        """`result` is `source` before it is written: the same Var, on memory of its own."""
        var = self.var_of(source)
        self.enter(Entry(result, self.new_memory(result._array, var), (), var))

    def returned(self, source: Tensor, result: Tensor) -> None:
        """`result` is a view of `source` that shows all of it, made by a custom Function."""
        self.define(TABLE["alias"], (source,), result, self.var_of(source), {}, 0)

    def copied(self, source: Tensor, result: Tensor) -> None:
        """`result` has the value of `source` without history, in memory of its own."""
        var = self.var_of(source)
        var = self.emit("stop_gradient", var) if var in self.needing else var
        memory = self.memories[id(result._array)] = self.new_memory(result._array, var)
        self.enter(Entry(result, memory, (), var))

    def made(self, tensor: Tensor) -> None:
        """A tensor was made from Python data: a constant of the trace, fresh at every call."""
        if id(tensor) in self.entries:
            return
        if tensor._array.size and not dense(tensor._array):
            self.refuse("a tensor with gaps in memory is made inside the function; make it outside")
        value = Tensor._wrap(tensor._array.copy(), tensor.dtype)
        var = self.lift(value).var
        self.fixed.add(var)
        memory = self.new_memory(tensor.storage_.root, var)
        self.memories[memory.key] = memory
        self.enter(Entry(tensor, memory, (), var))

    def from_array(self) -> None:
        """A NumPy array became a tensor: its contents may differ at the next call."""
        self.refuse("a NumPy array is turned into a tensor inside the function")

    def written(self, target: Tensor, result: Tensor) -> None:
        """`target`'s memory now holds `result`."""
        self.builder.place = current_place()
        value = self.var_of(result)
        entry = self.entries.get(id(target)) or self.lift(target)
        memory = entry.memory
        external = None if memory.external is None else self.externals[memory.external]
        if memory.apart or counts_apart(target, external, self.lying_in.get(memory.key, [])):
            self.refuse_shared()
        if external is not None and overlaps(external._array):
            self.refuse("a tensor from outside shows elements several times and is written; "
                        "clone() it")  # fmt: skip
        if value.type != entry.var.type:
            return self.refuse("a write changed the type of a tensor")
        before, known = memory.var, len(self.builder.nodes)
        try:
            with interpreting(self.builder):
                memory.var = put(Symbol(before), entry.chain, Symbol(value), once=True).var
        except Unwritable as error:
            return self.refuse(str(error))
        self.note_needing(known)
        memory.writes += 1
        self.written_storages.append((target.storage_, len(self.builder.nodes)))
        memory.counted += external is not None and target.storage_ is external.storage_
        entry.var, entry.seen = value, memory.writes
        unseen = entry.cut or not state.grad_enabled
        # torch's autograd does not see x.logical_not_() of a float either
        if before in self.needing and (unseen or not result._requires_grad):
            memory.var = self.emit("overwrite", before, memory.var)
            self.needing.add(memory.var)
            if not entry.cut:
                entry.seen = -1  # the target keeps its history too: look again
        if target._requires_grad or result._requires_grad:
            self.needing.add(memory.var)
            memory.recorded = memory.recorded or state.grad_enabled
            if entry.chain and entry.seen == memory.writes:
                self.note_written_view(entry)  # see Note [Written views]

    def marked_dirty(self, target: Tensor) -> None:
        """A custom Function says that it wrote an input, which counts once more."""
        self.var_of(target)
        self.entries[id(target)].memory.counted += 1

    def backward_ran(self, roots: Any, retained: bool) -> None:
        """Backward went through these tensors and freed their graph."""
        if not retained:
            self.backward_roots.update(self.var_of(t) for t in roots if isinstance(t, Tensor))

    def pulling(self, node: Any) -> None:
        """Backward comes to a node: what runs now belongs to the derivative of its op."""
        number = self.numbers.get(id(node)) if node is not None else None
        if number is None and node is not None and is_from_before(node, self.first_sequence):
            self.leave(f"backward ({place_text()}) goes through what was computed outside; compute "
                       "it inside, or call backward() outside")  # fmt: skip
        ops = self.builder.nodes
        self.builder.origin = None if number is None else Origin(ops[number].op.name, number)

    def packing(self, keeps: bool) -> None:
        """`saved_tensors_hooks` are entered inside; do they hand back what they are given?"""
        self.packs_inside = self.packs_inside or not keeps

    def history_restored(self) -> None:
        """What hooks handed back got the history of what they were given: graphs have no such."""
        self.restores_history = self.restores_history or state.grad_enabled

    def effects(self) -> tuple[int, int]:
        """How many writes and draws there were."""
        draws = sum(node.op is sample for node in self.builder.nodes)
        return sum(m.writes for m in self.memories.values() if m.external is not None), draws

    def flag_changed(self, tensor: Tensor) -> None:
        """requires_grad of a tensor is being changed."""
        if not self.computed(tensor):
            self.var_of(tensor)  # an input with the flag it has before
            return self.flag_set(tensor)
        entry = self.entries[id(tensor)]
        if entry.cut:  # what it was detached from stays as it is
            entry.var = self.emit("stop_gradient", self.current_var(entry))
        self.needing.add(entry.var)

    # --- the end ---

    def finish(self, results: list[Tensor]) -> Graph:
        """The graph with its results and write-backs."""
        return self.finish_with([self.var_of(t) for t in results])

    def finish_with(self, results: list[Var]) -> Graph:
        builder = self.builder
        builder.outputs = [Output(var) for var in results]
        for memory in self.memories.values():
            if memory.external is not None and memory.writes:
                builder.outputs.append(Output(memory.var, "write", memory.external))
        builder.inputs = builder.inputs[: len(self.externals)]
        self.with_states(builder.inputs, builder.outputs)
        return builder.graph()

    def base_var(self, tensor: Tensor) -> Var:
        """The Var of the whole memory a result lies in: views are taken again at replay."""
        entry = self.entries[id(tensor)]
        return entry.memory.var if entry.chain else self.var_of(tensor)

    def differentiable_writes(self) -> bool:
        """Does a gradient flow through a write into memory from outside?"""
        return any(m.external is not None and m.recorded for m in self.memories.values())


def is_from_before(node: Any, first: int) -> bool:
    """Was a node of an op made before those with this number?"""
    return node.__class__ is not AccumulateGrad and node.sequence < first
