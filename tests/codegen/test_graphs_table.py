"""Every op of the catalogue, compiled: its sample calls in one graph, against NumPy.

Operands are views of the graph's inputs, another kind of view for each call, so that kernels read
all layouts; gradients are compiled likewise. Inputs of other layouts than row-major are copied
before kernels see them (tests/runtime), so views are what a kernel meets.
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from graphs import check
from wengert.ir import reverse
from wengert.ir.builder import Builder
from wengert.ir.op import TABLE, HostCall
from wengert.ir.types import BY_NAME, TensorType, from_numpy_dtype, to_bfloat16

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
from catalogue_cases import Case, cases_of, is_number, is_regular, ops

# The shapes of their results depend on values, so no graph holds them.
DYNAMIC = {"bincount", "masked_select", "unique", "unique_consecutive", "unique_dim", "nonzero"}


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


def graph_of(op, name, cases=None):
    """A graph that makes all sample calls of an op, and its arguments."""
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
            results = op(*operands, **case.attrs)
            for value in results if isinstance(results, tuple) else (results,):
                builder.output(value)
    return builder.graph(), arrays


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


@pytest.mark.parametrize("name", native_ops())
def test_compiled_op_is_the_numpy_one(name):
    graph, arrays = graph_of(TABLE[name], "float32")
    if arrays:
        check(graph, arrays, runs=1)


@pytest.mark.parametrize("name", [n for n in native_ops() if TABLE[n].rules])
def test_compiled_gradient_is_the_interpreted_one(name):
    graph, arrays = graph_of(TABLE[name], "float32")
    try:
        graph, arrays = gradient_of(graph, arrays)
    except (RuntimeError, NotImplementedError) as error:
        assert "not implemented" in str(error)
        return
    check(graph, arrays, runs=1)


def edges_of(dtype):
    """Ends of an integer dtype, and what lies around zero and around its number of bits."""
    if dtype == "bool":
        return np.array([False, True])
    ends = np.iinfo(dtype)
    near = [ends.min, ends.min + 1, -7, -2, -1, 0, 1, 2, 3, 8, 31, 63, ends.max - 1, ends.max]
    return np.array([n for n in near if ends.min <= n <= ends.max], dtype)


def cases_at_edges(op):
    """Calls with all pairs of edges, in the dtypes that the op takes."""
    for dtype in ("int64", "int32", "int8", "uint8", "bool"):
        grid = np.meshgrid(*[edges_of(dtype)] * len(op.inputs))
        case = Case(op, [x.ravel() for x in grid], {})
        try:
            with np.errstate(all="ignore"):
                op.numpy(*case.inputs)
        except (RuntimeError, TypeError, ValueError, ZeroDivisionError):
            continue
        yield case


@pytest.mark.parametrize("name", [n for n in ops(scalar=True) if is_regular(TABLE[n])
                                  and 0 < len(TABLE[n].inputs) < 3])  # fmt: skip
def test_integers_at_their_edges(name):
    graph, arrays = graph_of(TABLE[name], "float32", cases_at_edges(TABLE[name]))
    if arrays:
        check(graph, arrays, runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", [n for n in ops() if n not in DYNAMIC])
def test_compiled_op_in_other_dtypes(name, dtype):
    try:
        graph, arrays = graph_of(TABLE[name], dtype)
    except (RuntimeError, TypeError, NotImplementedError):
        return  # torch has no such op either
    if arrays:
        check(graph, arrays, runs=1)
