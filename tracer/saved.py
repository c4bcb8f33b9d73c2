"""What a node keeps for backward.

Note [Saved values]
    A rule's parameter list says what is saved; a `Plan` is that list for one set of inputs that
    need gradients. An input is saved as the tensor itself beside the version it had. An output is
    saved as a twin without history: the tensor would make a reference cycle through its own node;
    unpacking gives the twin the node again. Python numbers are saved as they are.
"""

from __future__ import annotations

from typing import Any

from ..ir.bind import notify
from ..ir.op import Op, fit, puller, saved_keys, write_puller
from ..ir.places import describe_place
from ..ir.types import FLOAT, TensorType
from .hooks import active
from .modes import set_grad_mode
from .tensor import PLAIN, Tensor, note_detach

FREED = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors after calling backward."  # noqa: E501
INFERENCE_SAVED = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."  # noqa: E501


class Freed:
    """Stands where saved values were: the backward that freed them, for the error."""

    __slots__ = ("place",)

    def __init__(self, place: Any):
        self.place = place

    def message(self) -> str:
        """torch's words, and where the first backward was."""
        return f"{FREED} The first backward was at {describe_place(self.place)}."


class SavedOutput:
    """An output kept without a reference to its own node: its facts, or a twin if not plain."""

    __slots__ = ("array", "dtype", "storage", "twin", "version")

    def __init__(self, tensor: Tensor):
        self.keep(tensor)

    def keep(self, tensor: Tensor) -> None:
        """Also when the output was written in place and lives in `tensor` from now on."""
        self.twin = None if tensor.__class__ is Tensor else tensor._twin()
        self.array, self.dtype, self.storage = tensor._array, tensor.dtype, tensor.storage_
        self.version = self.storage.version

    def fresh(self) -> Tensor:
        """A new tensor on the output's memory, without history."""
        if self.twin is not None:
            return self.twin._twin()
        tensor = Tensor._wrap(self.array, self.dtype)
        tensor._storage = self.storage
        return tensor


class PackedSaved:
    """A value handed to the user's `saved_tensors_hooks`, with the history it had."""

    __slots__ = ("edge", "packed", "unpack")

    def __init__(self, pair: Any, tensor: Tensor, edge: Any):
        pack, self.unpack = pair
        self.edge = edge
        before = tensor._version
        with set_grad_mode(False):
            packed = pack(tensor)
        if tensor._version != before:
            raise RuntimeError("A saved tensor pack hook is modifying its input in place. Tensors "
                               "provided as input to pack hook cannot be modified by in-place "
                               "operations as this can lead to unexpected side-effects. Please "
                               "open an issue if you need to perform in-place operations on the "
                               "input to a pack hook.")  # fmt: skip
        # an output returned as it is would hold its own node: a cycle
        self.packed = tensor._twin() if packed is tensor and edge is OWN else packed

    def restore(self, own_edge: Any) -> Tensor:
        """What the unpack hook gives, with the saved history."""
        with set_grad_mode(False):
            value = self.unpack(self.packed)
        if not isinstance(value, Tensor):
            raise TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got "
                            f"result of type {type(value).__name__}")  # fmt: skip
        fresh = value._twin()
        note_detach(value, fresh)
        edge = own_edge if self.edge is OWN else self.edge
        if edge is not None:
            attach_edge(fresh, edge)
            notify("history_restored")
        return fresh


class PackedSlots(tuple[Any, ...]):
    """What a node saved, some of it through hooks: each is unpacked once in a backward."""

    __slots__ = ()


def with_unpacked(node: Any, compute: Any) -> Any:
    """What `compute` gives while the node has its values as the hooks hand them back."""
    packed, versions = node.saved, node.versions
    values = [unpack(node, k) if entry.__class__ is PackedSaved else entry
              for k, entry in enumerate(packed)]  # fmt: skip
    now = [value._version if entry.__class__ is PackedSaved else version
           for value, entry, version in zip(values, packed, versions)]  # fmt: skip
    node.saved, node.versions = tuple(values), tuple(now)
    try:
        return compute()
    finally:
        node.saved, node.versions = packed, versions


OWN = object()  # the history of a saved output: its own node


def attach_edge(tensor: Tensor, edge: tuple[Any, int]) -> None:
    """Gradients of `tensor` flow into `edge`."""
    node, number = edge
    tensor._requires_grad = True
    if hasattr(node, "variable"):
        tensor._leaf_facts().accumulator = lambda: node
    else:
        tensor._node, tensor._nr = node, number


class Plan:
    """How calls of an op with one set of gradient-needing inputs are saved and differentiated."""

    __slots__ = ("album", "any", "keys", "needs", "plain", "pull", "recorded", "slots", "straight",
                 "uniform")  # fmt: skip

    def __init__(self, op: Op, wanted: tuple[bool, ...]):
        needs = tuple(w and op.rule_for(k) is not None for k, w in enumerate(wanted))
        self.needs = needs
        self.any = True in needs
        self.keys = saved_keys(op, needs)
        self.slots = {key: slot for slot, key in enumerate(self.keys)}
        self.plain = all(key >= 0 for key in self.keys)
        # see Note [Straight derivatives]; None where the rules themselves are as quick
        self.straight: dict[Any, Any] | None = {}
        self.recorded: dict[
            Any, Any
        ] = {}  # pulls with history, by types; see Note [Familiar calls]
        self.album: Any = None  # see Note [Familiar graphs]
        # written at the first backward: most ops of the library are never differentiated
        self.pull = self.later("pull", lambda: puller(op, needs))
        self.uniform = self.later("uniform", lambda: uniform_puller(op, needs, self.keys))

    def later(self, slot: str, write: Any) -> Any:
        """A puller that puts the one that `write` gives into its place."""

        def first(frame: Any, grads: Any) -> Any:
            written = write()
            setattr(self, slot, written)
            return written(frame, grads)

        return first


def uniform_puller(op: Op, needs: tuple[bool, ...], keys: tuple[int, ...]) -> Any:
    """The puller of nodes whose tensors have one type; a gradient that is passed on has it, too."""

    def fitted(target: str, value: str, position: int | str) -> list[str]:
        return [
            f"{target} = {value}",
            f"if {target} is not grads[0] and {target} is not None and not (",
            f"    {target}.dtype is dtype and {target}._array.shape == shape",
            "):",
            f"    {target} = fit({target}, TensorType(dtype, shape))",
        ]

    saved = {key: f"take(frame, {slot})" for slot, key in enumerate(keys)}
    return write_puller(op, needs, fitted, ["dtype, shape = frame.uniform"], saved, fit=fit,
                        TensorType=TensorType, take=take)  # fmt: skip


def take(node: Any, slot: int) -> Any:
    """`unpack` of what is mostly saved: a tensor nobody wrote since."""
    entry = node.saved[slot]
    if entry.__class__ in PLAIN:
        storage = entry._storage
        if storage is None or storage.version == node.versions[slot]:
            return entry
    return unpack(node, slot)


def plan_of(op: Op, wanted: tuple[bool, ...]) -> Plan:
    """The plan, made at first use."""
    plan = op.plans.get(wanted)
    if plan is None:
        plan = op.plans[wanted] = Plan(op, wanted)
    return plan


def save_values(node: Any, plan: Plan, inputs: Any, outputs: Any, history: Any) -> None:
    """Fills `node.saved` and `node.versions` after `plan`."""
    entries: list[Any] = []
    versions: list[int] = []
    pair = active.saved[-1] if active.saved else None
    if pair is not None and not plan.plain:
        notify("results_packed", outputs)
    for key in plan.keys:
        version = 0
        if key < 0:
            value = outputs[~key]
            edge = OWN if value._node is node else None
            entry: Any = SavedOutput(value) if pair is None else PackedSaved(pair, value, edge)
        else:
            entry = inputs[key]
            if isinstance(entry, Tensor):
                if entry._mark == "inference":
                    raise RuntimeError(INFERENCE_SAVED)
                if pair is not None and not entry.wrapped:
                    entry = PackedSaved(pair, entry, history(entry))
                elif entry._storage is not None:
                    version = entry._storage.version
        entries.append(entry)
        versions.append(version)
    node.saved = tuple(entries) if pair is None else PackedSlots(entries)
    node.versions = tuple(versions)


def unpack(node: Any, slot: int) -> Any:
    """The saved value in a slot, checked for writes since it was saved."""
    saved = node.saved
    if saved.__class__ is Freed:
        raise RuntimeError(saved.message())
    entry = saved[slot]
    if isinstance(entry, Tensor):
        storage = entry._storage
        if storage is not None and storage.version != node.versions[slot]:
            raise RuntimeError(changed_message(node, slot, entry, node.versions[slot]))
        return entry
    kind = entry.__class__
    if kind is SavedOutput:
        twin = entry.fresh()
        if entry.storage.version != entry.version:
            raise RuntimeError(changed_message(node, slot, twin, entry.version))
        if twin.dtype.category >= FLOAT:
            twin._node, twin._nr, twin._requires_grad = node, ~node.plan.keys[slot], True
        return twin
    if kind is PackedSaved:
        return entry.restore((node, ~node.plan.keys[slot]))
    return entry


def short_name(node: Any) -> str:
    """A node's name without "Backward0", as torch's errors about views and versions print it."""
    name = node.name()
    stem = name.rstrip("0123456789")
    return stem.removesuffix("Backward") if stem.endswith("Backward") else name


def changed_message(node: Any, slot: int, tensor: Tensor, version: int) -> str:
    """torch's error for a saved value that was written, with both places."""
    key = node.plan.keys[slot]
    maker = tensor._node
    if key < 0:
        what = f", which is output {~key} of {short_name(node)},"
    elif maker is not None:
        what = f", which is output {tensor._nr} of {short_name(maker)},"
    else:
        what = ""
    return modified(tensor, what, version, node.place)


def modified(tensor: Tensor, what: str, version: int, place: Any) -> str:
    """torch's phrase; then where the value was saved, where it was changed, what to do."""
    storage = tensor._storage
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{tensor._legacy_name()} {list(tensor.shape)}]{what} is at version "
        f"{storage.version}; expected version {version} instead. It was saved at "
        f"{describe_place(place)} and changed at {describe_place(storage.written)}. "
        "Hint: clone() the value before changing it, or use the out-of-place operation."
    )
