"""Graphs: printing, parsing, verifying, differentiating, optimising."""

import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import wengert as torch
from wengert.ir import interp, passes, reverse
from wengert.ir.builder import Builder
from wengert.ir.graph import Place
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


def test_inputs_say_what_they_are():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    other = torch.ones(4)
    graph = torch.ir.trace(lambda x, s: model(x) * s + other)(torch.ones(5, 3), 0.5)
    kinds = {item.name: item.kind for item in graph.inputs}
    assert kinds == {"x": "argument", "s": "scalar", "0.weight": "captured", "0.bias": "captured",
                     "1.weight": "captured", "1.bias": "captured", "1.running_mean": "buffer",
                     "1.running_var": "buffer", "1.num_batches_tracked": "buffer",
                     "": "captured"}  # fmt: skip
    written = [graph.inputs[o.target].name for o in graph.outputs if o.kind == "write"]
    assert sorted(written) == ["1.num_batches_tracked", "1.running_mean", "1.running_var"]


def test_traces_say_which_path_they_are():
    graph = torch.ir.trace(lambda x: x + 1 if x.sum() > 0 else x - 1)(torch.ones(3))
    assert re.match(r"path: a branch at .*test_ir.py:\d+ was True", graph.notes[0])
    with pytest.raises(RuntimeError, match=r"more than a graph: float\(\) .*test_ir.py"):
        torch.ir.trace(lambda x: x * float(x.sum()))(torch.ones(3))


def test_a_training_step_is_a_graph():
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def step(x):
        loss = (x * weight).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, x.view(3, 1)

    tracing = torch.ir.trace(step)
    graph = tracing(torch.arange(3.0))
    assert weight.tolist() == [1.0, 0.5, 0.0]  # it ran
    results = [o.kind for o in graph.outputs]
    assert results == ["result"] * 3 + ["write"]  # the loss, the view, the gradient; the weight
    loss, view, grad, after = torch.ir.run(graph, tracing.inputs)
    assert (loss.item(), view.shape, grad.tolist()) == (0.5, (3, 1), [0.0, 1.0, 2.0])
    assert after.tolist() == [1.0, 0.0, -1.0]


def test_run_gives_back_what_it_is_given():
    graph = torch.ir.trace(lambda x: x * 2)(torch.ones(3, dtype=torch.bfloat16))
    (tensor,) = torch.ir.run(graph, [torch.ones(3, dtype=torch.bfloat16)])
    assert tensor.dtype is torch.bfloat16 and tensor.tolist() == [2.0] * 3
    (array,) = torch.ir.run(mlp(), arrays(mlp()))
    assert isinstance(array, np.ndarray)
    with pytest.raises(TypeError, match="input x must be"):
        torch.ir.run(mlp(), [torch.ones(1), torch.ones(1), torch.ones(1)])
    with pytest.raises(TypeError, match="expected a Graph"):
        torch.ir.run("graph", [])


def test_places_stay_with_what_passes_make():
    def function(x):
        y = x.softmax(1)
        return y.log().sum()

    first = function.__code__.co_firstlineno
    compiled = torch.compile(function)
    compiled(torch.ones(2, 3, requires_grad=True))
    for stage in ("trace", "forward", "backward"):
        lines = {node.place.line for node in compiled.graph(stage).nodes}
        assert lines == {first + 1, first + 2}, stage


LAWS = {  # by name: a function, and how many ops are left of it
    "mul": (lambda x: x * 1, 0),
    "div": (lambda x: x / 1, 0),
    "neg": (lambda x: x.neg().neg(), 0),
    "sub": (lambda x: x - 0.0, 0),
    "add": (lambda x: x + (-0.0), 0),
    "kept add": (lambda x: x + 0.0, 1),
    "kept mul": (lambda x: x * 0.0, 1),
    "half": (lambda x: x / 2, 1),
    "pow": (lambda x: x**1, 0),
    "cast": (lambda x: x.double().float(), 0),
    "kept cast": (lambda x: x.half().float(), 2),
    "permute": (lambda x: x.t().t(), 0),
    "view": (lambda x: x.view(8).view(2, 4), 0),
}


@pytest.mark.parametrize("law", LAWS)
def test_simplification_is_exact(law):
    function, left = LAWS[law]
    special = [0.0, -0.0, 1.5, -2.0, float("inf"), float("-inf"), float("nan"), 1e-45]
    x = torch.tensor(special).view(2, 4)
    graph = torch.ir.trace(function)(x)
    after = passes.optimise(graph)
    assert sum(node.op.name not in ("full", "constant") for node in after.nodes) == left
    (found,), (wanted,) = (torch.ir.run(g, [x]) for g in (after, graph))
    assert found.numpy().tobytes() == wanted.numpy().tobytes()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_composites_of_16_bits_round_once(dtype):
    x = torch.randn(4, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    for function in (lambda x: torch.nn.functional.layer_norm(x, (64,)), torch.std, torch.mean):
        graph = torch.ir.trace(function)(x)
        (found,) = torch.ir.run(passes.optimise(graph), [x])
        torch.testing.assert_close(found, function(x), rtol=2**-7, atol=1e-6)


def test_what_is_small_is_saved():
    x = torch.randn(64, 32, requires_grad=True)
    compiled = torch.compile(lambda x: torch.nn.functional.layer_norm(x, (32,)))
    compiled(x)
    assert compiled.dump("backward").startswith(
        "# saved for backward: 2 values, 512 bytes; inputs kept: 1 values, 8192 bytes; recomputed: "
    )


def test_public_functions_take_values_of_graphs():
    """Eager's short ways must leave them alone."""
    builder = Builder("functions")
    x = builder.input(TensorType(float32, (3,)))
    with builder.building():
        builder.output(torch.relu(torch.add(x, x)) + torch.exp(torch.mul(x, 2)))
    (result,) = interp.run(builder.graph(), [np.array([-1.0, 0.0, 1.0], "f")])
    np.testing.assert_allclose(result, np.array([np.exp(-2.0), 1.0, 2 + np.exp(2.0)]), rtol=1e-6)


def test_nodes_and_places_can_be_replaced_but_not_changed():
    node = replace(mlp().nodes[0], place=Place("train.py", 3))
    assert node.place == Place("train.py", 3, node=7)  # the number is not compared
    assert replace(node, over=(0,)).inputs is node.inputs
    for frozen, name in ((node, "op"), (node.place, "line")):
        with pytest.raises(FrozenInstanceError):
            setattr(frozen, name, None)
