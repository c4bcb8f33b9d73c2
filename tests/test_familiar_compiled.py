"""Familiar graphs with compiled functions among their nodes."""

import gc
import weakref

import pytest
import wengert as torch
from familiar_cases import count_calls, repeat, small_net
from wengert.tracer import engine


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    return count_calls(monkeypatch)


def mixed(net, between):
    """Training with a compiled part between eager ones, where backward begins and where it ends."""
    inner = torch.compile(net)

    def step(x):
        first = torch.tanh(x @ between)
        return ((inner(first[:, :3]) - 1.0) ** 2 + first.sum(1, keepdim=True)).mean()

    return step


def test_compiled_functions_among_eager_ops(calls, monkeypatch):
    def run():
        net, between = small_net(), torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        step, found = mixed(net, between), []
        leaves = [between, *net.parameters()]
        for k in range(9):
            x = torch.linspace(0, k, 15).reshape(5, 3)
            for leaf in leaves:
                leaf.grad = None
            step(x).backward()
            found.append([leaf.grad.numpy().tobytes() for leaf in leaves])
        return found

    found = run()
    assert calls[-1]
    monkeypatch.setattr(engine.Run, "is_plain", lambda self: False)
    assert run() == found


def test_some_results_of_a_compiled_function(calls):
    two = torch.compile(lambda x: (x.exp(), x * 3))
    x = torch.ones(4, requires_grad=True)

    def step(which):
        x.grad = None
        parts = two(x)
        sum((parts[k] * (k + 1.0)).sum() for k in which).backward()
        return x.grad

    for which in [(0,), (1,), (0, 1)]:
        grads = repeat(lambda which=which: step(which).tolist(), 8)
        expected = sum([x.exp(), torch.full((4,), 6.0)][k] for k in which).tolist()
        assert calls[-1] and all(grad == pytest.approx(expected) for grad in grads)


def test_a_dropped_compiled_function_is_let_go(calls):
    x = torch.ones(4, requires_grad=True)

    def use_one():
        inner = torch.compile(lambda x: x.exp() * 2)
        repeat(lambda: (inner(x) * 3).sum().backward(), 8)
        return weakref.ref(inner)

    reference = use_one()
    assert calls[-1]
    gc.collect()
    assert reference() is None
    other = torch.compile(lambda x: x.exp() * 5)  # a graph of the same shape
    x.grad = None
    repeat(lambda: (other(x) * 3).sum().backward(), 8)
    torch.testing.assert_close(x.grad, (8 * 15 * x.exp()).detach())


def test_hooks_and_writes_stop_at_compiled_functions(calls):
    inner = torch.compile(lambda x: x.exp().sin())
    x, seen = torch.ones(4, requires_grad=True), []

    def step(act=None):
        x.grad = None
        y = inner(x)
        total = (y * y).sum()
        if act is not None:
            act(y)
        total.backward()
        return x.grad.clone()

    expected = repeat(step, 8)[-1]
    assert calls[-1]
    doubled = step(lambda y: y.register_hook(lambda g: seen.append(1) or g * 2))
    assert not calls[-1] and seen == [1]
    torch.testing.assert_close(doubled, 2 * expected)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        step(lambda y: y.detach().mul_(2))
    torch.testing.assert_close(step(), expected)
