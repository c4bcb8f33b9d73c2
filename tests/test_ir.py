"""Graphs: printing, parsing, verifying, differentiating, optimising."""

import numpy as np
import pytest
import wengert as torch  # noqa: F401  fills the catalogue
from wengert.ir import interp, passes, reverse
from wengert.ir.builder import Builder
from wengert.ir.parser import ParseError, parse
from wengert.ir.types import TensorType, float32
from wengert.ir.verify import VerifyError, verify


def mlp():
    builder = Builder("mlp")
    x = builder.input(TensorType(float32, (4, 8)), name="x")
    w = builder.input(TensorType(float32, (16, 8)), "captured", "w")
    b = builder.input(TensorType(float32, (16,)), "captured", "b")
    with builder.building():
        h = (x @ w.t() + b).tanh()
        builder.output((h * h).mean())
    return builder.graph()


def arrays(graph, seed=0):
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(i.var.shape), "f") for i in graph.inputs]


def test_text_round_trips():
    for graph in (mlp(), reverse.joint(mlp(), [1, 2]), passes.optimise(reverse.grad(mlp(), [1]))):
        assert parse(graph.print()) == graph
        assert parse(graph.print()).print() == graph.print()


def test_passes_keep_meaning():
    graph = reverse.joint(mlp(), [0, 1, 2])
    after = verify(passes.optimise(graph))
    inputs = arrays(graph)
    for a, b in zip(interp.run(graph, inputs), interp.run(after, inputs)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_third_order_by_applying_grad_again():
    builder = Builder("cube")
    x = builder.input(TensorType(float32, ()), name="x")
    with builder.building():
        builder.output(x * x * x)
    graph = builder.graph()
    for _ in range(3):
        graph = verify(reverse.grad(graph, [0]))
    values = [np.float32(2.0)] + [np.float32(1.0)] * (len(graph.inputs) - 1)
    assert float(interp.run(graph, [np.asarray(v) for v in values])[0]) == 6.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph @g(%0: f32[2]) {\n  %1: f32[2] = nosuch %0\n  return %1\n}", "line 2, column 16"),
        ("graph @g(%0: f32[2]) {\n  %1: f32[2] = neg %9\n  return %1\n}", "used before"),
        ("graph @g(%0: q7[2]) {\n return %0\n}", "unknown dtype"),
        ("graph @g(%0: f32[2]) {\n  return %0", "expected '}'"),
    ],
)
def test_bad_text_is_located(text, message):
    with pytest.raises(ParseError, match=message):
        parse(text)


def test_verifier_names_the_wrong_node():
    text = "graph @g(%0: f32[2]) {\n  %1: f32[3] = neg %0\n  return %1\n}"
    with pytest.raises(VerifyError, match=r"expected f32\[2\], got f32\[3\]"):
        verify(parse(text))
