"""Every op of the catalogue, compiled: its sample calls in one graph, against NumPy.

Gradients are compiled likewise. test_graphs_sweep.py has calls beside the samples.
"""

import numpy as np
import pytest
from graphs import check
from table_graphs import (
    REFUSED,
    Case,
    cases_of,
    eager_takes,
    evaluated,
    gradient_of,
    graph_of,
    is_regular,
    native_ops,
    ops,
)
from wengert.ir.op import TABLE

# The shapes of their results depend on values, so no graph holds them.
DYNAMIC = {"bincount", "masked_select", "unique", "unique_consecutive", "unique_dim", "nonzero"}
# How torch's words and NumPy's begin or end where an op has no complex numbers.
NO_COMPLEX = "not implemented for|not support|[Cc]omplex|Invalid integer data type 'c'"


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
    """Calls that eager refuses are left out: torch has no such op either."""
    op = TABLE[name]
    cases = cases_of(op)
    taken = [case for case in cases if eager_takes(op, dtype, case)]
    for case in (c for c in cases if c not in taken):
        assert dtype != "float64", f"{case} is a sample of doubles"
        with pytest.raises(REFUSED, match=NO_COMPLEX):
            evaluated(op, dtype, case)
    graph, arrays = graph_of(op, dtype, taken)
    if arrays:
        check(graph, arrays, runs=1)
