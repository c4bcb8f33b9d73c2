"""The autograd graph: nodes with torch's names, edges and saved values.

Note [Saved values]
    A rule's parameter list says what is saved. Inputs are saved as (tensor, version); an output is
    saved as its array with the storage's version, not as the Tensor, which would make a reference
    cycle through its own node; unpacking re-attaches the node.
"""

from __future__ import annotations

import itertools
import sys
import weakref
from typing import Any

from ..ir.op import INPUT, OUTPUT, Frame, Op, pull
from ..ir.types import TensorType
from ..ir.value import Value
from .storage import Storage

_sequence = itertools.count().__next__
FREED = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."  # noqa: E501


# --- where the user was --------------------------------------------------------------------------

_OUR_FILES: dict[str, bool] = {}
_PACKAGE_FOLDERS: list[str] = []


def add_package_folder(folder: str) -> None:
    """Frames of code in `folder` are ours, not the user's."""
    _PACKAGE_FOLDERS.append(folder)


def is_ours(filename: str) -> bool:
    known = _OUR_FILES.get(filename)
    if known is None:
        known = filename.startswith(tuple(_PACKAGE_FOLDERS)) or filename.startswith("<wengert")
        _OUR_FILES[filename] = known
    return known


def user_place() -> tuple[Any, int] | None:
    """The user's code object and instruction offset: cheap to take, resolved only when asked."""
    frame: Any = sys._getframe(1)
    ours = _OUR_FILES
    while frame is not None:
        code = frame.f_code
        known = ours.get(code.co_filename)
        if known is None:
            known = is_ours(code.co_filename)
        if not known:
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def describe_place(place: tuple[Any, int] | None) -> str:
    """`file:line` of a place taken by `user_place`."""
    if place is None:
        return "unknown place"
    return f"{place[0].co_filename}:{line_of(place)}"


def line_of(place: tuple[Any, int]) -> int:
    code, offset = place
    line = code.co_firstlineno
    for start, stop, number in code.co_lines():
        if start <= offset < stop and number is not None:
            line = number
    return int(line)


# --- saved values --------------------------------------------------------------------------------


class SavedOutput:
    """An output kept for backward without a reference to its own node."""

    __slots__ = ("array", "dtype", "storage", "tensor_class", "version", "view")

    def __init__(self, tensor: Any):
        if tensor._storage is None:
            tensor._storage = Storage(tensor._array)
        self.array, self.dtype, self.storage = tensor._array, tensor.dtype, tensor._storage
        self.version = self.storage.version


class SavedInput:
    """An input kept for backward, with the version it had."""

    __slots__ = ("tensor", "version")

    def __init__(self, tensor: Any):
        if tensor._storage is None:
            tensor._storage = Storage(tensor._array)
        self.tensor, self.version = tensor, tensor._storage.version


class PackedSaved:
    """A value handed to the user's `saved_tensors_hooks`."""

    __slots__ = ("packed", "unpack")

    def __init__(self, packed: Any, unpack: Any):
        self.packed, self.unpack = packed, unpack


_FREEABLE = (SavedInput, SavedOutput, PackedSaved)
NOTHING_SAVED: dict[int, Any] = {}


class SavePlan:
    """Which inputs and outputs the needed rules of an op name."""

    __slots__ = ("inputs", "needs", "outputs")

    def __init__(self, op: Op, needs: tuple[bool, ...]):
        inputs, outputs = set(), set()
        for position, needed in enumerate(needs):
            rule = op.rule_for(position) if needed else None
            if rule is None:
                continue
            for where in rule.wants(INPUT):
                if op.variadic is not None and where == op.variadic:
                    inputs.update(range(where, len(needs)))
                else:
                    inputs.add(where)
            outputs.update(rule.wants(OUTPUT))
        self.needs = needs
        self.inputs = tuple(sorted(inputs))
        self.outputs = tuple(sorted(outputs))


# --- nodes ---------------------------------------------------------------------------------------


class Node:
    """A step of the autograd graph: gradients of outputs in, gradients of inputs out."""

    __slots__ = ("__weakref__", "edges", "extra", "in_hooks", "out_hooks", "place", "sequence")

    # Is the node skipped when it only waits for gradients of leaves nobody asked for?
    def name(self) -> str:
        return type(self).__name__

    def apply(self, grads: list[Any]) -> list[Any]:
        """Gradients of all inputs, aligned with `edges`."""
        raise NotImplementedError

    def release(self) -> None:
        """Frees what was saved for backward."""

    @property
    def next_functions(self) -> tuple[Any, ...]:
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[str, Any]:
        return self._notes().setdefault("metadata", {})

    def _notes(self) -> dict[str, Any]:
        if self.extra is None:
            self.extra = {}
        return self.extra

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        return self.sequence

    def register_hook(self, hook: Any) -> Any:
        """`hook(grad_inputs, grad_outputs)` runs after the node; it may replace grad_inputs."""
        from .hooks import RemovableHandle

        if self.out_hooks is None:
            self.out_hooks = {}
        return RemovableHandle(self.out_hooks, hook)

    def register_prehook(self, hook: Any) -> Any:
        """`hook(grad_outputs)` runs before the node; it may replace them."""
        from .hooks import RemovableHandle

        notes = self._notes().setdefault("prehooks", {})
        return RemovableHandle(notes, hook)

    def _register_hook_dict(self, hooks: dict[int, Any]) -> None:
        """Hooks of a table kept elsewhere, torch's old way."""
        self.out_hooks = hooks

    def __call__(self, *grads: Any) -> Any:
        """Runs the node by hand, freeing nothing."""
        from .modes import no_grad

        with no_grad():
            results = self.apply(list(grads))
        return results[0] if len(results) == 1 else tuple(results)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    __str__ = __repr__


class OpNode(Node, Frame):
    """The node of a catalogue op. Subclasses carry torch's name and `op`."""

    __slots__ = ("attrs", "in_types", "needs", "out_types", "saved")

    op: Op

    def input(self, position: int) -> Any:
        return self.unpack(position)

    def output(self, position: int) -> Any:
        return self.unpack(~position)

    def unpack(self, key: int) -> Any:
        if self.saved is None:
            raise RuntimeError(second_backward_message(self))
        entry = self.saved[key]
        kind = type(entry)
        if kind is SavedInput:
            tensor = entry.tensor
            if tensor._storage.version != entry.version:
                raise RuntimeError(self.changed_message(key, tensor, entry.version))
            return tensor
        if kind is SavedOutput:
            if entry.storage.version != entry.version:
                raise RuntimeError(self.changed_message(key, entry, entry.version))
            return self.reattach(key, entry)
        if kind is PackedSaved:
            return unpack_by_hook(self, key, entry)
        return entry

    def reattach(self, key: int, entry: SavedOutput) -> Any:
        from .tensor import Tensor

        tensor = Tensor._wrap(entry.array, entry.dtype)
        tensor._storage = entry.storage
        if entry.dtype.category >= 2:
            tensor._node, tensor._nr, tensor._requires_grad = self, ~key, True
        return tensor

    def changed_message(self, key: int, value: Any, version: int) -> str:
        from .inplace import last_write

        array = value.array if isinstance(value, SavedOutput) else value._array
        storage = value.storage if isinstance(value, SavedOutput) else value._storage
        what = f"output {~key} of {self.name()}" if key < 0 else (
            f"which is input {key} of {self.name()}")  # fmt: skip
        return (
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [torch.{value.dtype.name} {list(array.shape)}], {what}, is at version "
            f"{storage.version}; expected version {version} instead. It was saved at "
            f"{describe_place(self.place)} and changed at {last_write(storage)}. "
            "Hint: clone() the value before changing it, or use the out-of-place operation."
        )

    def input_type(self, position: int) -> TensorType:
        return self.in_types[position]

    def output_type(self, position: int) -> TensorType:
        return self.out_types[position]

    def input_count(self) -> int:
        return len(self.edges)

    def apply(self, grads: list[Any]) -> list[Any]:
        return pull(self, grads, self.needs)

    def release(self) -> None:
        saved = self.saved
        if saved and any(type(entry) in _FREEABLE for entry in saved.values()):
            self.saved = None

    @property
    def next_functions(self) -> tuple[Any, ...]:
        rule_for = self.op.rule_for
        return tuple(
            (None, 0) if edge is None else edge
            for position, edge in enumerate(self.edges)
            if rule_for(position) is not None
        )

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_saved_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return saved_attribute(self, name[len("_saved_") :])

    def __dir__(self) -> list[str]:
        op = self.op
        saved = [f"_saved_{n}" for n in (*op.inputs, *op.outputs, *op.attributes)
                 if _names_saved(op, n)]  # fmt: skip
        return sorted({*super().__dir__(), *saved})


def _names_saved(op: Op, name: str) -> bool:
    for rule in op.rules.values():
        for kind, where in rule.arguments:
            if kind == INPUT and op.inputs[where] == name:
                return True
            if kind == OUTPUT and op.outputs[where] == name:
                return True
    return name in op.attributes


def saved_attribute(node: OpNode, name: str) -> Any:
    """`node._saved_<name>`: a saved input, output or an attribute."""
    op = node.op
    if name in op.attributes:
        return node.attrs[name] if name in node.attrs else op.defaults[name]
    if not _names_saved(op, name):
        raise AttributeError(f"'{node.name()}' object has no attribute '_saved_{name}'")
    if node.saved is None:
        raise RuntimeError(second_backward_message(node))
    if name in op.inputs:
        position = op.inputs.index(name)
        return node.unpack(position) if position in node.saved else None
    key = ~op.outputs.index(name)
    return node.unpack(key) if key in node.saved else None


def unpack_by_hook(node: OpNode, key: int, entry: PackedSaved) -> Any:
    """The user's unpack hook gives the value; its history is the saved one's."""
    from .tensor import Tensor

    value = entry.unpack(entry.packed[0])
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got {type(value)}"
        )
    if key < 0:
        history: Any = (node, ~key)
        needs = True
    else:
        history, needs = entry.packed[1:]
        if history is not None and history[0] is None:
            return value if value is history[1] else _with_leaf_history(value, history[1])
    fresh = Tensor._wrap(value._array, value.dtype)
    fresh._storage = value._storage
    if history is not None and needs:
        fresh._node, fresh._nr, fresh._requires_grad = history[0], history[1], True
    return fresh


def _with_leaf_history(value: Any, leaf: Any) -> Any:
    from .tensor import Tensor

    fresh = Tensor._wrap(value._array, value.dtype)
    if leaf._requires_grad:
        fresh._requires_grad, fresh._node = True, accumulator_of(leaf)
    return fresh


def second_backward_message(node: Any) -> str:
    notes = node.extra or {}
    first = notes.get("freed_at")
    where = f" The first backward was at {describe_place(first)}." if first else ""
    return FREED + where


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to the leaf's `.grad`."""

    __slots__ = ("variable",)
    __module__ = "builtins"  # torch prints <class 'AccumulateGrad'>

    def __init__(self, variable: Any):
        self.variable = variable
        self.edges = ()
        self.sequence = sys.maxsize
        self.place = self.extra = self.in_hooks = self.out_hooks = None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"


def accumulator_of(leaf: Any) -> AccumulateGrad:
    """The leaf's AccumulateGrad: the same object as long as a graph holds it."""
    reference = leaf.__dict__.get("_accumulator")
    node = reference() if reference is not None else None
    if node is None:
        node = AccumulateGrad(leaf)
        leaf.__dict__["_accumulator"] = weakref.ref(node)
    return node


_NODE_CLASSES: dict[tuple[str, str], type] = {}


def node_class(op: Op, attrs: dict[str, Any], inputs: tuple[Any, ...] = ()) -> type:
    """The Node subclass of an op, made at first use.

    Some names depend on the attributes, some on which operands are Python numbers.
    """
    name = op.node if type(op.node) is str else op.node(attrs)
    for value, other in zip(inputs, op.number_nodes):
        if other is not None and not isinstance(value, Value):
            name = other
    found = _NODE_CLASSES.get((op.name, name))
    if found is None:
        found = type(name, (OpNode,), {"__slots__": (), "__module__": "builtins", "op": op})
        _NODE_CLASSES[op.name, name] = found
    return found


def next_sequence() -> int:
    return _sequence()
