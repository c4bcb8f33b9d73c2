"""Backward through graphs that came before gives what the engine gives, and knows its limits."""

import gc
import threading
import weakref

import pytest
import wengert as torch
from custom_functions import Twice
from familiar_cases import TIMES, count_calls, repeat, small_net
from wengert.tracer import engine, familiar


@pytest.fixture(autouse=True)
def calls(monkeypatch):
    return count_calls(monkeypatch)


def train(net, steps):
    """Losses and weights, as bytes."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(1)
    out = []
    for _ in range(steps):
        x = torch.randn(5, 3, generator=generator)
        optimizer.zero_grad()
        size = sum(p.abs().sum() for p in net[0].parameters())
        loss = (net(x) * 2.0 + 1.0).pow(2).mean() + 0.01 * size
        loss.backward()
        optimizer.step()
        out.append(loss.detach().numpy().tobytes())
    return out, [p.detach().numpy().tobytes() for p in net.parameters()]


def test_training_is_the_engines(calls, monkeypatch):
    found = train(small_net(), 8)
    assert calls == [False] * familiar.OFTEN + [True] * (8 - familiar.OFTEN)
    monkeypatch.setattr(engine.Run, "is_plain", lambda self: False)
    assert train(small_net(), 8) == found


def test_gradients_add_up(calls):
    x = torch.randn(4, requires_grad=True)
    repeat(lambda: (x * x + x.sin() * x).sum().backward())
    assert calls[-1]
    torch.testing.assert_close(x.grad, TIMES * (2 * x + x.cos() * x + x.sin()).detach())


def test_hooks_added_later_run(calls):
    x = torch.ones(3, requires_grad=True)
    seen = []

    def step(hook=False):
        x.grad = None
        y = x * 3
        if hook:
            y.register_hook(lambda g: seen.append("y") or g * 2)
        (y * y).sum().backward()
        return x.grad.tolist()

    plain = repeat(step)
    assert calls[-1] and plain[-1] == [18.0] * 3
    assert step(hook=True) == [36.0] * 3 and seen == ["y"] and not calls[-1]
    handle = x.register_hook(lambda g: g * 10)
    assert step() == [180.0] * 3 and not calls[-1]
    handle.remove()
    assert step() == [18.0] * 3
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append("leaf"))
    assert step() == [18.0] * 3 and seen[-1] == "leaf" and not calls[-1]


def test_a_second_backward_is_an_error(calls):
    x = torch.ones(3, requires_grad=True)

    def make():
        return (x.exp() * x).sum()

    repeat(lambda: make().backward())
    loss = make()
    loss.backward()
    assert calls[-1]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    loss = make()
    loss.backward(retain_graph=True)
    assert calls[-1]
    loss.backward()
    assert calls[-1]


def test_values_written_since_are_an_error(calls):
    x = torch.ones(3, requires_grad=True)

    def step(write=False):
        y = x * 2
        z = y.exp() * y
        if write:
            y.add_(1)
        z.sum().backward()

    repeat(step)
    assert calls[-1]
    before = x.grad.clone()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        step(write=True)
    assert torch.equal(x.grad, before)


def test_other_graphs_are_told_apart(calls, monkeypatch):
    monkeypatch.setattr(familiar, "MOST_KNOWN", 16)  # all of these, two of leaves alone
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    makers = {
        "number": lambda: (x * 2.0).sum(), "other number": lambda: (x * 3.0).sum(),
        "integer": lambda: (x * 2).sum(), "other leaf": lambda: (x * w).sum(),
        "same leaf": lambda: (x * x).sum(), "longer": lambda: (x * 2.0 * 1.0).sum(),
        "dim": lambda: (x.view(1, 3) * 2.0).sum(), "half used": lambda: (x * w.detach()).sum(),
        "size": lambda: (x[:2] * 2.0).sum(), "double": lambda: (x.double() * 2.0).sum(),
    }  # fmt: skip
    expected = {name: torch.autograd.grad(make(), x)[0] for name, make in makers.items()}
    for _ in range(TIMES + 1):
        for name, make in makers.items():
            x.grad = None
            make().backward()
            assert torch.equal(x.grad, expected[name]), name
    assert all(calls[-len(makers) :])


def test_order_of_calls_is_part_of_the_graph(calls):
    """Sums of gradients go newest first: two graphs alike but for the order are two graphs."""
    torch.manual_seed(0)
    x = torch.randn(64, requires_grad=True)

    def step(order):
        x.grad = None
        parts = {}
        for name in order:
            parts[name] = {"a": torch.sin, "b": torch.cos, "c": torch.exp}[name](x)
        (parts["a"] + parts["b"] + parts["c"]).sum().backward()
        return x.grad.numpy().tobytes()

    first = {order: step(order) for order in ("abc", "cba")}
    for _ in range(TIMES):
        for order in first:
            assert step(order) == first[order]
    assert calls[-1]


def test_gradients_belong_to_one_leaf_each(calls):
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step():
        x.grad = y.grad = None
        (x + y).backward(torch.ones(3))

    repeat(step)
    assert calls[-1]
    x.grad.zero_()
    assert y.grad.tolist() == [1.0] * 3


def test_leaves_that_become_one(calls):
    """What two leaves get apart, one gets as a sum."""
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    def step(a, b):
        a.grad = None
        (a.exp() * b).sum().backward()
        return a.grad._version, a.grad.tolist()

    first = step(x, x)
    repeat(lambda: step(x, y))
    assert calls[-1]
    assert step(x, x) == first
    assert not calls[-1]


def test_a_sum_that_is_passed_on_is_not_added_to(calls):
    x = torch.arange(1.0, 4.0).requires_grad_()

    def step():
        x.grad = None
        p, q = x * 2.0, x * 3.0
        r = p * 5.0
        s = p + q  # two gradients arrive, and their sum goes to p, where r's comes later, and to q
        ((s * s).sum() + (s * 4.0).sum() + r.sum()).backward()
        return x.grad.tolist()

    expected = [50 * v + 30 for v in (1.0, 2.0, 3.0)]
    assert repeat(step) == [expected] * TIMES
    assert calls[-1]


def test_parts_of_results(calls):
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()

    def step():
        x.grad = None
        first, _, last = x.unbind()
        (first * 2 + last).sum().backward()
        return x.grad.tolist()

    found = repeat(step)
    assert calls[-1] and found == [[[2.0] * 4, [0.0] * 4, [1.0] * 4]] * TIMES

    def second_result():
        x.grad = None
        x.sort(descending=True)[0].unbind()[1].backward(torch.arange(4.0))
        return x.grad.tolist()

    assert repeat(second_result) == [[[0.0] * 4, [3.0, 2.0, 1.0, 0.0], [0.0] * 4]] * TIMES
    assert calls[-1]


def test_saved_memory_is_released(calls):
    x = torch.ones(1000, requires_grad=True)

    def step():
        y = x.exp()
        reference = weakref.ref(y._array)
        loss = (y * y).sum()
        loss.backward()
        del y
        gc.collect()
        return reference() is None, loss

    assert [gone for gone, _ in repeat(step)] == [True] * TIMES
    assert calls[-1]


def test_large_nodes_go_to_native_kernels(calls):
    torch.manual_seed(0)
    w = torch.randn(300, 300, requires_grad=True)

    def step():
        w.grad = None
        (w.tanh() @ torch.ones(300, 2)).sum().backward()
        return w.grad.numpy().tobytes()

    assert len(set(repeat(step))) == 1
    assert calls[-1]
    labels = torch.arange(300) % 7

    def loss():  # it saves no weight and a number
        w.grad = None
        torch.nn.functional.cross_entropy(w * 2.0, labels, ignore_index=3).backward()
        return w.grad.numpy().tobytes()

    assert len(set(repeat(loss))) == 1
    assert calls[-1]


def test_graphs_that_never_come_again_are_looked_at_less(monkeypatch):
    looks = []
    sketch = familiar.sketch
    monkeypatch.setattr(familiar, "sketch", lambda *a: looks.append(1) or sketch(*a))
    x = torch.ones(3, requires_grad=True)
    for k in range(400):
        (x * float(k)).sum().backward()
    assert len(looks) < 150


def test_in_place_graphs_and_custom_functions_stay_with_the_engine(calls):
    x = torch.ones(4, requires_grad=True)

    def step():
        x.grad = None
        y = Twice.apply(x)
        y[1:3] = 0
        y.sum().backward()
        return x.grad.tolist()

    assert repeat(step) == [[2.0, 0.0, 0.0, 2.0]] * TIMES
    assert not any(calls)

    def familiar_end():
        x.grad = None
        (x * 2).sum().backward()
        return x.grad.tolist()

    assert repeat(familiar_end, 20) == [[2.0] * 4] * 20 and calls[-1]  # after some waiting
    assert step() == [2.0, 0.0, 0.0, 2.0] and not calls[-1]


def test_threads(calls):
    x = torch.randn(16)
    results = []

    def work():
        w = torch.ones(16, requires_grad=True)
        for _ in range(50):
            w.grad = None
            ((w * x).tanh() * w).sum().backward()
            results.append(w.grad.numpy().tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 200 and len(set(results)) == 1


def test_custom_functions_of_leaves():
    """A graph of one node that is no op's."""
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, z):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            seen.append(engine.current.run.will_run(x.grad_fn or gradient_edge(x)))
            return grad * y, grad * x, None

    def gradient_edge(x):
        return torch.autograd.graph.get_gradient_edge(x).node

    x, y, z = (torch.full((3,), v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    result = Product.apply(x, y, z)
    result.backward(torch.ones(3), retain_graph=True)
    result.backward(torch.ones(3))
    assert x.grad.tolist() == [6.0] * 3 and y.grad.tolist() == [4.0] * 3 and z.grad is None
    assert seen == [True, True]
    with pytest.raises(RuntimeError, match="a second time"):
        result.backward(torch.ones(3))
    both = Product.apply(x, x, None)  # one leaf twice: summed before it is accumulated
    x.grad = None
    both.backward(torch.ones(3))
    assert x.grad.tolist() == [4.0] * 3
    x.register_hook(lambda grad: seen.append("hook"))
    Product.apply(x, y, z).backward(torch.ones(3))
    assert seen[-1] == "hook"


@pytest.mark.parametrize("body", [
    lambda x, y, more: torch.add(x, y, **more("alpha")),
    lambda x, y, more: x.clone().sub_(y, **more("alpha")),
    lambda x, y, more: torch.addcmul(x, y, y.detach(), **more("value")),
    lambda x, y, more: torch.nn.functional.gelu(x * y, **more("approximate")),
])  # fmt: skip
def test_attributes_that_were_left_out(body):
    def slopes(more):
        x, y = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
        body(x, y, more).sum().backward()
        return x.grad.tolist(), y.grad.tolist()

    def given(name):
        return {name: "tanh" if name == "approximate" else 3.0}

    want = slopes(given)
    for _ in range(TIMES):
        assert slopes(lambda name: {}) != want
    assert slopes(given) == want


def test_conjugates_are_marked_at_every_call():
    z = torch.tensor([1 + 2j, 3j])

    def marks(z):
        return z.is_conj(), z.conj().is_conj(), (z * 2).is_conj()

    for _ in range(3 * TIMES):
        assert marks(z) == (False, True, False)
        assert marks(z.conj()) == (True, False, False)
