"""In-place writes: checks, version counters, rebased history.

An in-place twin runs the ordinary op and copies the result into the tensor's memory. On a view, the
base's new history is "the base with the result put at the view's place" (`CopySlices`), and every
view of it derives its history anew when next asked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import value as value_module
from ..ir.bind import state
from ..ir.op import TABLE
from ..ir.types import FLOAT, TensorType, type_word
from .eager import cast_array, history
from .storage import Storage
from .tape import Node, describe_place, next_sequence, user_place
from .tensor import Tensor

# Where each storage was last written, for error messages; weak in effect: only the newest matter.
_last_writes: dict[int, Any] = {}
_LIMIT = 4096


def last_write(storage: Storage) -> str:
    return describe_place(_last_writes.get(id(storage)))


def bump(storage: Storage) -> None:
    """Counts a write and remembers where the user made it."""
    storage.version += 1
    if len(_last_writes) >= _LIMIT:
        _last_writes.clear()
    _last_writes[id(storage)] = user_place()


def run_inplace(function: Any, target: Tensor, args: Any, kwargs: Any) -> Tensor:
    """`target.function_(*args)`: computes first, so nothing is changed when it raises."""
    if not isinstance(target, Tensor):
        raise TypeError(
            f"in-place {function.__name__}_ needs a Tensor, got {type(target).__name__}"
        )
    check_writable(target)
    before = shadow(target)
    args = tuple(before if a is target else a for a in args)
    result = function(before, *args, **kwargs)
    return assign(target, result, before, function.__name__)


def shadow(target: Tensor) -> Tensor:
    """The value before the write, as a tensor of its own; its bytes are copied only if saved."""
    before = Tensor._wrap(target._array, target.dtype)
    edge = history(target)
    if edge is not None:
        before._requires_grad = True
        before._node, before._nr = edge
    if target._view is not None:
        before.__dict__["_was_view"] = True
    watcher = getattr(state.top, "aliased", None)
    if watcher is not None:
        watcher(target, before)
    return before


def check_writable(target: Tensor) -> None:
    """torch's rules on what may be written in place."""
    array = target._array
    if not array.flags.writeable:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if array.size > 1 and 0 in array.strides and overlaps(array):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if "_inference" in target.__dict__ and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make "
            "a clone to get a normal tensor before doing inplace update."
        )
    if not state.grad_enabled:
        return
    view = target._view
    if target._requires_grad and target.grad_fn is None and view is None:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    if view is not None:
        check_writable_view(target, view)


def overlaps(array: np.ndarray) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape))


def check_writable_view(target: Tensor, view: Any) -> None:
    base = view.base
    if base._requires_grad and base._node is None:
        raise RuntimeError(
            "a view of a leaf Variable that requires grad is being used in an in-place operation."
        )
    if not (base._requires_grad or target._requires_grad):
        return
    name = type(target._node).__name__ if target._node is not None else "a view"
    if view.origin == "multi":
        raise RuntimeError(
            f"Output {target._nr} of {name} is a view and is being modified inplace. This view is "
            "the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an "
            "out-of-place one."
        )
    if view.origin == "no_grad":
        raise RuntimeError(
            "A view was created in no_grad mode and is being modified inplace with grad mode "
            "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. You "
            "can clarify your code by moving both the view and the inplace either both inside the "
            "no_grad block (if you don't want the inplace to be tracked) or both outside (if you "
            "want the inplace to be tracked)."
        )
    if view.origin == "custom":
        raise RuntimeError(
            f"Output {target._nr} of {name} is a view and is being modified inplace. This view was "
            "created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated "
            "with the custom Function, leading to incorrect gradients. This behavior is forbidden. "
            "You can fix this by cloning the output of the custom Function."
        )


def assign(target: Tensor, result: Tensor, before: Tensor | None, name: str = "copy") -> Tensor:
    """Writes `result` into `target`'s memory and gives it the result's history."""
    if result._array.shape != target._array.shape:
        raise RuntimeError(
            f"output with shape {list(target._array.shape)} doesn't match the broadcast shape "
            f"{list(result._array.shape)}"
        )
    if result.dtype.category > target.dtype.category and name not in _CASTING:
        raise RuntimeError(
            f"result type {type_word(result.dtype)} can't be cast to the desired output type "
            f"{type_word(target.dtype)}"
        )
    if result.dtype is not target.dtype:
        result = result.to(target.dtype)
    if before is not None and before._storage is not None:
        before._array = target._array.copy()  # a rule saved the old value
    write(target, result)
    rebase(target, result)
    return target


# ops whose in-place twin converts the result to the tensor's dtype whatever its category
_CASTING = {"eq", "ne", "lt", "le", "gt", "ge", "copy", "fill", "isnan", "float_power"}


def write(target: Tensor, result: Tensor) -> None:
    """Copies the bytes, counts the write, and tells the recording, if one is on."""
    np.copyto(target._array, result._array, casting="unsafe")
    bump(target.storage_)
    watcher = getattr(state.top, "written", None)
    if watcher is not None:
        watcher(target, result)


def rebase(target: Tensor, result: Tensor) -> None:
    """The history after a write: the result's own, or `CopySlices` on the base of a view."""
    if not state.grad_enabled or target.dtype.category < FLOAT:
        if target._view is not None and not state.grad_enabled:
            keep_view_history(target)
        return
    view = target._view
    if view is None:
        take_history(target, result)
        return
    base = view.base
    if not (result._requires_grad or base._requires_grad):
        return
    node = CopySlices(base, view.chain, result)
    base._node, base._nr, base._requires_grad = node, 0, True
    regenerate_history(target)


def keep_view_history(target: Tensor) -> None:
    """A write under no_grad changes no history: the view's stays as it was."""
    if target._node is not None or not target._view.base._requires_grad:
        target._view.seen = target._storage.version


def take_history(target: Tensor, result: Tensor) -> None:
    target._node, target._nr = result._node, result._nr
    target._requires_grad = result._requires_grad
    node = result._node
    if node is None or getattr(node, "saved", None) is None:
        return
    entry = node.saved.get(~result._nr)
    if entry is not None and hasattr(entry, "storage"):  # the saved output is this memory now
        entry.array, entry.storage = target._array, target._storage
        entry.version = target._storage.version


# --- views of what was written -------------------------------------------------------------------


def look(value: Any, chain: Any) -> Any:
    """Follows a chain of view ops from the base."""
    for op, attrs, position in chain:
        value = op(value, **attrs)
        if op.multi_view:
            value = value[position]
    return value


def put(base: Any, chain: Any, patch: Any) -> Any:
    """`base` with `patch` at the place `chain` looks at: the functional form of a write."""
    if not chain:
        return patch
    (op, attrs, position), rest = chain[0], chain[1:]
    if rest:
        inner = op(base, **attrs)
        patch = put(inner[position] if op.multi_view else inner, rest, patch)
    if op.multi_view:
        return op.put(base, patch, position=position, **attrs)
    if op.put is None:
        raise RuntimeError(f"{op.name}: writing through this view is not supported; clone() first")
    return op.put(base, patch, **attrs)


class _ChainNode(Node):
    """A node that knows a base and the view chain into it."""

    __slots__ = ("base_type", "chain", "out_types")

    def _prepare(self, base: Tensor, chain: Any, edges: tuple[Any, ...]) -> None:
        self.base_type = TensorType(base.dtype, base._array.shape)
        self.chain, self.edges = chain, edges
        self.out_types = (self.base_type,)
        self.sequence, self.place = next_sequence(), user_place()
        self.extra = self.in_hooks = self.out_hooks = None


class CopySlices(_ChainNode):
    """The base after a write through a view: (old base, written value) -> new base."""

    __slots__ = ()
    __module__ = "builtins"

    def __init__(self, base: Tensor, chain: Any, result: Tensor):
        self._prepare(base, chain, (history(base), history(result)))

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grads: list[Any]) -> list[Any]:
        grad = grads[0]
        part = look(grad, self.chain)
        rest = None
        if self.edges[0] is not None:
            rest = put(grad, self.chain, TABLE["zeros_like"](part))
        return [rest, part.clone()]


class AsStridedBackward0(_ChainNode):
    """The history of a view whose base was written: base -> view."""

    __slots__ = ()
    __module__ = "builtins"

    def __init__(self, base: Tensor, chain: Any, view: Tensor):
        self._prepare(base, chain, (history(base),))
        self.out_types = (TensorType(view.dtype, view._array.shape),)

    def apply(self, grads: list[Any]) -> list[Any]:
        shape, dtype = self.base_type.shape, self.base_type.dtype
        zeros = TABLE["full"](size=shape, fill_value=0, dtype=dtype)
        return [put(zeros, self.chain, grads[0])]


def regenerate_history(view_tensor: Tensor) -> None:
    view = view_tensor._view
    view.seen = view_tensor._storage.version
    base = view.base
    if not base._requires_grad or view_tensor.dtype.category < FLOAT:
        return
    view_tensor._node = AsStridedBackward0(base, view.chain, view_tensor)
    view_tensor._nr, view_tensor._requires_grad = 0, True


def write_out(function: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """`f(..., out=t)`: resizes `t` where its shape differs and writes the result into it."""
    if state.grad_enabled:
        everything = [*args, *kwargs.values(), *(out if isinstance(out, tuple | list) else [out])]
        if any(isinstance(a, Tensor) and a._requires_grad for a in everything):
            raise RuntimeError(
                f"{function.__name__}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
    result = function(*args, **kwargs)
    if isinstance(result, Tensor):
        copy_out(result, out, function.__name__)
        return out
    for part, place in zip(result, out):
        copy_out(part, place, function.__name__)
    return type(result)(out) if hasattr(result, "_fields") else tuple(out)


def copy_out(result: Tensor, out: Any, name: str) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if result.dtype.category > out.dtype.category:
        raise RuntimeError(f"result type {type_word(result.dtype)} can't be cast to the desired "
                           f"output type {type_word(out.dtype)}")  # fmt: skip
    if out._array.shape != result._array.shape:
        out._array = np.empty(result._array.shape, out.dtype.storage)
        out._storage = Storage(out._array, out._version)
    np.copyto(out._array, cast_array(result._array, result.dtype, out.dtype))
    bump(out.storage_)
    watcher = getattr(state.top, "written", None)
    if watcher is not None:
        watcher(out, result)


value_module.run_inplace = run_inplace
value_module.write_out = write_out
