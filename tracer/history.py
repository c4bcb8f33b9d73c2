"""What ties results to their operands: views to their base, nodes to the nodes behind them."""

from __future__ import annotations

import traceback
from typing import Any

from ..ir.bind import state
from ..ir.op import Op
from ..ir.places import user_place
from ..ir.types import FLOAT, TensorType, scalar_dtype
from .saved import plan_of, save_values
from .storage import Storage, View
from .tape import ANOMALY, NotImplementedNode, accumulator_of, next_sequence, node_class
from .tensor import PLAIN, Tensor

_new_type = tuple.__new__  # a NamedTuple's own constructor takes three times as long


def input_type(value: Any) -> TensorType | None:
    if value.__class__ in PLAIN or isinstance(value, Tensor):
        return _new_type(TensorType, (value.dtype, value._array.shape))
    if value is None:
        return None
    return TensorType(scalar_dtype(value), ())


def attach_views(op: Op, source: Tensor, outputs: list[Tensor], attrs: dict[str, Any]) -> None:
    """Results that share memory with `source` share its storage and remember how they see it."""
    if source._storage is None:
        source._storage = Storage(source._array)
    storage = source._storage
    view = source._view
    base, chain = (source, ()) if view is None else (view.base, view.chain)
    origin = "" if state.grad_enabled else "inference" if state.inference else "no_grad"
    if op.multi_view:
        origin = "multi"
    if not origin and view is not None:
        origin = view.origin
    version, needs = storage.version, base._requires_grad
    for position, tensor in enumerate(outputs):
        tensor._storage = storage
        step = (op, attrs, position if op.multi_view else 0)
        tensor._view = View(base, (*chain, step) if chain else (step,), version, origin)
        if needs and tensor.dtype.category >= FLOAT:
            tensor._requires_grad = True


def record(
    op: Op, inputs: tuple[Any, ...], outputs: list[Any], attrs: dict[str, Any], wanted: Any = None
) -> None:
    """Adds the node of this call to the graph, unless no input with a rule needs a gradient."""
    if wanted is None:
        wanted = tuple([isinstance(v, Tensor) and v.requires_grad for v in inputs])
    plan = op.plans.get(wanted) or plan_of(op, wanted)
    needs = plan.needs
    if True not in needs:
        if op.node == "NotImplemented":
            refuse_gradient(op, inputs, outputs)
        return
    node = object.__new__(op.node_type or node_class(op, attrs, inputs))
    node.attrs, node.plan, node.saved, node.versions = attrs, plan, (), ()
    set_edges(node, op, inputs, outputs, needs)
    node.sequence = next_sequence()
    node.place = user_place()
    node.extra = None
    for position, tensor in enumerate(outputs):
        if tensor.dtype.category >= FLOAT:
            tensor._node, tensor._nr, tensor._requires_grad = node, position, True
    if plan.keys:
        save_values(node, plan, inputs, outputs, history)
    if ANOMALY:
        node._extra().metadata["traceback_"] = traceback.format_stack()


def set_edges(node: Any, op: Op, inputs: Any, outputs: Any, needs: Any) -> None:
    """Where gradients go on to, and the types of the call; see Note [Uniform calls]."""
    edges, types = [], []
    dtype, shape = outputs[0].dtype, outputs[0]._array.shape
    uniform = op.promote is not None
    for value, needed in zip(inputs, needs):
        if value.__class__ in PLAIN:
            kind = _new_type(TensorType, (value.dtype, value._array.shape))
            uniform = uniform and kind == (dtype, shape)
        else:
            kind = input_type(value)
            uniform = uniform and not isinstance(value, Tensor)
        types.append(kind)
        edges.append(history(value) if needed else None)
    node.edges = tuple(edges)
    if uniform:
        node.uniform, node.types = (dtype, shape), None
        return
    node.uniform = None
    node.types = types, [_new_type(TensorType, (t.dtype, t._array.shape)) for t in outputs]


def refuse_gradient(op: Op, inputs: Any, outputs: list[Tensor]) -> None:
    """torch marks the results of ops without derivative; backward through them raises."""
    edges = tuple(history(v) for v in inputs if isinstance(v, Tensor) and v._requires_grad)
    for position, tensor in enumerate(outputs):
        if tensor.dtype.category >= FLOAT:
            tensor._node, tensor._nr = NotImplementedNode(op.name, edges), position
            tensor._requires_grad = True


def history(value: Any) -> tuple[Any, int] | None:
    """The graph edge gradients of `value` flow into."""
    if value._view is not None:
        refresh_view(value)
    if not value._requires_grad:
        return None
    if value._node is None:
        return accumulator_of(value), 0
    return value._node, value._nr


def refresh_view(tensor: Tensor) -> None:
    """If the base was written in place since the view was made, derive the view's history anew."""
    view = tensor._view
    if tensor._storage.version != view.seen:
        from .inplace import regenerate_history

        regenerate_history(tensor)
