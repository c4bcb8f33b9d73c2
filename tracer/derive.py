"""The derivative of one node: by a native kernel, by straight code, or by the rules on tensors."""

from __future__ import annotations

from typing import Any

from . import straight
from .large import LARGE, MANY, Kernels, any_large


def derive(node: Any, grads: list[Any], direct: bool) -> Any:
    """Gradients of the inputs of an op's node; `direct` if nobody will differentiate them."""
    results = NotImplemented
    if direct:
        grad = grads[0]
        if is_large(node, None if grad is None else grad._array.size):
            results = Kernels.backward(node, grads)
        if results is NotImplemented:
            results = straight.pull(node, grads)
    if results is NotImplemented:
        results = node.plan.uniform(node, grads) if node.types is None else node.apply(grads)
    return results


def is_large(node: Any, size: int | None) -> bool:
    """Is the gradient of a large `size`, or a saved value? See Note [Large calls]."""
    if size is not None:
        if node.op.kind == "product":
            return size * node.input_type(-2).shape[-1] >= MANY
        if size >= LARGE:
            return True
    if node.types is None:
        return False  # what it saved has the gradient's size
    return any_large([getattr(v, "_array", getattr(v, "array", None)) for v in node.saved])


def is_silent(leaf: Any) -> bool:
    """Does accumulating a leaf's gradient run no code of the user's?"""
    facts = leaf.variable._leaf
    return leaf.extra is None and facts.hooks is None and facts.post_hooks is None
