"""How ops run on a batch: rules derived from an op's kind and attributes.

In this order: the entry's own `batch`; pointwise ops align the examples' dimensions; reductions,
views and other ops on one tensor that name dimensions have these shifted by one; composites are
run by their decomposition; what is left is run example by example and stacked.

Entries may name a strategy: "shift" (dimension attributes move by one, all operands get the batch
dimension), "lead" (the op works on the last dimensions and lets leading ones pass), "fold" (its
first dimension is a batch already), "rest" (all but the first operand may have any shape),
"matmul", "decompose" or "loop".
"""

from __future__ import annotations

from typing import Any

from ..ir.op import TABLE, Decompose, Op
from .tensor import Tensor

# Attributes that hold dimensions (an int or a tuple of them) and those that hold a shape.
_DIMS = {"dim", "dims", "dim0", "dim1", "dim2", "dimension"}
_SIZES = {"input_sizes", "size"}


def batched_call(
    level: Any, op: Op, inputs: Any, values: list[Any], flags: list[bool], attrs: dict[str, Any]
) -> Any:
    """Runs `op` on values of which those flagged have the batch in front."""
    if op.data_shape:
        raise RuntimeError(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted "
            f"to vmap over aten::{op.name}, whose result differs in shape from example to example."
        )
    strategy = strategy_of(op)
    if strategy == "pointwise":
        return pointwise(op, inputs, values, flags, attrs)
    if strategy == "shift" and shiftable(op, inputs, attrs):
        return shift(op, inputs, values, flags, attrs, level.size)
    if strategy == "matmul":
        return values[0].matmul(values[1])
    if strategy == "lead":
        return op(*[expanded(v, f, level.size) for v, f in zip(values, flags)], **attrs)
    if strategy == "fold" and flags[0] and not any(flags[1:]):
        return fold(op, values, attrs)
    if strategy == "rest" and not flags[0]:
        return op(*values, **attrs)
    if strategy != "loop" and isinstance(op.lower, Decompose):
        return decompose(level, op, inputs, attrs)
    return loop(op, values, flags, attrs, level.size)


def strategy_of(op: Op) -> Any:
    """The entry's own strategy, or the one of its kind."""
    if op.batch is not None:
        return op.batch
    if op.kind == "pointwise":
        return "pointwise"
    tensors = len(op.inputs) == 1 and op.variadic is None
    if tensors and (op.kind in ("reduction", "view") or _DIMS & set(op.attributes)):
        return "shift"
    return "other"


def expanded(value: Any, flag: bool, size: int) -> Any:
    """An operand with the batch dimension: what has none is repeated without copying."""
    if flag or not isinstance(value, Tensor):
        return value
    return value.expand((size, *value.shape))


# --- pointwise -----------------------------------------------------------------------------------


def pointwise(op: Op, inputs: Any, values: list[Any], flags: list[bool], attrs: Any) -> Any:
    """Examples of different rank are aligned from the right, behind the batch dimension."""
    rank = max(v.ndim for v in inputs if isinstance(v, Tensor))
    dtypes = {v.dtype for v in inputs if isinstance(v, Tensor)}
    wanted = None
    if op.promote is not None and len(dtypes) > 1:
        wanted = op.promote(inputs)  # by the examples' ranks: a batch of 0-d tensors counts as 0-d
    aligned = []
    for value, flag in zip(values, flags):
        if isinstance(value, Tensor):
            if wanted is not None and value.dtype is not wanted:
                value = TABLE["cast"](value, dtype=wanted)
            if flag:
                value = with_rank(value, rank)
        aligned.append(value)
    return op(*aligned, **attrs)


def with_rank(value: Any, rank: int) -> Any:
    """A batch whose examples get leading dimensions of size 1 until they have `rank`."""
    missing = rank + 1 - value.ndim
    if missing <= 0:
        return value
    return value.reshape((value.shape[0], *(1,) * missing, *value.shape[1:]))


# --- dimensions shifted by one -------------------------------------------------------------------


def shiftable(op: Op, inputs: Any, attrs: dict[str, Any]) -> bool:
    """Are all dimensions named, on examples that have some?"""
    given = [attrs[name] for name in _DIMS | _SIZES if name in attrs]
    if not given or None in given:
        return False
    if op.kind in ("reduction", "view") or op.batch == "shift":
        return True
    return () not in given and all(v.ndim for v in inputs if isinstance(v, Tensor))


def shift(
    op: Op, inputs: Any, values: list[Any], flags: list[bool], attrs: dict[str, Any], size: int
) -> Any:
    if op.kind == "reduction" and not inputs[0].ndim:  # of a number: over a dimension of size 1
        column = values[0].reshape((size, 1))
        return op(column, **{**attrs, "dim": (1,), "keepdim": False, **_no_whole(attrs)})
    changed = {**attrs, **_no_whole(attrs)}
    for name, value in attrs.items():
        if name in _DIMS:
            changed[name] = tuple(map(_next, value)) if isinstance(value, tuple) else _next(value)
        elif name in _SIZES and isinstance(value, tuple):
            changed[name] = (size, *value)
    if op.name == "permute":  # names every dimension, so the batch's as well
        changed["dims"] = (0, *changed["dims"])
    operands = [expanded(v, f, size) for v, f in zip(values, flags)]
    if op.name == "view":  # the batch may lie in memory as its examples do not
        return operands[0].reshape(changed["size"])
    if op.name == "expand":
        operands = [with_rank(operands[0], len(attrs["size"]))]
    return op(*operands, **changed)


def _next(dim: int) -> int:
    """A dimension of an example in the batch; those counted from the end stay."""
    return dim + 1 if dim >= 0 else dim


def _no_whole(attrs: dict[str, Any]) -> dict[str, Any]:
    """A reduction of whole examples is one of some dimensions of the batch."""
    return {"whole": False} if "whole" in attrs else {}


def fold(op: Op, values: list[Any], attrs: dict[str, Any]) -> Any:
    """Examples that are batches themselves are joined to one, and parted again."""
    first = values[0]
    joined = first.reshape((first.shape[0] * first.shape[1], *first.shape[2:]))
    results = op(joined, *values[1:], **attrs)
    lead = tuple(first.shape[:2])
    if isinstance(results, Tensor):
        return results.reshape((*lead, *results.shape[1:]))
    return tuple(r.reshape((*lead, *r.shape[1:])) for r in results)


# --- composites and the rest ---------------------------------------------------------------------


def decompose(level: Any, op: Op, inputs: Any, attrs: dict[str, Any]) -> Any:
    """The op said in other ops, each of which runs on the batch."""
    from ..ir.bind import state

    plain = []
    for position, value in enumerate(inputs):
        if isinstance(value, Tensor):
            value = level.own(value)._twin()  # without history of this level
            if op.rule_for(position) is None:  # no gradient flows there, whatever it is made of
                value = value._detached_below()
        plain.append(value)
    state.top = level
    try:
        results = op.lower.expand(*plain, **attrs)
    finally:
        state.top = level.below
    if isinstance(results, Tensor):
        return expanded(*level.take(results), level.size)
    return tuple(expanded(*level.take(r), level.size) for r in results)


def loop(op: Op, values: list[Any], flags: list[bool], attrs: Any, size: int) -> Any:
    """Example by example, stacked."""
    rows = []
    for k in range(size):
        picked = [v.select(0, k) if f else v for v, f in zip(values, flags)]
        rows.append(op(*picked, **attrs))
    if isinstance(rows[0], Tensor):
        return TABLE["stack"](*rows, dim=0)
    return tuple(TABLE["stack"](*column, dim=0) for column in zip(*rows))
