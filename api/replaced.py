"""Backward of a compiled function whose inputs were given other memory since.

Note [Replaced memory]
    After `w.data = new` eager's backward reads the new memory where it kept `w` itself, and the old
    where it kept a view, as `x @ w.t()` does. So arrays of inputs of which eager keeps views are
    saved beside what forward made, and a compiled backward is given these. Where eager keeps a
    tensor in both ways, backward is told of writes (Note [Written inputs]) and ops take its place,
    with views on a copy of the old memory and tensors on one of the new (`Copies`). Where it does
    not read again what eager keeps a view of, it is told as well (`left`).

Note [Replaced results]
    So it is with results (`y.data = new`): where `y * y` kept the tensor, eager reads the new
    memory, but the old where `exp` kept its output. Ops take the place of the node, and the result
    of theirs that stands for `y` gets a copy of the new memory. A value that one segment gives to
    the next is another tensor here than the one which the caller gets in the end; it is known by
    its memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from .tracer.eager import history
from .tracer.pending import memory_of
from .tracer.saved import attach_edge
from .tracer.storage import Renewed, Storage
from .tracer.tensor import Tensor

NOTHING: Mapping[int, np.ndarray] = MappingProxyType({})


def replaced(node: Any) -> Mapping[int, np.ndarray]:
    """The inputs of a node that have other memory now: that of the views that eager keeps."""
    kept = node.split.kept
    if not kept or node.inputs is None or node.saved is None:
        return node.left  # type: ignore[no-any-return]
    arrays = node.saved[-len(kept) :]
    found = {k: array for k, array in zip(kept, arrays) if is_replaced(node.inputs[k], array)}
    return {**node.left, **found} if found else node.left


def kept_arrays(node: Any) -> Any:
    """What is known of memory that inputs had, when the node lets go of what it saved."""
    count = len(node.split.kept)
    return node.saved[-count:] if count else None


def needs_ops(node: Any) -> bool:
    """Are there views on other memory, and can't the compiled backward be given that instead?"""
    found, direct = replaced(node), node.split.as_eager.parts.direct
    return bool(found) and (node.before is not None or not direct.isdisjoint(found))


def note_replacement(node: Any, tensor: Any) -> None:
    """Before a tensor is given other memory."""
    node.left = {**node.left, **left_behind(node, tensor)}
    node.moved = {**node.moved, **moved_away(node, tensor)}


def left_behind(node: Any, tensor: Any) -> dict[int, np.ndarray]:
    """For `left`, before a tensor is given other memory."""
    viewed, kept = node.split.as_eager.viewed, node.split.kept
    return {k: memory_of(t) for k, t in enumerate(node.inputs or ()) if t is tensor
            and k in viewed and k not in kept and k not in node.left}  # fmt: skip


def moved_away(node: Any, tensor: Any) -> dict[int, Any]:
    """For `moved`, before a tensor is given other memory: by the number of the result, or of the
    input (as ~k) that a segment before has made."""
    function = node.split.function
    held = {k: (array, k in function.differentiable) for k, (array, *_) in
            node.results_held().items()}  # fmt: skip
    inner = {~k: (memory_of(t), t._requires_grad) for k, t in enumerate(node.inputs or ())
             if k in function.inner}  # fmt: skip
    return {k: tensor for k, known in (held | inner).items() if stands_for(tensor, *known)}


def stands_for(tensor: Any, array: np.ndarray, history: bool) -> bool:
    """Is it the one that has this memory, with a history or not, and no view of it?"""
    mine = memory_of(tensor)
    return (
        (tensor._node is not None) is history
        and tensor._view is None
        and mine.ctypes.data == array.ctypes.data
        and (mine.dtype, mine.shape, mine.strides) == (array.dtype, array.shape, array.strides)
    )


def is_replaced(tensor: Any, array: np.ndarray) -> bool:
    """Was a tensor on this memory given another since?"""
    return tensor._array is not array and tensor._storage.__class__ is Renewed


def counter_of(tensor: Any, array: np.ndarray) -> Storage | None:
    """What counts writes to that memory, which is or was a tensor's."""
    storage = tensor._storage
    if is_replaced(tensor, array):
        return storage.former(array)  # type: ignore[no-any-return]
    return storage  # type: ignore[no-any-return]


def old_tensor(node: Any, k: int) -> Tensor | None:
    """An input on the memory that it had, with its history, where it has other memory now."""
    array = replaced(node).get(k)
    if array is None:
        return None
    tensor, storage = node.inputs[k], counter_of(node.inputs[k], array)
    if storage is not None and k in node.split.as_eager.looked_at(node.numbers, True):
        node.check(storage, node.versions[k], f"input {k}")
    value = Tensor._wrap(array, node.split.function.trace.inputs[k].var.dtype)
    value._storage = storage or Storage(array, node.versions[k])
    edge = history(tensor)
    if edge is not None:
        attach_edge(value, edge)
    return value


def check_kept(node: Any, looked_at: Collection[int]) -> None:
    """Raises where somebody wrote to arrays that eager looks at."""
    kept = node.split.kept
    for k, array in zip(kept, node.saved[-len(kept) :]):
        storage = counter_of(node.inputs[k], array) if k in looked_at else None
        if storage is not None:
            node.check(storage, node.versions[k], f"input {k}")
