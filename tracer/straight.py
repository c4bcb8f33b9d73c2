"""Derivatives as straight NumPy code, for backward on small tensors.

Note [Straight derivatives]
    A derivative rule is written in ops, and run eagerly each of its ops makes a tensor, with all
    that belongs to one. Where nobody differentiates backward itself, none of that is looked at. So
    when a derivative comes for the third time (the same op, settings and types), its rules are
    built as a graph once, and the graph is written as a Python function on arrays: the same NumPy
    calls in the same order. The sum of a matrix, say, has

        def pull(a0):
            t0 = f0(a0, **k0)    # view
            t1 = f1(t0, **k1)    # expand
            return t1,

    Large calls among them are offered to native kernels, as when the rules run on tensors.

    What cannot be built like that (numbers among the saved values, 16-bit floats, rules that look
    at more than types) runs as it always did.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..ir.builder import Builder
from ..ir.derivative import Derivative, add_outputs, results_in, settings_of
from ..ir.graph import Node, Var
from ..ir.interp import evaluate_op, look
from ..ir.texts import function_of
from ..ir.types import FROM_NUMPY
from .eager import offered
from .large import is_large_type
from .quiet import quietly
from .tensor import PLAIN, Tensor

wrapped = Tensor._wrap
OFTEN = 3  # a derivative that comes so often is written out
WORTH = 3  # ops on tensors of one type that are dearer than looking up the code for them
MOST = 512  # derivatives that are remembered for one plan; shapes may be many


class Straight(NamedTuple):
    """A derivative as a function of arrays; for `outline` see `add_outputs`."""

    function: Any
    operands: tuple[int, ...]  # which it takes: those that are neither absent nor numbers
    outline: list[int | None]
    length: int  # how many ops it has


def pull(node: Any, grads: list[Any]) -> Any:
    """What the node's puller gives, by straight code; NotImplemented where there is none."""
    plan = node.plan
    known = plan.straight
    if known is None:
        return NotImplemented
    types, attrs = node.types, node.attrs
    settings = settings_of(attrs) if attrs else ()
    here = (node.uniform if types is None else (*types[0], None, *types[1]), settings)
    found = known.get(here)
    if found.__class__ is not Straight:
        if found is None or found < OFTEN:
            if len(known) >= MOST:
                known.clear()
            known[here] = 1 if found is None else found + 1
            return NotImplemented
        if found is NEVER:
            return NotImplemented
        found = known[here] = code(derivative_of(node, settings)) or NEVER
        if found is NEVER:
            return NotImplemented
        if types is None and found.length < WORTH:
            plan.straight = None
    return run(found, node, grads)


NEVER = 1 << 30  # a count that says: this one cannot be written


def run(straight: Straight, node: Any, grads: list[Any]) -> Any:
    """The gradients, if the operands are what types say."""
    operands = node.operands(grads)
    arrays = []
    for number in straight.operands:
        value = operands[number]
        if value.__class__ not in PLAIN:
            return NotImplemented
        arrays.append(value._array)
    made = [wrapped(a, FROM_NUMPY[a.dtype]) for a in quietly(straight.function, *arrays)]
    return results_in(straight.outline, operands, made)


# --- writing -------------------------------------------------------------------------------------


def derivative_of(node: Any, settings: Any) -> Derivative:
    """What a node's derivative is, as data."""
    inputs, outputs = node.call_types()
    return Derivative(node.op, settings, node.plan.needs, node.plan.keys, inputs, outputs)


@lru_cache(maxsize=2048)
def code(what: Derivative, numbers: Any = (), absent: Any = ()) -> Straight | None:
    """A derivative's code; None if it cannot be written.

    `numbers` has (class, value) for saved values that are Python numbers or None, and None for
    tensors; `absent` says which outputs got no gradient.
    """
    inputs, outputs = what.inputs, what.outputs
    types: list[Any] = [*outputs, *(inputs[k] if k >= 0 else outputs[~k] for k in what.slots)]
    if any(t is not None and t.dtype.compute is not t.dtype.storage for t in types):
        return None
    values = [None] * len(types)
    for position, missing in enumerate(absent):
        if missing:
            types[position] = None
    for position, number in enumerate(numbers, len(outputs)):
        if number is not None:
            types[position], values[position] = None, number[1]
    builder = _OfTypes(what.op.name)
    try:
        with builder.building():
            symbols = [v if t is None else builder.input(t) for t, v in zip(types, values)]
            outline = add_outputs(builder, symbols, what.build(symbols))
    except Exception:  # a rule that looks at more than types: it runs on tensors, as ever
        return None
    if any(v.dtype.compute is not v.dtype.storage for n in builder.nodes for v in n.outputs):
        return None
    operands = tuple([k for k, t in enumerate(types) if t is not None])
    length = sum(bool(n.inputs) for n in builder.nodes)
    return Straight(_function(builder), operands, outline, length)


class _OfTypes(Builder):
    """Builds what depends on types alone, of the ops that eager execution would run."""

    runs_as_built = True

    def value_asked(self) -> None:
        raise TypeError("the rule chooses by values")


def _function(builder: Builder) -> Any:
    names: dict[Var, str] = {item.var: f"a{k}" for k, item in enumerate(builder.inputs)}
    space: dict[str, Any] = {"asarray": np.asarray, "look": look, "evaluate_op": evaluate_op,
                             "__name__": __name__}  # fmt: skip
    lines = [f"def pull({', '.join(names.values())}):"]
    for number, node in enumerate(builder.nodes):
        lines += _lines(node, number, names, space)
    results = "".join(f"{names[o.var]}, " for o in builder.outputs)
    lines.append(f"    return ({results})")
    return function_of("\n".join(lines), "<wengert pull>", space)


def _lines(node: Node, number: int, names: dict[Var, str], space: dict[str, Any]) -> list[str]:
    """A node as a call of its NumPy evaluation."""
    op, attrs = node.op, dict(node.attrs)
    targets = [f"t{number}_{k}" for k in range(len(node.outputs))]
    names.update(zip(node.outputs, targets))
    if op.name == "constant":
        space[targets[0]] = np.asarray(op.numpy(**attrs))
        return []
    values = ["None" if v is None else names[v] for v in node.inputs]
    types = [None if v is None else v.type for v in node.inputs]
    listed = ", ".join(values)
    space[f"f{number}"] = op.numpy
    space[f"k{number}"] = attrs
    if op.promote is not None and len({t.dtype for t in types if t is not None}) > 1:
        space[f"f{number}"], space[f"i{number}"] = op, types
        space[f"o{number}"] = [v.type for v in node.outputs]
        text = f"evaluate_op(f{number}, [{listed}], i{number}, k{number}, o{number})"
        return [f"    {', '.join(targets)}, = {text}"]
    text = f"f{number}({', '.join([*values, f'**k{number}'] if attrs else values)})"
    if not op.moves_data and is_large_type(op, types):  # see Note [Large calls]
        space[f"f{number}"], space["offered"] = op, offered
        text = f"offered(f{number}, [{listed}], k{number})"
    many = op.many_outputs or len(op.outputs) > 1
    stored = f"{', '.join(targets)}{',' if many else ''}"
    lines = [f"    {stored} = {text}"]
    if op.kind == "view":
        space[f"v{number}"] = op
        lines = ["    try:", f"    {lines[0]}", "    except RuntimeError:",
                 f"        {stored} = look(v{number}, [{listed}], k{number})"]  # fmt: skip
    # NumPy gives numbers where a result has no dimensions
    lines += [f"    {t} = asarray({t})" for t, v in zip(targets, node.outputs) if not v.shape]
    return lines
