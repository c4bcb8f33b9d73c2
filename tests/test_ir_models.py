"""Whole models as graphs: eager, the trace, its derivatives and what passes make of them agree."""

import numpy as np
import pytest
import wengert as torch
from ir_models import MODELS
from wengert import ir
from wengert.ir import passes
from wengert.ir.partition import partition
from wengert.ir.reverse import joint

MODEL_NAMES = list(MODELS)


def traced(name):
    function, make = MODELS[name]
    arguments = make()
    tracing = ir.trace(function)
    graph = tracing(*arguments)
    assert all(a is b for a, b in zip(tracing.inputs, arguments))
    return graph, tracing.inputs, len(arguments)


def assert_bits(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def assert_close(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_all_orders_have_the_bits_of_eager(name):
    function, _ = MODELS[name]
    graph, inputs, count = traced(name)
    arguments = inputs[:count]
    result = function(*arguments)
    assert_bits(ir.run(graph, inputs), [result])
    assert_close(ir.run(passes.optimise(graph), inputs), [result])

    wanted = range(count)
    first = torch.autograd.grad(result, arguments, create_graph=True)
    backward = ir.grad(graph, wanted)
    inputs = [*inputs, torch.ones(())]
    assert_bits(ir.run(backward, inputs), first)
    assert_close(ir.run(passes.optimise(backward), inputs), first)

    seeds = [g.detach().cos() for g in first]
    second = torch.autograd.grad(first, arguments, seeds)
    again = ir.grad(backward, wanted)
    assert_bits(ir.run(again, [*inputs, *seeds]), second)
    assert_close(ir.run(passes.optimise(again), [*inputs, *seeds]), second)


@pytest.mark.parametrize("name", ["mlp", "transformer_block"])
def test_third_order(name):
    function, make = MODELS[name]
    arguments = [a.detach().double().requires_grad_() for a in make()]
    graph = ir.trace(function)(*arguments)
    result = function(*arguments)
    (first,) = torch.autograd.grad(result, arguments[1], create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), arguments[1], create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), arguments[1])
    inputs = list(arguments)
    for seed in (torch.ones(()), first, first):
        graph = ir.grad(graph, [1])
        inputs.append(torch.ones_like(seed, dtype=torch.float64).detach())
    (found,) = ir.run(graph, inputs)
    torch.testing.assert_close(found, third, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_partitions_compute_what_the_whole_computes(name):
    graph, inputs, count = traced(name)
    both = passes.optimise(joint(graph, range(count)))
    parts = partition(both)
    expected = ir.run(both, [*inputs, torch.ones(())])
    results = len(graph.outputs)
    forward = ir.run(parts.forward, inputs)
    assert_bits(forward[:results], expected[:results])
    kept = [*forward[results:], *(inputs[k] for k in parts.saved_inputs)]
    assert_bits(ir.run(parts.backward, [*kept, torch.ones(())]), expected[results:])


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_a_parsed_graph_compiles(name):
    graph, inputs, _ = traced(name)
    compiled = ir.parse(graph.print()).compile()
    assert_close([compiled(*inputs).detach()], ir.run(graph, inputs))
