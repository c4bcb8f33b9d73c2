"""Graphs that make the sample calls of an op of the catalogue, forward and backward.

Operands are views of the graph's inputs, another kind of view for each call, so that kernels read
all layouts. Inputs of other layouts than row-major are copied before kernels see them
(tests/runtime), so views are what a kernel meets.
"""

import sys
import zlib
from pathlib import Path

import numpy as np
from wengert.ir import interp, reverse
from wengert.ir.builder import Builder
from wengert.ir.op import TABLE, HostCall
from wengert.ir.types import BY_NAME, TensorType, from_numpy_dtype, to_bfloat16

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
from catalogue_cases import Case, cases_of, is_number, is_regular, ops  # noqa: F401

REFUSED = (RuntimeError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError)

# --- views: an array that is stored, and the function that gives `x` (or its like) of it ---------


def plain(x):
    return x, lambda value: value


def transposed(x):
    return x.swapaxes(-1, -2), lambda value: value.transpose(-1, -2)


def flipped(x):
    return x[..., ::-1], lambda value: value.flip(-1)


def every_second(x):
    return np.repeat(x, 2, -1), lambda value: value[..., 1::2]


def expanded(x):
    return x[:1], lambda value: value.expand(x.shape)


def overlapping(x):
    """Windows, each one element after the last."""
    rows, width = x.shape[-2:]
    return x.reshape(*x.shape[:-2], -1)[..., : rows + width - 1], (
        lambda value: value.unfold(-1, width, 1))  # fmt: skip


VIEWS = (plain, transposed, flipped, every_second, expanded, overlapping)


def seen(x, view):
    """The view, where the array has enough dimensions and elements for it."""
    dims = 2 if view in (transposed, overlapping) else 1
    return (view if x.ndim >= dims and x.size else plain)(x)


# --- graphs of an op -----------------------------------------------------------------------------


def as_dtype(x, name):
    """Float samples in the dtype that is tested; integers and bools as they are."""
    x, dtype = np.asarray(x), BY_NAME[name]
    if x.dtype.kind != "f":
        return x, from_numpy_dtype(x.dtype)
    if name == "bfloat16":
        return to_bfloat16(x.astype(np.float32)), dtype
    return np.asarray(x + 0.5j * np.roll(x, 1) if dtype.is_complex else x).astype(
        dtype.storage), dtype  # fmt: skip


def graph_of(op, name, cases=None, call=None):
    """A graph that makes all sample calls of an op (or of `call` instead), and its arguments."""
    builder, arrays, turn = Builder(op.name), [], zlib.crc32(op.name.encode())
    with builder.building():
        for number, case in enumerate(cases_of(op) if cases is None else cases):
            operands = []
            for x in case.inputs:
                if x is None or is_number(x):
                    operands.append(x)
                    continue
                array, dtype = as_dtype(x, name)
                moved = np.asarray(x).dtype.kind == "f"
                stored, look = seen(array, VIEWS[(turn + number) % len(VIEWS)] if moved else plain)
                arrays.append(np.array(stored, order="C"))
                operands.append(look(builder.input(TensorType(dtype, arrays[-1].shape))))
            results = (call or op)(*operands, **case.attrs)
            for value in results if isinstance(results, tuple) else (results,):
                builder.output(value)
    return builder.graph(), arrays


def evaluated(op, dtype, case, call=None):
    """An op's results (or those of `call` instead), by its evaluation in NumPy."""
    graph, arrays = graph_of(op, dtype, [case], call=call)
    with np.errstate(all="ignore"):
        results = interp.run(graph, [a.copy() for a in arrays])
    if any(r.shape != o.var.shape for r, o in zip(results, graph.outputs)):
        raise ValueError(f"{op.name}: these operands do not fit each other")
    return results


def eager_takes(op, dtype, case):
    """Does the op's evaluation in NumPy take the call?"""
    try:
        evaluated(op, dtype, case)
        return True
    except REFUSED:
        return False


def gradient_of(graph, arrays):
    """The graph of gradients, with numbers for those of the results."""
    wanted = [k for k, item in enumerate(graph.inputs) if item.var.dtype.is_differentiable]
    results = [k for k, item in enumerate(graph.outputs) if item.var.dtype.is_differentiable]
    rng = np.random.default_rng(1)
    seeds = [as_dtype(rng.uniform(0.5, 1.5, graph.outputs[k].var.shape),
                      graph.outputs[k].var.dtype.name)[0] for k in results]  # fmt: skip
    return reverse.grad(graph, wanted, results), arrays + seeds


def native_ops():
    return [n for n in ops() if not isinstance(TABLE[n].lower, HostCall)]
