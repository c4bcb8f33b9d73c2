"""Results of compiled functions that take no part in backward: no gradient, not one of zeros."""

import itertools

import pytest
import wengert as torch
from wengert.ir.parser import parse
from wengert.ir.passes import absent_gradients


def several(x, y):
    """Results whose derivatives are infinite at 0, joined and parted in all the ways there are."""
    a, b, c = torch.unbind(x)
    rows = torch.stack([a * y, b.sqrt(), c / y])
    total = rows.sum(0)
    return total, rows[1].log(), torch.where(y > 0, a, b.sqrt()), a - b.sqrt(), torch.cat([b, y])


compiled = torch.compile(several)


def gradients(function, used, create_graph):
    x = torch.tensor([[0.5] * 4, [0.0] * 4, [0.25] * 4], requires_grad=True)
    y = torch.tensor([0.0, 1.0, 2.0, 3.0], requires_grad=True)
    results = function(x, y)
    loss = sum(results[k].sum() for k in used)
    found = torch.autograd.grad(loss, (x, y), allow_unused=True, create_graph=create_graph)
    if create_graph and found[0].requires_grad:
        found += torch.autograd.grad(found[0].sum(), (x, y), allow_unused=True)
    return found


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("count", range(1, 6))
def test_unused_results_give_what_eager_gives(count, create_graph):
    gradients(compiled, (0,), False)
    for used in itertools.combinations(range(5), count):
        expected = gradients(several, used, create_graph)
        for seen, wanted in zip(gradients(compiled, used, create_graph), expected, strict=True):
            assert (seen is None) == (wanted is None), used
            if wanted is not None:
                torch.testing.assert_close(seen, wanted, equal_nan=True)


def test_absent_gradients_leave_the_graph():
    graph = parse("""
    graph @f_backward(%0: f32[2] saved, %1: f32[2] gradient, %2: f32[2] gradient) {
      %3: f32[2] = div %2, %0
      %4: f32[2] = sub %3, %1
      %5: f32[2] = mul %3, %0
      return %4, %5
    }""")
    first, left = absent_gradients.run(graph, (0,))
    assert left == (0,)
    assert first == parse("""
    graph @f_backward(%0: f32[2] saved, %1: f32[2] gradient) {
      %2: f32[2] = neg %1
      return %2
    }""")
    second, left = absent_gradients.run(graph, (1,))
    assert left == (0, 1)
    assert second == parse("""
    graph @f_backward(%0: f32[2] saved, %1: f32[2] gradient) {
      %2: f32[2] = div %1, %0
      %3: f32[2] = mul %2, %0
      return %2, %3
    }""")


def apart(x, y):
    return x * 2, y * y, x * y


def after_a_gradient(function, ask):
    """What the gradient of an input that a result does not lead to leaves behind."""
    x, y = (torch.tensor([v, 1.0], requires_grad=True) for v in (0.5, 0.25))
    a, b, c = function(x, y)
    runs = []
    middle = a.exp()
    middle.register_hook(lambda g: runs.append("middle"))
    found = ask(x, y, a, b, c, middle)
    found = [None if g is None else g.tolist() for g in found]
    try:
        middle.sum().backward()
    except RuntimeError as error:
        runs.append(str(error)[:40])
    return found, runs, [None if t.grad is None else t.grad.tolist() for t in (x, y)]


ASKED = {
    "another": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum(), y, allow_unused=True),
    "both": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum(), (x, y), allow_unused=True),
    "beside": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum() + b.sum(), y),
    "joined": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum() + c.sin().sum(), y),
    "joined, kept": lambda x, y, a, b, c, m: torch.autograd.grad(
        m.sum() + c.sin().sum(), y, retain_graph=True),
    "a result": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum(), b, allow_unused=True),
    "its own": lambda x, y, a, b, c, m: torch.autograd.grad(m.sum() + b.sum(), (a, b)),
    "several roots": lambda x, y, a, b, c, m: torch.autograd.grad((m.sum(), b.sum(), c.sum()), y),
    "straight": lambda x, y, a, b, c, m: torch.autograd.grad(a.sum(), y, allow_unused=True),
    "with a graph": lambda x, y, a, b, c, m: torch.autograd.grad(
        m.sum() + b.sum(), y, create_graph=True),
    "backward": lambda x, y, a, b, c, m: (m.sum() + b.sum()).backward(inputs=[y]) or [y.grad],
}  # fmt: skip


@pytest.mark.parametrize("saved_by", ["call", "hooks"])
@pytest.mark.parametrize("name", ASKED)
def test_what_a_result_does_not_lead_to_stays(name, saved_by):
    function = torch.compile(apart)

    def call(x, y):
        if saved_by == "call":
            return function(x, y)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return function(x, y)

    expected = after_a_gradient(apart, ASKED[name])
    for _ in range(6):
        assert after_a_gradient(call, ASKED[name]) == expected


def test_a_chain_of_calls_is_no_recursion():
    def step(x, y):
        return x * 0.5 - y, y * 0.5

    def run(call):
        x, y = (torch.tensor([v], requires_grad=True) for v in (0.5, 0.25))
        a, b = x, y
        for _ in range(3000):
            a, b = call(a, b)
        unused = torch.autograd.grad(b.sum(), x, allow_unused=True, retain_graph=True)
        return unused, torch.autograd.grad(b.sum(), y)

    assert run(torch.compile(step)) == run(step) == ((None,), (0.0,))
