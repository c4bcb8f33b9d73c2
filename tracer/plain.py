"""The short way of ops that do not promote: products, reductions, views, losses.

Note [Plain tensors]
    Where a call gets small tensors of one dtype, float32 or float64 (beside integers), with nothing
    on top of eager execution, its result needs no widening and no inference. For each op that has a
    fixed number of inputs and one output, a function for such calls is written from the text below
    when the op is first called; it answers None for all other calls, and for those that fail, which
    then go the general way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.bind import state
from ..ir.op import Op
from ..ir.texts import function_of
from ..ir.types import FLOAT, FROM_NUMPY, TensorType, float32, float64
from .history import history
from .large import LARGE, MANY
from .places import user_place
from .quiet import quiet, restore
from .saved import plan_of, save_values
from .storage import Storage, View
from .tape import ANOMALY, accumulator_of, next_sequence, node_class
from .tensor import PLAIN, Tensor

INPUT = """\
    if {x}.__class__ not in PLAIN:
        return None
    {x}_view = {x}._view
    {x}_needs = {x}._requires_grad
    if {x}_view is not None and not {x}_needs and {x}_view.base._requires_grad:
        return None
    {x}_array = {x}._array
"""

FIRST = """\
    dtype = {x}.dtype
    if dtype is not float32 and dtype is not float64:
        return None
    mark = {x}._mark
"""

OTHER = """\
    if {x}.dtype is not dtype and {x}.dtype.category >= FLOAT:
        return None
    mark = mark or {x}._mark
"""

EVALUATE = """\
    if {large} or mark == "inference" or state.inference or ANOMALY{special}:
        return None
{before}\
    try:
        array = evaluate({operands})
    except Exception:
        return None
{after}\
    if array.__class__ is not ndarray:
        array = asarray(array)
    out = new(Tensor)
    out._array = array
    out._storage = out._node = out._grad = out._view = out._leaf = out._mark = None
    out._nr = 0
    out.dtype = dtype = dtype if array.dtype is dtype.storage else FROM_NUMPY[array.dtype]
    out._requires_grad = False
"""

ATTACH = """\
    storage = x0._storage
    if storage is None:
        storage = x0._storage = Storage(x0_array)
    out._storage = storage
    view = new(View)
    view.seen = storage.version
    if x0_view is None:
        view.base = base = x0
        view.chain = ((op, attrs, 0),)
        view.origin = "" if state.grad_enabled else "no_grad"
    else:
        view.base = base = x0_view.base
        view.chain = (*x0_view.chain, (op, attrs, 0))
        view.origin = x0_view.origin if state.grad_enabled else "no_grad"
    out._view = view
    if base._requires_grad and dtype.category >= FLOAT:
        out._requires_grad = True
"""

RECORD = """\
    if not ({needs}):
        out._mark = mark
        return out
    if not state.grad_enabled:
        out._mark = state.cut
        return out
    wanted = ({wanted})
    plan = plans.get(wanted) or plan_of(op, wanted)
    if not plan.any or dtype.category < FLOAT:
        return out
    node = new(op.node_type or node_class(op, attrs, inputs))
    node.attrs = attrs
    node.plan = plan
    edges = []
    for x, needed in zip(inputs, plan.needs):
        if not needed:
            edges.append(None)
        elif x._view is not None:
            edges.append(history(x))
        elif x._node is None:
            edges.append((accumulator_of(x), 0))
        else:
            edges.append((x._node, x._nr))
    node.edges = tuple(edges)
    node.uniform = None
    node.types = [{types}], [new_type(TensorType, (dtype, array.shape))]
    node.sequence = next_sequence()
    node.extra = None
    node.place = user_place()
    out._requires_grad = True
    out._node = node
    if plan.keys:
        save_values(node, plan, inputs, (out,), history)
    else:
        node.saved = node.versions = ()
"""


def can_be(op: Op) -> bool:
    """May the op's calls be plain?"""
    return (
        op.promote is None
        and op.variadic is None
        and 1 <= len(op.inputs) <= 4
        and not op.many_outputs
        and len(op.outputs) == 1
        and not op.multi_view
        and not op.random
        and op.node != "NotImplemented"
    )


def written(op: Op) -> Any:
    """plain(inputs, attrs) of an op: its result, or None where the call is not plain."""
    names = [f"x{k}" for k in range(len(op.inputs))]
    arrays = [f"{x}_array" for x in names]
    lines = ["def plain(inputs, attrs):\n", f"    {', '.join(names)}, = inputs\n"]
    for position, x in enumerate(names):
        lines.append(INPUT.format(x=x) + (OTHER if position else FIRST).format(x=x))
    if op.kind == "product":
        large = f"{arrays[-1]}.ndim > 1 and {arrays[-2]}.size * {arrays[-1]}.shape[-1] >= MANY"
    else:
        large = " or ".join(f"{a}.size >= LARGE" for a in arrays)
    operands = ", ".join([*arrays, "**attrs"] if op.attributes else arrays)
    before, after = "    token = quiet()\n", "    finally:\n        restore(token)\n"
    if op.moves_data:  # it raises no floating-point errors
        before = after = ""
    special = ' or "dtype" in attrs' if "dtype" in op.attributes else ""
    lines.append(EVALUATE.format(large=large, special=special, operands=operands, before=before,
                                 after=after))  # fmt: skip
    if op.is_view:
        lines.append(ATTACH)
    if op.rules:
        types = ", ".join(f"new_type(TensorType, ({x}.dtype, {x}_array.shape))" for x in names)
        needs = [f"{x}_needs" for x in names]
        wanted = "".join(f"{n}, " for n in needs)
        lines.append(RECORD.format(needs=" or ".join(needs), wanted=wanted, types=types))
    else:
        lines.append("    out._mark = mark\n")
    lines.append("    return out\n")
    return function_of("".join(lines), f"<wengert plain {op.name}>", _space(op))


def _space(op: Op) -> dict[str, Any]:
    return {
        "ANOMALY": ANOMALY, "FLOAT": FLOAT, "FROM_NUMPY": FROM_NUMPY, "LARGE": LARGE,
        "MANY": MANY, "PLAIN": PLAIN, "Storage": Storage, "Tensor": Tensor,
        "TensorType": TensorType, "View": View, "__name__": __name__,
        "accumulator_of": accumulator_of, "asarray": np.asarray, "evaluate": op.numpy,
        "float32": float32, "float64": float64, "history": history,
        "ndarray": np.ndarray, "new": object.__new__,
        "new_type": tuple.__new__, "next_sequence": next_sequence, "node_class": node_class,
        "op": op, "plan_of": plan_of, "plans": op.plans, "quiet": quiet, "restore": restore,
        "save_values": save_values, "state": state, "user_place": user_place,
    }  # fmt: skip
