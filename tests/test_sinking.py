"""Expands and reshapes sink below pointwise ops: less is computed, and the same bits."""

import re

import numpy as np
import pytest
import wengert as torch
from wengert import ir
from wengert.ir.passes import dead_code, simplify, sinking
from wengert.ir.types import BY_SHORT, bfloat16, to_bfloat16
from wengert.ir.verify import verify

ODD = [np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, 3.0]


def sunk(text):
    return dead_code.run(verify(sinking.run(verify(ir.parse(text)))))


def ops(graph):
    return [(node.op.name, node.outputs[0].shape) for node in graph.nodes]


def test_expanded_operands_are_computed_at_the_shape_that_holds_them():
    graph = sunk("""
graph @f(%0: f32[4,1], %1: f32[]) {
  %2: f32[4,6] = expand %0 {size=(4, 6)}
  %3: f32[4,6] = expand %1 {size=(4, 6)}
  %4: f32[4,6] = full {dtype=f32, fill_value=2, size=(4, 6)}
  %5: f32[4,6] = mul %2, %3
  %6: f32[4,6] = div %5, %4
  %7: f32[4,6] = exp %6
  return %7
}
""")
    assert ops(graph) == [("expand", (4, 1)), ("mul", (4, 1)), ("full", (4, 1)), ("div", (4, 1)),
                          ("exp", (4, 1)), ("expand", (4, 6))]  # fmt: skip


def test_reshapes_of_one_shape_meet_below():
    graph = sunk("""
graph @f(%0: f32[6,4], %1: f32[6,4]) {
  %2: f32[2,3,4] = view %0 {size=(2, 3, 4)}
  %3: f32[2,3,4] = view %1 {size=(2, 3, 4)}
  %4: f32[2,3,4] = mul %2, %3
  %5: f32[2,3,4] = tanh %4
  return %5
}
""")
    assert ops(graph) == [("mul", (6, 4)), ("tanh", (6, 4)), ("view", (2, 3, 4))]


def test_permutes_meet_below_and_cancel():
    """As in gradients of a weight that is used twice: no sum is read across its rows."""
    graph = sunk("""
graph @f(%0: f32[6,4], %1: f32[6,4]) {
  %2: f32[4,6] = permute %0 {dims=(1, 0)}
  %3: f32[4,6] = permute %1 {dims=(1, 0)}
  %4: f32[4,6] = full {dtype=f32, fill_value=2, size=(4, 6)}
  %5: f32[4,6] = add %2, %3
  %6: f32[4,6] = mul %5, %4
  %7: f32[4,6] = sub %6, %2
  %8: f32[6,4] = permute %7 {dims=(1, 0)}
  return %8
}
""")
    assert ops(dead_code.run(simplify.run(graph))) == [
        ("add", (6, 4)), ("full", (6, 4)), ("mul", (6, 4)), ("sub", (6, 4))]  # fmt: skip


def test_permutes_stay_where_others_are_met():
    """As in a step of Adam: the square of a gradient is added to what lies as the weight does."""
    text = """
graph @f(%0: f32[6,4], %1: f32[4,6]) {
  %2: f32[4,6] = permute %0 {dims=(1, 0)}
  %3: f32[4,6] = mul %2, %2
  %4: f32[4,6] = exp %3
  %5: f32[4,6] = add %4, %1
  %6: f32[6,4] = permute %4 {dims=(1, 0)}
  return %5, %6
}
"""
    assert ops(sunk(text)) == ops(ir.parse(text))


def test_a_step_of_adam_updates_a_weight_in_one_kernel():
    layer = torch.nn.Linear(6, 4, bias=False)
    optimizer = torch.optim.Adam(layer.parameters())

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        layer(x).square().sum().backward()
        optimizer.step()

    for _ in range(3):
        step(torch.ones(3, 6))
    writers = re.findall(r"^\d+: map .* -> (.*), \d+ chunks", step.dump("kernels"), re.M)
    (update,) = [written.split() for written in writers if "weight" in written]
    assert len(update) == 3  # both averages with it


@pytest.mark.parametrize("operands", [
    "%2: f32[4,6] = expand %0 {size=(4, 6)}\n  %3: f32[4,6] = expand %1 {size=(4, 6)}",
    "%2: f32[4,6] = expand %0 {size=(4, 6)}\n  %3: f32[4,6] = view %4 {size=(4, 6)}",
    "%2: f32[4,6] = view %4 {size=(4, 6)}\n  %3: f32[4,6] = view %5 {size=(4, 6)}",
    "%2: f32[4,6] = permute %7 {dims=(1, 0)}\n  %3: f32[4,6] = view %5 {size=(4, 6)}",
    "%2: f32[4,6] = permute %7 {dims=(1, 0)}\n"
    "  %3: f32[4,6] = full {dtype=f32, fill_value=2, size=(4, 6)}",
])  # fmt: skip
def test_nothing_moves_where_nothing_is_saved(operands):
    text = f"""
graph @f(%0: f32[4,1], %1: f32[1,6], %4: f32[24], %5: f32[2,12], %7: f32[6,4]) {{
  {operands}
  %6: f32[4,6] = mul %2, %3
  return %6
}}
"""
    graph = ir.parse(text)
    assert sinking.run(graph) is graph


def values(dtype, shape):
    odd = np.resize(np.array(ODD), shape)
    with np.errstate(all="ignore"):
        if dtype is bfloat16:
            return to_bfloat16(odd.astype(np.float32))
        if not dtype.is_floating_point and not dtype.is_complex:
            odd = np.resize(np.array([0, 1, 2, 3]), shape)
        return odd.astype(dtype.storage)


@pytest.mark.parametrize("short", BY_SHORT)
def test_bits_are_those_of_the_large_shape_for_every_dtype(short):
    text = f"""
graph @f(%0: {short}[7,1], %1: {short}[]) {{
  %2: {short}[7,5] = expand %0 {{size=(7, 5)}}
  %3: {short}[7,5] = expand %1 {{size=(7, 5)}}
  %4: {short}[7,5] = mul %2, %3
  %5: {short}[35] = view %4 {{size=(35,)}}
  %6: {short}[35] = mul %5, %5
  return %4, %6
}}
"""
    inputs = [values(BY_SHORT[short], (7, 1)), values(BY_SHORT[short], ())]
    graph = ir.parse(text)
    for before, after in zip(ir.run(graph, inputs), ir.run(sunk(text), inputs)):
        assert before.dtype == after.dtype and before.tobytes() == after.tobytes()
