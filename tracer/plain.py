"""The short way of ops that do not promote: products, reductions, views, losses.

Note [Plain tensors]
    Where a call gets small tensors of one dtype, float32 or float64 (beside integers), with nothing
    on top of eager execution, its results need no widening and no inference. For each op that has a
    fixed number of inputs, a function for such calls is written from the texts below when the op
    was called often; it answers None for all other calls, and for those that fail, which then go
    the general way. A program whose functions are compiled calls most ops once, to record them.
"""

from __future__ import annotations

from textwrap import indent
from typing import Any

import numpy as np

from ..ir.bind import state
from ..ir.op import Op
from ..ir.places import user_place
from ..ir.texts import function_of
from ..ir.types import FLOAT, FROM_NUMPY, TensorType, float32, float64
from .history import attach_views, history
from .large import MANY, limit_of
from .quiet import quiet, restore
from .saved import plan_of, save_values
from .storage import Storage, View
from .tape import ANOMALY, next_sequence, node_class
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

INPUT_TYPE = """\
    kind = {x}.dtype
    if kind is not dtype:
        if dtype is None and (kind is float32 or kind is float64):
            dtype = kind
        elif kind.category >= FLOAT:
            return None
    if mark != "inference":
        mark = {x}._mark or mark
"""

EVALUATE = """\
    inference = state.inference
    if dtype is None or {large} or (mark == "inference" and not inference) or ANOMALY{special}:
        return None
{before}\
    try:
        {results} = evaluate({operands})
    except Exception:
        return None
{after}\
"""

ONE = """\
    if array.__class__ is not ndarray:
        array = asarray(array)
    out = new(Tensor)
    out._array = array
    out._storage = out._node = out._grad = out._view = out._leaf = out._mark = None
    out._nr = 0
    out.dtype = dtype = dtype if array.dtype is dtype.storage else FROM_NUMPY[array.dtype]
    out._requires_grad = False
"""

SEVERAL = """\
    outs = []
    for number, array in enumerate(arrays):
        if array.__class__ is not ndarray:
            array = asarray(array)
        kind = dtype if array.dtype is dtype.storage else FROM_NUMPY[array.dtype]
        out = wrapped(array, kind)
        outs.append(out)
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
        view.origin = "" if state.grad_enabled else "inference" if inference else "no_grad"
    else:
        view.base = base = x0_view.base
        view.chain = (*x0_view.chain, (op, attrs, 0))
        view.origin = (
            x0_view.origin if state.grad_enabled else "inference" if inference else "no_grad")
    out._view = view
    if base._requires_grad and dtype.category >= FLOAT:
        out._requires_grad = True
"""

MARK = """\
    for out in {outs}:
        out._mark = {mark}
    return {result}
"""

UNRECORDED = """\
    if not state.grad_enabled and ({needs}):
{mark_cut}\
{mark}\
"""

RECORD = """\
    if not ({needs}):
{mark}\
    if not state.grad_enabled:
{mark_cut}\
    wanted = ({wanted})
    plan = plans.get(wanted) or plan_of(op, wanted)
    if not plan.any:
        return {result}
    node = new(op.node_type or node_class(op, attrs, inputs))
    node.attrs = attrs
    node.plan = plan
    node.edges = tuple([history(x) if needed else None for x, needed in zip(inputs, plan.needs)])
    node.uniform = None
    node.types = [{types}], [{result_types}]
    node.sequence = next_sequence()
    node.extra = None
    node.place = user_place()
{attach}\
    if plan.keys:
        save_values(node, plan, inputs, {outs}, history)
    else:
        node.saved = node.versions = ()
    return {result}
"""

ATTACH_ONE = """\
    if dtype.category >= FLOAT:
        out._requires_grad = True
        out._node = node
"""

ATTACH_SEVERAL = """\
    for number, out in enumerate(outs):
        if out.dtype.category >= FLOAT:
            out._requires_grad = True
            out._node = node
            out._nr = number
"""


def can_be(op: Op) -> bool:
    """May the op's calls be plain?"""
    return (
        op.promote is None
        and op.variadic is None
        and 1 <= len(op.inputs) <= 4
        and not op.random
        and op.node != "NotImplemented"
    )


def written(op: Op) -> Any:
    """plain(inputs, attrs) of an op: its results, or None where the call is not plain."""
    names = [f"x{k}" for k in range(len(op.inputs))]
    several = op.many_outputs or len(op.outputs) > 1
    lines = ["def plain(inputs, attrs):\n", f"    {', '.join(names)}, = inputs\n",
             "    dtype = mark = None\n"]  # fmt: skip
    lines += [(INPUT + INPUT_TYPE).format(x=x) for x in names]
    lines += [_evaluation(op, names, several), SEVERAL if several else ONE]
    if op.is_view:
        lines.append("    attach_views(op, x0, outs, attrs)\n" if several else ATTACH)
    result, outs = ("tuple(outs)", "outs") if several else ("out", "(out,)")
    # in inference mode all results are marked but views, which are what their source is
    marks = [f"{'mark' if op.is_view else repr('inference')} if inference else {other}"
             for other in ("mark", "state.cut")]  # fmt: skip
    marks = [MARK.format(outs=outs, mark=mark, result=result) for mark in marks]
    needs = " or ".join(f"{x}_needs" for x in names)
    if op.rules:
        lines.append(_record(names, needs, several, result, outs, *marks))
    else:
        lines.append(
            UNRECORDED.format(needs=needs, mark=marks[0], mark_cut=indent(marks[1], "    "))
        )
    return function_of("".join(lines), f"<wengert plain {op.name}>", _space(op))


def _evaluation(op: Op, names: list[str], several: bool) -> str:
    arrays = [f"{x}_array" for x in names]
    if op.kind == "product":
        large = f"{arrays[-1]}.ndim > 1 and {arrays[-2]}.size * {arrays[-1]}.shape[-1] >= MANY"
    else:
        large = " or ".join(f"{a}.size >= LARGE" for a in arrays)
    before, after = "    token = quiet()\n", "    finally:\n        restore(token)\n"
    if op.moves_data:  # it raises no floating-point errors
        before = after = ""
    return EVALUATE.format(
        large=large,
        special=' or "dtype" in attrs' if "dtype" in op.attributes else "",
        operands=", ".join([*arrays, "**attrs"] if op.attributes else arrays),
        before=before,
        after=after,
        results="arrays" if several else "array",
    )


def _record(
    names: list[str], needs: str, several: bool, result: str, outs: str, mark: str, mark_cut: str
) -> str:
    kind = "new_type(TensorType, ({}.dtype, {}.shape))"
    one, all_ = kind.format("out", "array"), kind.format("out", "out._array") + " for out in outs"
    return RECORD.format(
        needs=needs,
        wanted="".join(f"{x}_needs, " for x in names),
        types=", ".join(kind.format(x, f"{x}_array") for x in names),
        result_types=all_ if several else one,
        result=result,
        outs=outs,
        mark=indent(mark, "    "),
        mark_cut=indent(mark_cut, "    "),
        attach=ATTACH_SEVERAL if several else ATTACH_ONE,
    )


def _space(op: Op) -> dict[str, Any]:
    return {
        "ANOMALY": ANOMALY, "FLOAT": FLOAT, "FROM_NUMPY": FROM_NUMPY, "LARGE": limit_of(op),
        "MANY": MANY, "PLAIN": PLAIN, "Storage": Storage, "Tensor": Tensor,
        "TensorType": TensorType, "View": View, "__name__": __name__,
        "asarray": np.asarray, "attach_views": attach_views,
        "evaluate": op.numpy, "float32": float32, "float64": float64, "history": history,
        "ndarray": np.ndarray, "new": object.__new__,
        "new_type": tuple.__new__, "next_sequence": next_sequence, "node_class": node_class,
        "op": op, "plan_of": plan_of, "plans": op.plans, "quiet": quiet, "restore": restore,
        "save_values": save_values, "state": state, "user_place": user_place,
        "wrapped": Tensor._wrap,
    }  # fmt: skip
