"""Sizes are run-time words: a new batch size finds the kernels of the last one."""

import re

import pytest
import wengert as torch
from wengert.backend import compile_graph
from wengert.ir.builder import Builder
from wengert.ir.op import TABLE
from wengert.ir.passes import optimise
from wengert.ir.types import TensorType


@pytest.mark.parametrize("function", [
    lambda x: x.softmax(1).mean(0),
    lambda x: (x - x.mean()).tanh() / x.shape[0],
    lambda x: (x.sum(0), x.cumsum(0).amax(1), x.relu().sum()),
])  # fmt: skip
def test_kernels_do_not_depend_on_the_size_of_a_batch(function):
    found = []
    for rows in (601, 703):  # large enough for all to be done in one way
        compiled = torch.compile(function, dynamic=False)
        for _ in range(2):
            compiled(torch.ones(rows, 37))
        found.append(set(re.findall(r"\bk[0-9a-f]{20}\b", compiled.dump("kernels"))))
    assert found[0] == found[1] and found[0]


def modules_of(*indices):
    """Whether the modules of a program that picks elements are optimised lightly."""
    builder = Builder()
    with builder.building():
        source = builder.input(TensorType(torch.float32, (50,)))
        for count in indices:
            places = builder.input(TensorType(torch.int64, (count,)))
            builder.output(TABLE["index"](source, places, spec=(True,)))
    program = compile_graph(optimise(builder.graph())).program
    return [module.light for module in program.modules]


def test_llvm_looks_briefly_at_what_runs_briefly():
    assert modules_of(100) == [True] and modules_of(1000) == [False]
    assert modules_of(100, 1000) == modules_of(1000, 100) == [False]  # one module for both
