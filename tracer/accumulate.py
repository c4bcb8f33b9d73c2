"""Sums of gradients: in the engine's buffers, in `.grad` of leaves, for `retain_grad`.

Note [Taking a gradient]
    The first gradient of a leaf becomes its `.grad`. It is taken as it is when nobody else can see
    it: only the engine refers to the tensor, only the tensor to its array, and the array owns its
    memory in the leaf's layout, or looks at all of another that nobody else refers to (a product
    transposed twice, say). Otherwise it is copied. Reference counts tell; how many the engine
    itself holds is measured once, since it differs between versions of Python.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..ir.bind import notify, state
from ..ir.types import float32
from .quiet import quietly
from .readers import announce_write, readers
from .tensor import Tensor

_getrefcount = sys.getrefcount


def add_into(slots: list[Any], number: int, grad: Any, target: Any, sums: Any) -> None:
    """Adds a gradient to slot `number`; `sums` knows the totals that may be changed in place."""
    if number >= len(slots):
        slots.extend([None] * (number + 1 - len(slots)))
    here = slots[number]
    if here is None:
        slots[number] = grad
    elif is_sparse(grad) or is_sparse(here):
        slots[number] = grad + here if is_sparse(here) and not is_sparse(grad) else here + grad
    elif sums is not None and number == 0 and sums.get(target) is here:
        quietly(np.add, here._array, grad._array, here._array)
    else:
        total = slots[number] = here + grad
        if sums is not None and number == 0 and total.__class__ is Tensor and is_native(total):
            sums[target] = total


def is_sparse(grad: Any) -> bool:
    """Is it a gradient of which some rows are there? See Note [Sparse gradients]."""
    return grad.__class__ is not Tensor and grad is not None and grad.is_sparse


def accumulate_sparse(leaf: Tensor, here: Any, grad: Any, create_graph: bool) -> None:
    """Adds to `.grad` where one of the two is sparse; both together give a dense one."""
    if here is None:
        leaf._grad = grad if create_graph else grad.detach()
    elif is_sparse(here) or create_graph:
        leaf._grad = here + grad if is_sparse(grad) else grad + here
    else:
        here.add_(grad.to_dense())


def is_native(tensor: Tensor) -> bool:
    """Can NumPy add to the tensor's array as it is stored?"""
    return tensor.dtype.compute is tensor.dtype.storage and tensor._array.ndim > 0


def may_add(grad: Any) -> bool:
    """Can `add_to` add to a gradient?"""
    return (
        grad.__class__ is Tensor
        and grad._view is None
        and is_native(grad)
        and grad._array.flags.writeable
        and not grad._requires_grad
    )


def add_to(grad: Tensor, other: Tensor, place: Any) -> None:
    """grad += other, without history, whatever NumPy thinks of overflow."""
    array = grad._array
    if readers:
        announce_write(array)
    quietly(np.add, array, other._array, array)
    grad.storage_.note_write(place)


def accumulate(
    leaf: Tensor, slots: list[Any], create_graph: bool, direct: bool, place: Any
) -> None:
    """Adds the gradient in `slots` to the leaf's `.grad`: taken, copied, in place, or anew.

    `direct` says that nothing watches: no recording is on. `place` is where backward was called.
    """
    grad = slots.pop()
    if grad is None or not leaf._requires_grad:  # it may have been switched off since
        return
    if not direct:
        notify("grad_read", leaf)
    here = leaf._grad
    if is_sparse(grad) or is_sparse(here):
        accumulate_sparse(leaf, here, grad, create_graph)
    elif here is not None and not create_graph:
        if direct and may_add(here):
            add_to(here, grad, place)
        else:
            here.add_(grad)
    else:
        if here is not None:
            leaf._grad = here + grad
        elif not create_graph and _may_take(grad, leaf):
            leaf._grad = grad
        else:
            leaf._grad = in_layout_of(leaf, grad, create_graph)
        if not direct:
            notify("grad_set", leaf)
    facts = leaf._leaf
    if facts is not None and facts.post_hooks:
        for hook in list(facts.post_hooks.values()):
            hook(leaf)


def _may_take(grad: Tensor, leaf: Tensor) -> bool:
    """See Note [Taking a gradient]; afterwards the tensor's array owns its memory."""
    if grad.__class__ is not Tensor:
        return False
    array = grad._array
    if (
        _getrefcount(grad) > _COUNTS[0]
        or _getrefcount(array) > _COUNTS[1]
        or array.strides != leaf._array.strides
        or grad._storage is not None
        or grad._requires_grad
        or not array.flags.writeable
    ):
        return False
    owner = array.base
    if owner is None:
        return True
    if (
        owner.__class__ is not np.ndarray
        or _getrefcount(owner) > _COUNTS[2]
        or owner.base is not None
        or owner.shape != array.shape
        or owner.strides != array.strides
        or owner.dtype is not array.dtype
    ):
        return False
    grad._array = owner
    return True


def _measured() -> tuple[int, int, int]:
    """References to a gradient that is the engine's own, to its array, to the array's owner."""
    counts = []

    def look(grad: Tensor) -> None:
        array = grad._array
        owner = array.base
        counts.append((_getrefcount(grad), _getrefcount(array), _getrefcount(owner)))

    def receive(slots: list[Any]) -> None:
        grad = slots.pop()
        look(grad)

    def send() -> None:
        slots = [Tensor._wrap(np.zeros((1, 1), np.float32).T, float32)]
        receive(slots)

    send()
    return counts[0]


_COUNTS = _measured()


def in_layout_of(leaf: Tensor, grad: Tensor, create_graph: bool) -> Tensor:
    """A copy with the leaf's strides where these are dense, else row-major."""
    wanted = leaf._array
    order = "K" if not wanted.flags.c_contiguous and dense(wanted) else "C"
    if not create_graph and grad.__class__ is Tensor and grad.dtype is leaf.dtype and (
        state.top is state.bottom or hasattr(state.top, "copied")
    ):  # fmt: skip
        array = np.empty_like(wanted, order=order)
        array[...] = grad._array
        copy = Tensor._wrap(array, leaf.dtype)
        notify("copied", grad, copy)
        return copy
    fresh = Tensor._wrap(np.empty_like(wanted, order=order), leaf.dtype)
    notify("made", fresh)
    if create_graph:
        return fresh.copy_(grad)
    fresh.copy_(grad.detach())
    fresh.storage_.version = 0  # as of a clone: nobody has seen it before
    return fresh


def dense(array: np.ndarray) -> bool:
    """Are the elements without gaps and overlaps, in whatever order of dimensions?"""
    step = array.itemsize
    for stride, size in sorted(zip(array.strides, array.shape)):
        if size > 1:
            if stride != step:
                return False
            step *= size
    return True


def store_retained(tensor: Tensor, grad: Any) -> None:
    """`retain_grad`: the first gradient is kept as a copy, later ones are added."""
    if tensor._grad is None:
        tensor._grad = grad.clone() if state.grad_enabled else grad.detach().clone()
    else:
        tensor._grad = tensor._grad + grad
