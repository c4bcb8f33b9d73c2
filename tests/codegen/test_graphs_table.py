"""Every op of the catalogue, compiled: all its sample calls in one graph, against NumPy."""

import sys
from pathlib import Path

import numpy as np
import pytest
from graphs import check
from wengert.ir.builder import Builder
from wengert.ir.op import TABLE, HostCall
from wengert.ir.types import TensorType, from_numpy_dtype

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ops"))
from catalogue_cases import cases_of, is_number, ops


def as_dtype(x, dtype):
    """Float samples in the dtype that is tested; integers and bools as they are."""
    x = np.asarray(x)
    return x.astype(dtype) if x.dtype.kind == "f" else x


# The shapes of their results depend on values, so no graph holds them.
DYNAMIC = {"bincount", "masked_select", "unique", "unique_consecutive", "unique_dim", "nonzero"}


def graph_of(op, dtype):
    """A graph that makes all sample calls of an op, and its arguments."""
    builder, arrays = Builder(op.name), []
    with builder.building():
        for case in cases_of(op):
            operands = []
            for x in case.inputs:
                if x is None or is_number(x):
                    operands.append(x)
                    continue
                arrays.append(as_dtype(x, dtype))
                type_ = TensorType(from_numpy_dtype(arrays[-1].dtype), arrays[-1].shape)
                operands.append(builder.input(type_))
            results = op(*operands, **case.attrs)
            for value in results if isinstance(results, tuple) else (results,):
                builder.output(value)
    return builder.graph(), arrays


@pytest.mark.parametrize("name", [n for n in ops() if not isinstance(TABLE[n].lower, HostCall)])
def test_compiled_op_is_the_numpy_one(name):
    graph, arrays = graph_of(TABLE[name], np.float32)
    if arrays:
        check(graph, arrays, runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ops() if n not in DYNAMIC])
def test_compiled_op_in_double(name):
    graph, arrays = graph_of(TABLE[name], np.float64)
    if arrays:
        check(graph, arrays, runs=1)
