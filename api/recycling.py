"""Which gradients of the last call a bound call may write over.

Note [Recycled gradients]
    A step that sets `.grad` to new tensors makes new memory for them at each call, while the old
    is dropped. Where nobody but its owner holds the old gradient, which its reference count tells,
    nobody can see that the new one is put into the same tensor.
"""

from __future__ import annotations

import sys
from typing import Any

from .tracer.tensor import Tensor


def is_private(owner: Any, version: int) -> bool:
    """Does nobody but its owner hold the gradient, and nobody but the gradient its array?

    Where it was written, its storage holds that too.
    """
    grad = owner._grad
    if type(grad) is not Tensor or grad._requires_grad or grad._array.base is not None:
        return False
    if any(getattr(grad, slot) is not None for slot in ("_node", "_view", "_leaf")):
        return False
    array, storage = grad._array, grad._storage
    if (0 if storage is None else storage.version) != version or (version == 0) is not (
            storage is None) or (version and storage.root is not array):  # fmt: skip
        return False
    counts = sys.getrefcount(grad), sys.getrefcount(array) - bool(version)
    once = counts == HELD_ONCE and (version == 0 or sys.getrefcount(storage) == HELD_ONCE[1])
    return once and array.flags.c_contiguous and array.flags.writeable


def _held_once() -> tuple[int, int]:
    """Reference counts as `is_private` sees them."""
    holder = [[object()]]
    outer = holder[0]
    inner = outer[0]
    return sys.getrefcount(outer), sys.getrefcount(inner)


HELD_ONCE = _held_once()
