"""Whole training steps as one graph: forward, backward and the update, written back in place."""

import itertools

import numpy as np
import pytest
from graphs import build, check, of, sample
from wengert.ir import passes, reverse
from wengert.ir.builder import Builder, Symbol


def inline(builder, graph, symbols):
    """Appends a graph's nodes to a builder that stands in their place; gives its outputs."""
    names = {item.var: s.var for item, s in zip(graph.inputs, symbols)}
    for node in graph.nodes:
        builder.nodes.append(node.__class__(
            node.op, tuple(None if v is None else names.get(v, v) for v in node.inputs),
            node.outputs, node.attrs))  # fmt: skip
    return [Symbol(names.get(o.var, o.var)) for o in graph.outputs]


def training_step(loss, types, parameters, rate=0.1):
    """loss, and every parameter less `rate` times its gradient, written to the parameter."""
    joint = reverse.joint(build(loss, *types), list(parameters))
    builder = Builder("step")
    inputs = [builder.input(i.var.type) for i in joint.inputs[: len(types)]]
    with builder.building():
        from wengert.ir.op import TABLE

        one = TABLE["full"](size=(), fill_value=1.0, dtype=inputs[0].dtype)
        value, *grads = inline(builder, joint, [*inputs, one])
        builder.output(value)
        for k, grad in zip(parameters, grads):
            builder.output(inputs[k] - grad * rate, "write", k)
    return builder.graph()


def regression(x, target, w1, b1, w2, b2):
    hidden = (x @ w1.t() + b1).relu()
    difference = hidden @ w2.t() + b2 - target
    return (difference * difference).mean()


@pytest.mark.parametrize(("batch", "inside", "hidden", "out"),
                         [(4, 3, 5, 2), (32, 64, 128, 10), (1, 1, 1, 1)])  # fmt: skip
def test_mlp_step(batch, inside, hidden, out):
    types = [("float32", batch, inside), ("float32", batch, out), ("float32", hidden, inside),
             ("float32", hidden), ("float32", out, hidden), ("float32", out)]  # fmt: skip
    graph = training_step(regression, types, (2, 3, 4, 5))
    compiled = check(graph)
    assert not compiled.host_calls


def test_steps_follow_each_other():
    """The written parameters are what the next call reads: the loss goes down."""
    types = [("float32", 16, 4), ("float32", 16, 2), ("float32", 8, 4), ("float32", 8),
             ("float32", 2, 8), ("float32", 2)]  # fmt: skip
    from wengert.backend import compile_graph

    graph = passes.optimise(training_step(regression, types, (2, 3, 4, 5), rate=0.05))
    compiled = compile_graph(graph)
    arrays = [sample(of(*t), np.random.default_rng(k)) for k, t in enumerate(types)]
    losses = [float(compiled(*arrays)[0]) for _ in range(20)]
    assert all(b < a for a, b in itertools.pairwise(losses))


def softmax_loss(x, labels, w, b):
    return -((x @ w.t() + b).log_softmax(1) * labels).sum(1).mean()


def test_softmax_regression_step():
    types = [("float32", 13, 7), ("float32", 13, 10), ("float32", 10, 7), ("float32", 10)]
    check(training_step(softmax_loss, types, (2, 3)))


def kernels(function, *types):
    return [k.kind for k in check(build(function, *types)).kernels]


F = "float32"


def test_tail_of_a_product_is_part_of_it():
    def linear(x, w, b, r):
        return (x @ w.t() + b).relu() * 0.5 + r

    assert kernels(linear, (F, 9, 70), (F, 33, 70), (F, 33), (F, 9, 33)) == ["matmul"]
    assert kernels(linear, (F, 300, 300), (F, 200, 300), (F, 200), (F, 300, 200)) == ["matmul"]
    batched = kernels(lambda a, b, c: (a.bmm(b) + c).tanh(), (F, 3, 9, 7), (F, 3, 7, 5), (F, 5))
    assert batched == ["matmul"]
    kept = kernels(lambda a, b: ((a @ b), (a @ b).exp()), (F, 8, 8), (F, 8, 8))
    assert kept == ["matmul", "map"]


def test_transposed_product_is_computed_as_such():
    assert kernels(lambda a, b: (a @ b).t() - 1, (F, 9, 7), (F, 7, 5)) == ["matmul"]


def test_rows_are_read_in_several_passes():
    def f(x, g):
        y = x.softmax(1)
        return y, (g - (g * y).sum(1, keepdim=True)) * y

    assert kernels(f, (F, 64, 100), (F, 64, 100)) == ["row"]


@pytest.mark.parametrize(("dtype", "apart"), [("float64", True), ("float32", False)])
def test_long_code_of_one_number_is_compiled_once(dtype, apart):
    """A power of 0-d doubles, as in Adam, has a kernel of its own; short code goes with readers."""

    def scaled(x, y, base, exponent):
        scale = (1 - (base.exp() if dtype == "float32" else base**exponent)).to("float32")
        return x * scale, (y - x.sum()) / scale

    compiled = check(build(scaled, ("float32", 700), ("float32", 30, 700), (dtype,), (dtype,)))
    texts = [kernel.text for kernel in compiled.kernels]
    assert sum(text.startswith("once") for text in texts) == apart
    assert sum("pow_tensor" in text or "exp" in text for text in texts) == (1 if apart else 2)


def test_numbers_of_several_parameters_are_one_kernel():
    """As the steps of an optimizer are: all powers at once; one that is made of another's sum is
    there with that sum."""

    def update(base, *tensors):
        steps, weights = tensors[:3], tensors[3:]
        return *(s + 1 for s in steps), *(w * base ** (s + 1) for s, w in zip(steps, weights))

    def in_turn(base, *tensors):
        first = tensors[3] * base ** tensors[0]
        return first, tensors[4] * base ** (tensors[1] + first.sum())

    types = [("float64",)] * 4 + [("float64", 7), ("float64", 8), ("float64", 9)]
    for function in (update, in_turn):
        texts = [kernel.text for kernel in check(build(function, *types)).kernels]
        assert sum("pow_tensor" in text for text in texts) == 1
