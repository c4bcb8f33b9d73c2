"""The autograd graph: nodes with torch's names, edges and saved values."""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import Any

from ..ir.bind import notify, state
from ..ir.op import Frame, Op, fit
from ..ir.places import add_package_folder, describe_place, line_of, user_place
from ..ir.types import TensorType
from ..ir.value import Value
from .facts import hold_accumulator
from .hooks import RemovableHandle
from .saved import FREED, Freed, PackedSlots, Plan, take, unpack, with_unpacked
from .shown import RawSaved, saved_attribute, shown_names, tensor_names

# Anomaly mode of the process: empty when off, else a stack of "check for NaN" flags.
ANOMALY: list[bool] = []
next_sequence = itertools.count().__next__


class Extra:
    """The rare facts of a node: hooks by kind, retained gradients, the user's metadata."""

    __slots__ = ("metadata", "posthooks", "prehooks", "retained", "tensor_hooks")

    def __init__(self) -> None:
        self.tensor_hooks: dict[int, dict[int, Any]] = {}  # by output number
        self.retained: dict[int, list[Any]] = {}  # by output number: weak references to tensors
        self.prehooks: dict[int, Any] = {}
        self.posthooks: dict[int, Any] = {}
        self.metadata: dict[str, Any] = {}


_PUBLIC = ("_input_metadata", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr",
           "metadata", "name", "next_functions", "register_hook", "register_prehook",
           "requires_grad")  # fmt: skip
_NAMESPACED = ("CopyBackwards", "NotImplemented")
_DUNDERS = tuple(name for name in dir(object)) + ("__call__",)


class InputMetadata:
    """What a node knows of a gradient it receives."""

    def __init__(self, type_: TensorType):
        self.dtype, self.shape = type_
        self.is_nested_tensor = self.is_cpp_nested_tensor = False

    @property
    def device(self) -> Any:
        from .tensor import CPU

        return CPU


class Node:
    """A step of the autograd graph: gradients of outputs in, gradients of inputs out."""

    __slots__ = ("__weakref__", "edges", "extra", "place", "sequence")

    # Backward from one of its results in one go, where a kind of node knows how: a method of the
    # result's number, the gradient given or None, and whether to keep the graph; False: not now.
    at_once: Any = None
    joins = False  # does it stand for several nodes, of which backward reaches some?
    is_op = False  # does it keep `saved`, `plan` and `types`, as nodes of catalogue ops do?
    plan: Any = None  # what all nodes have in common whose backward is the same code

    def serve(self, freed: Any, needed: Any) -> Any:
        """Of a node that joins, when it was applied: its edges to leaves in the order in which
        backward comes there, if anybody can see it. Frees what was saved, unless `freed` is None.

        With them: None, or what is told when leaves were served (`settle`), or one raised (`stop`).
        `needed` are the edges that are taken, if not all.
        """
        if freed is not None:
            self.release(freed)
        return (), None

    def behind(self, number: int) -> Any:
        """The edges that a gradient of one of its results takes; see Note [Nodes that join]."""
        return self.edges

    def passes(self, number: int) -> Any:
        """Of a node that joins: its results that the gradient of another passes by; see
        Note [Results on the way]."""
        return ()

    def relay(self, number: int) -> Any:
        """The edge to where all is known that arrives at a result, if that is not here."""
        return None

    def name(self) -> str:
        """torch's name of the node."""
        kind = type(self).__name__  # all but those of generated code are named with their namespace
        return f"torch::autograd::{kind}" if kind in _NAMESPACED else kind

    def apply(self, grads: list[Any]) -> list[Any]:
        """Gradients of all inputs, aligned with `edges`."""
        raise NotImplementedError

    def release(self, freed: Freed) -> None:
        """Frees what was saved for backward."""

    def output_types(self) -> tuple[TensorType, ...]:
        """The types of the gradients it receives."""
        return tuple(getattr(self, "out_types", ()))

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """The nodes gradients flow on to, each with the number of its output."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dictionary for the user's notes."""
        return self._extra().metadata

    def _extra(self) -> Extra:
        if self.extra is None:
            self.extra = Extra()
        return self.extra

    @property
    def requires_grad(self) -> bool:
        return True

    @property
    def _input_metadata(self) -> list[Any]:
        return [InputMetadata(t) for t in self.output_types()]

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        self.sequence = number

    def register_hook(self, hook: Any) -> Any:
        """`hook(grad_inputs, grad_outputs)` runs after the node; it may replace grad_inputs."""
        notify("node_hooked")
        return RemovableHandle(self._extra().posthooks, hook)

    def register_prehook(self, hook: Any) -> Any:
        """`hook(grad_outputs)` runs before the node; it may replace them."""
        notify("node_hooked")
        return RemovableHandle(self._extra().prehooks, hook)

    def _register_hook_dict(self, hooks: dict[int, Any]) -> None:
        """Hooks of a table kept elsewhere, torch's old way."""
        notify("node_hooked")
        self._extra().posthooks = hooks

    def __call__(self, *grads: Any) -> Any:
        """Runs the node by hand, freeing nothing."""
        results = self.apply(list(grads))
        return results[0] if len(results) == 1 else tuple(results)

    def _saved_names(self) -> list[str]:
        return []

    def __dir__(self) -> list[str]:
        return sorted({*_DUNDERS, *_PUBLIC, *self._saved_names()})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    __str__ = __repr__


class OpNode(Node, Frame):
    """The node of a catalogue op. Subclasses carry torch's name and `op`.

    Note [Uniform calls]
        Where all tensors of a call have one dtype and shape, as they mostly have, the node keeps
        these two (`uniform`); otherwise the types of inputs and outputs (`types`).
    """

    __slots__ = ("attrs", "plan", "saved", "types", "uniform", "versions")

    op: Op
    is_op = True
    number_at: int | None = None  # the operand that is a number in torch's overload of this name

    # --- what `pull` asks ---

    def input(self, position: int) -> Any:
        slot = self.plan.slots.get(position)
        return None if slot is None else unpack(self, slot)

    def output(self, position: int) -> Any:
        return unpack(self, self.plan.slots[~position])

    def input_type(self, position: int) -> TensorType:
        return TensorType(*self.uniform) if self.types is None else self.types[0][position]

    def output_type(self, position: int) -> TensorType:
        return TensorType(*self.uniform) if self.types is None else self.types[1][position]

    def input_count(self) -> int:
        return len(self.edges)

    def fit_input(self, grad: Any, position: int) -> Any:
        if grad is None:
            return None
        wanted = self.uniform if self.types is None else self.types[0][position]
        return grad if grad._has_type(wanted) else fit(grad, wanted)

    # --- what the engine asks ---

    def apply(self, grads: list[Any]) -> list[Any]:
        types = self.types
        if types is not None and len(grads) < len(types[1]):
            grads = grads + [None] * (len(types[1]) - len(grads))
        kind = self.saved.__class__
        if kind is Freed:
            raise RuntimeError(self.saved.message())
        if kind is PackedSlots:
            return with_unpacked(self, lambda: self.plan.pull(self, grads))
        results = self.plan.pull(self, grads)
        if self.op.second and state.grad_enabled:
            from .derive import name_gradients

            name_gradients(self, grads, results)
        return results

    def release(self, freed: Freed) -> None:
        if self.saved:
            self.saved = freed

    def output_types(self) -> tuple[TensorType, ...]:
        return (TensorType(*self.uniform),) if self.types is None else tuple(self.types[1])

    # --- what derivatives as graphs ask (ir/derivative.py) ---

    def call_types(self) -> tuple[tuple[TensorType | None, ...], tuple[TensorType, ...]]:
        """The types of all inputs, and of all outputs."""
        if self.types is None:
            one = TensorType(*self.uniform)
            return (one,) * len(self.edges), (one,)
        return tuple(self.types[0]), tuple(self.types[1])

    def operands(self, grads: list[Any]) -> list[Any]:
        """The gradients of all outputs, None for those that did not arrive, and what was saved."""
        count = 1 if self.types is None else len(self.types[1])
        absent = [None] * (count - len(grads))
        return [*grads, *absent, *[take(self, slot) for slot in range(len(self.plan.keys))]]

    # --- what the user may look at ---

    @property
    def next_functions(self) -> tuple[Any, ...]:
        rule_for = self.op.rule_for
        return tuple(
            (None, 0) if edge is None else edge
            for position, edge in enumerate(self.edges)
            if rule_for(position) is not None and position != self.number_at
        )

    def __getattr__(self, name: str) -> Any:
        for prefix, look in (("_saved_", saved_attribute), ("_raw_saved_", RawSaved)):
            if name.startswith(prefix) and f"_saved_{name[len(prefix) :]}" in self._saved_names():
                return look(self, name[len(prefix) :])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _saved_names(self) -> list[str]:
        names = [f"_saved_{name}" for name in shown_names(self.op, self.attrs, self.number_at)]
        kept = {n for rule in self.op.rules.values() for n in tensor_names(self.op, rule)}
        return names + [f"_raw_saved_{name}" for name in sorted(kept)]


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("variable",)
    __module__ = "builtins"  # torch prints <class 'AccumulateGrad'>

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def apply(self, grads: list[Any]) -> list[Any]:
        from .accumulate import accumulate

        if grads and grads[0] is not None:
            accumulate(self.variable, [grads[0]], False, False, user_place())
        return []

    def output_types(self) -> tuple[TensorType, ...]:
        return (self.variable.type_,)

    def _extra(self) -> Extra:
        if self.extra is None:
            hold_accumulator(self)
        return super()._extra()

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def _saved_names(self) -> list[str]:
        return ["variable"]


# what is in the slots of a new AccumulateGrad, beside its variable
ACCUMULATOR_SLOTS: tuple[tuple[str, Any], ...] = (
    ("edges", ()), ("extra", None), ("place", None), ("sequence", sys.maxsize),
)  # fmt: skip


def hook_table(tensor: Any) -> dict[int, Any]:
    """The table of hooks of a tensor: on the leaf, or on its place among its node's outputs."""
    node = tensor.grad_fn
    if node is None:
        facts = tensor._leaf_facts()
        if facts.hooks is None:
            facts.hooks = {}
        return facts.hooks
    node, number = end_of((node, tensor._nr))
    return node._extra().tensor_hooks.setdefault(number, {})


def end_of(edge: Any) -> Any:
    """Where an edge leads in the end; see Note [Results on the way]."""
    while (further := edge[0].relay(edge[1])) is not None:
        edge = further
    return edge


def retain(tensor: Any) -> None:
    """Registers that `.grad` of a non-leaf is kept."""
    node, number = end_of((tensor.grad_fn, tensor._nr))
    node._extra().retained.setdefault(number, []).append(weakref.ref(tensor))


class NotImplementedNode(Node):
    """The history of an op without derivative: backward through it raises."""

    __slots__ = ("op_name",)
    __module__ = "builtins"

    def __init__(self, op_name: str, edges: tuple[Any, ...]):
        self.op_name, self.edges = op_name, edges
        self.sequence, self.place, self.extra = next_sequence(), user_place(), None

    def apply(self, grads: list[Any]) -> list[Any]:
        raise RuntimeError(f"derivative for aten::{self.op_name} is not implemented "
                           f"(called at {describe_place(self.place)})")  # fmt: skip


NotImplementedNode.__name__ = NotImplementedNode.__qualname__ = "NotImplemented"


def accumulator_of(leaf: Any) -> AccumulateGrad:
    """The leaf's AccumulateGrad: the same object as long as a graph holds it."""
    facts = leaf._leaf
    if facts is None:
        facts = leaf._leaf_facts()
    reference = facts.accumulator
    node = reference() if reference is not None else None
    if node is None:
        node = object.__new__(AccumulateGrad)
        node.variable, node.edges, node.sequence = leaf, (), sys.maxsize
        node.place = node.extra = None  # as in ACCUMULATOR_SLOTS
        facts.accumulator = weakref.ref(node)
    return node


_NODE_CLASSES: dict[tuple[str, str], type] = {}


def named_class(op: Op, name: str, number_at: int | None = None) -> type:
    """The Node subclass of an op that has torch's `name`."""
    found = _NODE_CLASSES.get((op.name, name))
    if found is None:
        found = type(name, (OpNode,), {"__slots__": (), "__module__": "builtins", "op": op,
                                       "number_at": number_at})  # fmt: skip
        _NODE_CLASSES[op.name, name] = found
    return found


def node_class(op: Op, attrs: dict[str, Any], inputs: Any = ()) -> type:
    """The Node subclass of an op, made at first use.

    Some names depend on the attributes, some on which operands are Python numbers.
    """
    if op.node_type is not None:
        return op.node_type
    name = op.node if type(op.node) is str else op.node(attrs)
    number_at = None
    for position, (value, other) in enumerate(zip(inputs, op.number_nodes)):
        if other is not None and not isinstance(value, Value):
            name, number_at = other, position
    found = named_class(op, name, number_at)
    if type(op.node) is str and not any(op.number_nodes):
        op.node_type = found
    return found


__all__ = ["ANOMALY", "FREED", "AccumulateGrad", "Extra", "Freed", "Node", "NotImplementedNode",
           "OpNode", "Plan", "accumulator_of", "add_package_folder", "describe_place",
           "hook_table", "line_of", "named_class", "next_sequence", "node_class", "retain",
           "user_place"]  # fmt: skip
