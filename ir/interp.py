"""The reference interpreter: runs a graph by the ops' NumPy evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .graph import Graph, Node, Var
from .ops.looking import BELOW
from .types import DType, TensorType, bfloat16, from_bfloat16, to_bfloat16


def run(graph: Graph, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The values of all outputs, in order; `inputs` are arrays in storage form."""
    if len(inputs) != len(graph.inputs):
        raise TypeError(f"@{graph.name} takes {len(graph.inputs)} inputs, got {len(inputs)}")
    values: dict[Var, np.ndarray] = {}
    for item, array in zip(graph.inputs, inputs):
        array = np.asarray(array)
        check_input(graph, item, array)
        values[item.var] = array
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            for var, array in zip(node.outputs, evaluate(node, values)):
                values[var] = array
    return [values[output.var] for output in graph.outputs]


def check_input(graph: Graph, item: Any, array: np.ndarray) -> None:
    wanted = item.var.type
    if array.shape != wanted.shape or array.dtype != wanted.dtype.storage:
        raise TypeError(f"@{graph.name}: input {item.name or '?'} must be {wanted}, got "
                        f"{array.dtype}[{','.join(map(str, array.shape))}]")  # fmt: skip


def evaluate(node: Node, values: dict[Var, np.ndarray]) -> tuple[np.ndarray, ...]:
    """The outputs of one node, in storage form."""
    if callable(node.op.raises):
        for var, what in node.op.raises(node):
            refuse_negative(values[var], what)
    arrays = [None if v is None else values[v] for v in node.inputs]
    types = [None if v is None else v.type for v in node.inputs]
    return evaluate_op(node.op, arrays, types, dict(node.attrs), [v.type for v in node.outputs])


def refuse_negative(index: np.ndarray, what: Any) -> None:
    """NumPy counts negative indices from the end, where some ops refuse them."""
    if what[0] == BELOW and index.size and index.min() < 0:
        raise IndexError("index out of range in self")


def evaluate_op(
    op: Any, arrays: list[Any], types: list[Any], attrs: dict[str, Any], outputs: list[TensorType]
) -> tuple[np.ndarray, ...]:
    """Promotes operands, widens 16-bit floats, evaluates, and rounds to the output types."""
    if op.promote is not None:
        wanted = op.promote([t for t in types if t is not None])
        arrays = [None if t is None else widen(a, t.dtype).astype(wanted.compute, copy=False)
                  for a, t in zip(arrays, types)]  # fmt: skip
    elif not op.moves_data:
        arrays = [None if t is None else widen(a, t.dtype) for a, t in zip(arrays, types)]
    results = op.numpy(*arrays, **attrs) if op.kind != "view" else look(op, arrays, attrs)
    listed = results if isinstance(results, tuple) else (results,)
    return tuple(narrow(np.asarray(r), t.dtype, op) for r, t in zip(listed, outputs))


def look(op: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
    """A view. Values have no strides in IR: where eager must refuse, the interpreter copies.

    Elsewhere it keeps the strides: products of strided and of dense matrices round differently.
    """
    try:
        return op.numpy(*arrays, **attrs)
    except RuntimeError:
        dense = [None if a is None else np.ascontiguousarray(a).reshape(a.shape) for a in arrays]
        return op.numpy(*dense, **attrs)


def widen(array: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is bfloat16:
        return from_bfloat16(array)
    return array.astype(np.float32) if dtype.name == "float16" else array


def narrow(array: np.ndarray, dtype: DType, op: Any) -> np.ndarray:
    if dtype is bfloat16:
        return array if array.dtype == np.uint16 else to_bfloat16(array)
    return array.astype(dtype.storage, copy=False)
