"""In-place writes: checks, version counters, rebased history.

An in-place twin runs the ordinary op and copies the result into the tensor's memory; where no
history is kept the op may write there itself. On a view, the base's new history is "the base with
the result put at the view's place" (`CopySlices`), and every view of it derives its history anew
when next asked (`AsStridedBackward0`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import value as value_module
from ..ir.bind import state
from ..ir.places import describe_place, user_place
from ..ir.types import FLOAT, TensorType, type_word
from .eager import history, run
from .hooks import active
from .overlap import check_operands, run_in_turns, shows_twice
from .quiet import quiet, restore
from .readers import announce_write, readers
from .rebase import AsStridedBackward0, CopySlices, look, put
from .saved import SavedOutput, short_name
from .storage import Storage
from .tape import Node, OpNode, end_of, retain
from .tensor import Tensor
from .unseen import is_seen_as_view


def bump(storage: Storage) -> None:
    """Counts a write and remembers where the user made it."""
    storage.note_write(user_place())


def last_write(storage: Storage) -> str:
    """Where the memory was written last."""
    return describe_place(storage.written)


def run_inplace(
    function: Any, target: Tensor, args: Any, kwargs: Any, resizing: bool = False
) -> Tensor:
    """`target.function_(*args)`: computes first, so nothing is changed when it raises."""
    if not isinstance(target, Tensor):
        raise TypeError(
            f"in-place {function.__name__}_ needs a Tensor, got {type(target).__name__}"
        )
    batching = getattr(state.top, "inplace", None)
    if batching is not None:
        return batching(function, target, args, kwargs, resizing)
    tracked = state.grad_enabled and (target.requires_grad or needs_grad(args, kwargs))
    if tracked:
        check_history(target)
    check_memory(target)
    check_operands(function, target, (*args, *kwargs.values()))
    op = getattr(function, "op", None)
    seen = target._view is not None or target._array.base is not None  # as_strided_ made it so
    repeated = seen and shows_twice(target)
    if not tracked:
        if (
            op is not None
            and not repeated
            and state.top is run
            and not (args and getattr(function, "strict", False) and type(args[0]) in (int, float))
            and write_directly(op, target, args, kwargs)
        ):
            return target
        before = Tensor._wrap(target._array, target.dtype)
    else:
        # The old value may be saved by several nodes where the function is made of several ops,
        # and hooks may keep what they are given.
        before = shadow(target, copied=op is None or bool(active.saved))
    watcher = getattr(state.top, "aliased", None)
    if watcher is not None:
        watcher(target, before)
    if repeated:
        result = run_in_turns(function, target, before, args, kwargs)
    else:
        result = new_value(function, before, args, kwargs, tracked)
    if resizing:
        take_shape(target, result)
    return assign(target, result, before, function.__name__, tracked)


def new_value(function: Any, before: Tensor, args: Any, kwargs: Any, tracked: bool) -> Tensor:
    """What `function_` writes in the place of `before`."""
    result = function(before, *args, **kwargs)
    if tracked and hasattr(function, "inplace_result") and before.dtype.category >= FLOAT:
        return function.inplace_result(result, before, *args, **kwargs)
    return result


def needs_grad(args: Any, kwargs: Any) -> bool:
    """Does some operand require grad?"""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            if value.requires_grad:
                return True
        elif isinstance(value, tuple | list) and needs_grad(value, {}):
            return True
    return False


def write_directly(op: Any, target: Tensor, args: Any, kwargs: Any) -> bool:
    """NumPy writes into the tensor's memory itself, where all operands are of its float dtype."""
    if type(op.numpy) is not np.ufunc and not op.out_argument:
        return False
    array, dtype = target._array, target.dtype
    if dtype.compute is not dtype.storage or dtype.category < FLOAT:
        return False
    operands = [array]
    for value in args:
        if isinstance(value, Tensor):
            if value.dtype is not dtype or value._mark == "inference":
                return False
            other = value._array
            if other is not array and np.may_share_memory(array, other):
                return False  # NumPy would make a copy, too
            operands.append(other)
        elif type(value) is float or type(value) is int:
            operands.append(value)
        else:
            return False
    token = quiet()
    try:
        if len(operands) != len(op.inputs) or op.infer_types(
            [TensorType(dtype, np.shape(a)) for a in operands], kwargs
        ) != (TensorType(dtype, array.shape),):
            return False
        op.numpy(*operands, out=array, **kwargs)
    finally:
        restore(token)
    bump(target.storage_)
    return True


def shadow(target: Tensor, copied: bool) -> Tensor:
    """The value before the write, as a tensor of its own with the target's history."""
    before = target._twin()
    before._storage = None
    if copied:
        before._array = target._array.copy()
    edge = history(target)
    if edge is not None:
        before._requires_grad = True
        before._node, before._nr = edge
    return before


# --- what may be written -------------------------------------------------------------------------

_OVERLAP = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)


def check_memory(target: Tensor) -> None:
    """Memory that is written must not overlap itself, nor belong to a finished inference.

    Those who read it again are told.
    """
    array = target._array
    if readers:
        announce_write(array)
    if not array.flags.writeable or (array.size > 1 and overlaps(array)):
        raise RuntimeError(_OVERLAP)
    if target._mark == "inference" and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )


def overlaps(array: np.ndarray) -> bool:
    return any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape))


def check_history(target: Tensor) -> None:
    """torch's rules on what may be written while history is recorded."""
    view = target._view
    if view is not None:
        check_view(target, "is being modified inplace")
        if target.requires_grad and view.base._node is None:
            raise RuntimeError("a view of a leaf Variable that requires grad is being used in an "
                               "in-place operation.")  # fmt: skip
    elif target._requires_grad and target._node is None:
        raise RuntimeError(_LEAF.replace("a leaf", "a view of a leaf")
                           if is_seen_as_view(target) else _LEAF)  # fmt: skip


_LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
_INDIRECT = "its base or another view of its base has been modified inplace"
_AMBIGUOUS = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {} block (if you don't "
    "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)


def check_view(target: Tensor, what: str) -> None:
    """Views that came from several-output, custom or untracked calls refuse rebasing."""
    origin = target._view.origin
    if not origin:
        return
    who = "A view was created in no_grad mode and" if target._node is None else (
        f"Output {target._nr} of {short_name(target._node)} is a view and")  # fmt: skip
    if origin in ("no_grad", "inference"):
        mode, now, block = ("no_grad", "with grad mode enabled", "no_grad") if (
            origin == "no_grad") else ("inference", "in normal mode", "inference_mode")  # fmt: skip
        raise RuntimeError(
            f"A view was created in {mode} mode and {what} {now}. {_AMBIGUOUS.format(block)}"
        )
    if origin == "level":
        raise RuntimeError(_LEAF)
    if origin == "multi":
        mode = " with grad mode enabled" if target._node is None else ""
        raise RuntimeError(
            f"{who} {what}{mode}. This view is the output of a function that returns multiple "
            "views. Such functions do not allow the output views to be modified inplace. You "
            "should replace the inplace operation by an out-of-place one."
        )
    raise RuntimeError(
        f"{who} {what}. This view was created inside a custom Function (or because an input was "
        "returned as-is) and the autograd logic to handle view+inplace would override the custom "
        "backward associated with the custom Function, leading to incorrect gradients. This "
        "behavior is forbidden. You can fix this by cloning the output of the custom Function."
    )


# --- writing -------------------------------------------------------------------------------------

# ops whose in-place twin converts the result to the tensor's dtype whatever its category
_CASTING = {"eq", "ne", "lt", "le", "gt", "ge", "copy", "fill", "isnan", "float_power"}


def assign(target: Tensor, result: Tensor, before: Tensor, name: str, tracked: bool) -> Tensor:
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
    saved = getattr(result._node, "saved", None) if tracked else None
    if result.dtype is not target.dtype:
        if target.dtype.is_complex and name.rstrip("_") == "abs":
            raise RuntimeError("In-place abs is not supported for complex tensors.")
        result = result.to(target.dtype)
    if (
        type(saved) is tuple
        and before._array is target._array
        and any(entry is before for entry in saved)
    ):
        before._array = target._array.copy()
    write(target, result)
    if tracked and target.dtype.category >= FLOAT:
        rebase(target, result, before)
    return target


def write(target: Tensor, result: Tensor) -> None:
    """Copies the bytes, counts the write, and tells the recording, if one is on."""
    postpone = getattr(state.top, "write", None)
    if postpone is not None:
        postpone(target, result)
    elif result._array is not target._array:
        np.copyto(target._array, result._array, casting="unsafe")
    bump(target.storage_)
    watcher = getattr(state.top, "written", None)
    if watcher is not None:
        watcher(target, result)


def rebase(target: Tensor, result: Tensor, before: Tensor) -> None:
    """The history after a write: the result's own, or `CopySlices` on the base of a view.

    A write that autograd does not see, as of `logical_not_`, leaves the history as it was.
    """
    node, view = result._node, target._view
    if view is None:
        if node is not None:
            take_history(target, (node, result._nr))
            repoint_saved(node, result, target)
        return
    edge = (before._node, before._nr) if before._requires_grad else None
    alone = (isinstance(node, OpNode) and len(node.output_types()) == 1 and bool(node.edges)
             and node.edges[0] == edge)  # fmt: skip
    if alone or result._requires_grad:
        repoint_saved(node, result, target)
        rebase_view(target, node if alone else None, result)


def take_history(target: Tensor, edge: tuple[Node, int]) -> None:
    """`target` is what `edge` gave; a retained gradient follows, hooks stay with the old value."""
    old = target._node
    if target.retains_grad and old is not None:
        node, number = end_of((old, target._nr))
        kept = node._extra().retained.get(number, [])
        kept[:] = [reference for reference in kept if reference() is not target]
    target._node, target._nr = edge
    target._requires_grad = True
    if target.retains_grad:
        retain(target)


def repoint_saved(node: Any, result: Tensor, target: Tensor) -> None:
    """A node that saved its output finds it in the written memory from now on."""
    slots = getattr(node, "plan", None)
    slot = slots.slots.get(~result._nr) if slots is not None else None
    if slot is not None and isinstance(node.saved[slot], SavedOutput):
        node.saved[slot].keep(target)


def rebase_view(target: Tensor, node: Any, result: Tensor | None = None) -> None:
    """The base's history after a write through `target`."""
    base = target._view.base
    take_history(base, (CopySlices(base, target._view.chain, node, result), 0))
    regenerate_history(target)


def regenerate_history(tensor: Tensor) -> None:
    """The base was written since the view's history was made: derive it from the base's."""
    view = tensor._view
    base = view.base
    if not base._requires_grad or tensor.dtype.category < FLOAT:
        view.seen = tensor._storage.version
        return
    check_view(tensor, _INDIRECT)
    view.seen = tensor._storage.version
    take_history(tensor, (AsStridedBackward0(base, view.chain, tensor), 0))


def take_shape(target: Tensor, result: Tensor) -> None:
    """New memory for `target` where its shape is not the result's."""
    if target._array.shape != result._array.shape:
        target._array = np.empty(result._array.shape, target.dtype.storage)
        target._storage = Storage(target._array, target._version)


__all__ = ["AsStridedBackward0", "CopySlices", "bump", "last_write", "look", "put", "rebase_view",
           "regenerate_history", "run_inplace", "take_history", "take_shape"]  # fmt: skip
value_module.run_inplace = run_inplace
