"""The derivative of one node: by a native kernel, by straight code, or by the rules on tensors."""

from __future__ import annotations

from typing import Any

from ..ir.derivative import settings_of
from . import straight
from .large import MANY, Kernels, any_large, limit_of
from .saved import PackedSlots, with_unpacked
from .tape import OpNode, named_class


def derive(node: Any, grads: list[Any], direct: bool) -> Any:
    """Gradients of the inputs of an op's node; `direct` if nobody will differentiate them."""
    if node.saved.__class__ is PackedSlots:
        return with_unpacked(node, lambda: derive(node, grads, direct))
    results = NotImplemented
    if not direct:
        results = pull_recorded(node, grads)
    else:
        grad = grads[0]
        if is_large(node, None if grad is None else grad._array.size):
            results = Kernels.backward(node, grads)
        if results is NotImplemented:
            results = straight.pull(node, grads)
    if results is NotImplemented:
        results = node.plan.uniform(node, grads) if node.types is None else node.apply(grads)
    if not direct and node.op.second:
        name_gradients(node, grads, results)
    return results


def name_gradients(node: OpNode, grads: list[Any], results: list[Any]) -> None:
    """Gives gradients with history the node names that torch's kernels for them have.

    There `tanh_backward` is one op, here its rule is several: the last of them has the name.
    """
    given = {id(grad._node) for grad in grads if grad is not None}
    for result in results:
        last = None if result is None else result._node
        if isinstance(last, OpNode) and id(last) not in given:
            name = node.op.second
            if name is True:
                name = type(node).__name__.replace("Backward", "BackwardBackward")
            last.__class__ = named_class(last.op, name)


def pull_recorded(node: Any, grads: list[Any]) -> Any:
    """What the node's puller gives, with history; see Note [Familiar calls]."""
    plan, attrs, types = node.plan, node.attrs, node.types
    settings = settings_of(attrs) if attrs else ()
    here = (node.uniform if types is None else (*types[0], None, *types[1]), settings)
    pull = plan.recorded.get(here)
    if pull is None:
        from .familiar_calls import recalled

        if len(plan.recorded) >= straight.MOST:
            plan.recorded.clear()
        what = straight.derivative_of(node, settings)
        pull = plan.recorded[here] = recalled(lambda *operands: what.build(operands))
    return pull(*node.operands(grads))


def is_large(node: Any, size: int | None) -> bool:
    """Is the gradient of a large `size`, or a saved value? See Note [Large calls]."""
    if size is not None:
        if node.op.kind == "product":
            return size * node.input_type(-2).shape[-1] >= MANY
        if size >= limit_of(node.op):
            return True
    if node.types is None:
        return False  # what it saved has the gradient's size
    return any_large([getattr(v, "_array", getattr(v, "array", None)) for v in node.saved],
                     limit_of(node.op))  # fmt: skip


def is_silent(leaf: Any) -> bool:
    """Does accumulating a leaf's gradient run no code of the user's?"""
    facts = leaf.variable._leaf
    return leaf.extra is None and facts.hooks is None and facts.post_hooks is None
