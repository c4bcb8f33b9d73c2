"""Short forms of benchmarks/endurance.py, and graphs that are deep or large."""

import subprocess
import sys
from pathlib import Path

import pytest
import wengert as torch
from wengert.ir.parser import parse

ENDURANCE = Path(__file__).resolve().parents[2] / "benchmarks" / "endurance.py"


def endured(part, times):
    done = subprocess.run([sys.executable, str(ENDURANCE), part, "--times", str(times)],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("part", "times"), [("compile", 80), ("eager", 3000)])
def test_memory_does_not_grow(part, times):
    endured(part, times)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "times"), [("compile", 2000), ("eager", 100_000)])
def test_memory_does_not_grow_for_long(part, times):
    endured(part, times)


@pytest.mark.parametrize("shape", ["deep", "wide"])
def test_a_hundred_thousand_nodes(shape):
    endured(shape, 100_000)


@pytest.mark.parametrize("nodes", [2000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_functions_compile(nodes):
    endured("recorded", nodes)


def test_wide_and_deep_at_once():
    """Values that are used many times: backward visits each node once."""
    x = torch.ones((), requires_grad=True)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad == 1


def test_large_graphs_as_text():
    """Printed, parsed and verified without recursion; time grows with the number of lines."""
    lines = [f"  %{k + 1}: f32[2] = neg %{k}" for k in range(20_000)]
    text = "\n".join(['graph @f(%0: f32[2] "x") {', *lines, "  return %20000", "}", ""])
    graph = parse(text)
    assert len(graph.nodes) == 20_000
    assert parse(graph.print()).print() == graph.print()


def test_deep_python_structures():
    """Nested containers and modules deeper than Python's own limit is for calls."""
    deep = torch.nn.Identity()
    for _ in range(300):
        deep = torch.nn.Sequential(deep, torch.nn.Identity())
    assert deep(torch.ones(2)).sum() == 2
    assert len(list(deep.modules())) == 601
    nested = torch.ones(1)
    for _ in range(300):
        nested = [nested]
    found = torch.compile(lambda x: x)(nested)
    for _ in range(300):
        (found,) = found
    assert found.item() == 1
