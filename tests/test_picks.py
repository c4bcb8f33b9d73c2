"""Elements picked from a computed value are computed alone, to the same bits."""

import pytest
import wengert as torch
from wengert import ir
from wengert.ir.passes import optimise

F = torch.nn.functional


def names(graph):
    return [node.op.name for node in graph.nodes]


def equal_bits(function, *arguments):
    trace = ir.trace(function)(*arguments)
    after = optimise(trace)
    for a, b in zip(ir.run(trace, arguments), ir.run(after, arguments)):
        torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b), rtol=0, atol=0,
                                   equal_nan=True)  # fmt: skip
    return after


INDEX = torch.tensor([[3], [0], [31]])


def gather_of(graph):
    (found,) = (n for n in graph.nodes if n.op.name == "gather")
    return found


def test_a_gather_of_pointwise_values_reads_their_operands():
    after = equal_bits(lambda x, i: ((x - 1).exp() * 2).gather(1, i), torch.randn(3, 32), INDEX)
    assert gather_of(after).inputs[0] is after.inputs[0].var


def test_what_is_the_same_along_a_line_is_not_gathered():
    after = equal_bits(
        lambda x, i: (x - x.amax(1, keepdim=True)).gather(1, i), torch.randn(3, 32), INDEX
    )
    assert gather_of(after).inputs[0] is after.inputs[0].var


@pytest.mark.parametrize("line", [(32,), (1, 32)])
def test_of_one_line_that_is_repeated_the_line_is_read(line):
    after = equal_bits(lambda b, x, i: (x * 2 + b).gather(1, i),
                       torch.randn(line), torch.randn(3, 32), INDEX)  # fmt: skip
    sources = [node.inputs[0].shape for node in after.nodes if node.op.name == "gather"]
    assert sorted(sources) == [(3, 32), (32,)]


def test_lines_along_another_dimension_are_gathered_as_they_are():
    after = equal_bits(lambda b, x, i: (x * 2 + b).gather(0, i), torch.randn(32),
                       torch.randn(16, 32), torch.randint(0, 16, (1, 32)))  # fmt: skip
    assert names(after).count("gather") == 1  # and the bias is read where it is


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x, i: (x * 2).gather(1, i), (4, 8)),
        (lambda x, i: (x * 2).gather(1, i), (2, 1)),
        (lambda x, i: (x * 2).sin().cos().exp().tanh().sigmoid().neg().abs().gather(1, i), (4, 1)),
    ],
)
def test_large_indices_other_sizes_and_long_expressions_stay(function, shape):
    after = equal_bits(function, torch.randn(4, 8), torch.zeros(shape, dtype=torch.int64))
    assert gather_of(after).inputs[0] is not after.inputs[0].var


@pytest.mark.parametrize("value", [1.5, -0.0, float("nan"), float("inf"), -2.0])
def test_the_sum_of_one_number_per_line_is_that_number(value):
    after = equal_bits(
        lambda v, i: torch.zeros(3, 32).scatter(1, i, v).sum(1, keepdim=True),
        torch.full((3, 1), value),
        INDEX,
    )
    assert "sum" not in names(after) and "scatter" not in names(after)
    assert "gather" in names(after)  # which looks at the index


def test_cross_entropy_stores_no_probabilities():
    logits = torch.randn(16, 64, requires_grad=True)
    targets = torch.randint(0, 64, (16,))
    function = torch.compile(lambda x: F.cross_entropy(x, targets))
    expected = F.cross_entropy(logits, targets)
    (wanted,) = torch.autograd.grad(expected, logits)
    for _ in range(3):
        loss = function(logits)
        (found,) = torch.autograd.grad(loss, logits)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(found, wanted)
    forward = function.graph("forward")
    assert all(o.var.type.numel <= 16 for o in forward.outputs)
