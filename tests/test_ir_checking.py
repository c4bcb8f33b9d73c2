"""What `WENGERT_CHECK=1` says of passes: faults are found, rounding is none."""

import sys

import pytest
from wengert import ir
from wengert.ir import interp, passes
from wengert.ir.passes.checking import Checker
from wengert.ir.verify import VerifyError

# (x + c) - c loses all digits of x but in double precision; x + (c - c) keeps them
LOSING = """
graph @f(%0: DTYPE[64]) {
  %1: DTYPE[] = constant {dtype=DTYPE, value=1e8}
  %2: DTYPE[64] = add %0, %1
  %3: DTYPE[64] = sub %2, %1
  return %3
}
"""
KEEPING = """
graph @f(%0: DTYPE[64]) {
  %1: DTYPE[] = constant {dtype=DTYPE, value=1e8}
  %2: DTYPE[] = sub %1, %1
  %3: DTYPE[64] = add %0, %2
  return %3
}
"""


def check(before, after):
    Checker(ir.parse(before)).check("a pass", ir.parse(after))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "c64"])
def test_rounding_is_no_fault_however_much_it_is_magnified(dtype):
    check(LOSING.replace("DTYPE", dtype), KEEPING.replace("DTYPE", dtype))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "i64"])
def test_another_value_is_a_fault(dtype):
    kept = KEEPING.replace("DTYPE", dtype).replace("1e8", "8")
    with pytest.raises(VerifyError, match="after pass 'a pass': output 0 of @f changed its value"):
        check(kept, kept.replace("add", "mul"))


def test_an_invalid_graph_is_a_fault_of_the_pass():
    kept = KEEPING.replace("DTYPE", "f32")
    with pytest.raises(VerifyError, match="after pass 'a pass': @f: add: expected"):
        check(kept, kept.replace("%3: f32", "%3: f64"))


def test_a_graph_is_checked_once_and_a_fault_is_told_each_time(monkeypatch):
    """See Note [Checked once] in ir/passes/checking.py."""
    graph, runs = ir.parse(KEEPING.replace("DTYPE", "f64").replace("64]", "67]")), []
    module = sys.modules[Checker.__module__]
    monkeypatch.setattr(module, "run", lambda *a: runs.append(a) or interp.run(*a))
    passes.optimise(graph)
    checked = len(runs)
    assert checked > 1
    passes.optimise(ir.parse(graph.print()))
    assert len(runs) == checked
    wrong = ir.parse(graph.print().replace("add", "mul"))
    monkeypatch.setattr(passes, "PASSES", (("spoil", lambda _: wrong),))
    for _ in range(2):
        with pytest.raises(VerifyError, match="after pass 'spoil'"):
            passes.optimise(graph)
