"""Writes between a compiled forward and its backward: as in eager, they are seen, or raise, or not.

Eager's backward reads what its ops saved. A compiled one may keep other values, but must give what
eager gives for writes that autograd counts, for those by way of `.data`, and for those of other
compiled functions.
"""

import gc
import types

import pytest
import wengert as torch
import wengert.nn.functional as F
from scenarios import attempt, close, data, grads_of, plain
from wengert import nn
from wengert.tracer.readers import readers

FUNCTIONS = {
    "mul": lambda x, w: x * w,
    "exp": lambda x, w: x.exp() * w,
    "sin": lambda x, w: (x * w).sin(),
    "sin cos": lambda x, w: x.sin() * w.cos(),
    "add": lambda x, w: x + w,
    "tanh": lambda x, w: (x + w).tanh(),
    "pow": lambda x, w: x.pow(3) * w,
    "product": lambda x, w: torch.outer(x, w) @ w,
    "relu": lambda x, w: torch.relu(x) * w,
    "softmax": lambda x, w: x.softmax(0) * w,
    "views": lambda x, w: x[1:] * w[:2],
    "expanded": lambda x, w: x.expand(2, 3) * w,
    "cast": lambda x, w: x.double() * w,
    "clamp": lambda x, w: x.clamp(-0.5, 0.5) * w,
    "division": lambda x, w: x / w,
    "copies": lambda x, w: x.clone() * w.contiguous(),
    "norms": lambda x, w: x / x.norm() * w,
    "layer norm": lambda x, w: F.layer_norm(x, (3,), w),
    "dropout": lambda x, w: F.dropout(x.exp(), 0.5) * w,
    "branch": lambda x, w: x.exp() * w if x.exp().sum() > 2 else (x.exp() + w).sin(),
}


def counted(x, wrap):
    with torch.no_grad():
        x.mul_(3)


def unseen(x, wrap):
    x.data.mul_(3)


def compiled(x, wrap):
    wrap(lambda t: t.mul_(3))(x.data)


def stepped(x, wrap):
    x.grad = torch.ones(3)
    torch.optim.SGD([x], 0.5).step()
    x.grad = None


def exchanged(x, wrap):
    x.data = data(3, k=30)


WRITES = [counted, unseen, compiled, stepped, exchanged]


def same(run):
    torch.manual_seed(0)
    want = plain(run(lambda f: f))
    torch.manual_seed(0)
    got = plain(run(torch.compile))
    assert close(got, want), f"\ncompiled: {got}\neager:    {want}"
    gc.collect()  # errors that were caught hold frames, and these the history
    assert not readers


@pytest.mark.parametrize("write", WRITES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_writes_into_inputs(name, write):
    def run(wrap):
        f, seen = wrap(FUNCTIONS[name]), []
        for k in range(3):
            x, w = data(3, k=k, grad=True), data(3, k=k + 7, grad=True)
            y = f(x, w)
            write(x, wrap)
            failed = attempt(y.sum().backward)
            # how far backward came before it failed is nobody's business
            seen.append(type(failed).__name__ if failed else grads_of(x, w))
        return seen

    same(run)


@pytest.mark.parametrize("name", ["exp", "sin", "relu", "softmax", "views", "dropout"])
def test_writes_before_a_second_backward(name):
    def run(wrap):
        f, seen = wrap(FUNCTIONS[name]), []
        for k in range(3):
            x, w = data(3, k=k, grad=True), data(3, k=k + 7, grad=True)
            y = f(x, w).sum()
            y.backward(retain_graph=True)
            w.data.mul_(2)
            y.backward(retain_graph=True)
            x.data.add_(1)
            y.backward()
            seen.append(grads_of(x, w))
        return seen

    same(run)


RESULTS = [
    lambda x: (x.exp(),),
    lambda x: (x.sin(),),
    lambda x: (x * 2,),
    lambda x: (x.exp(), x.exp().sum()),
    lambda x: (x.tanh(), x.tanh() * 2),
]


@pytest.mark.parametrize("number", range(len(RESULTS)))
@pytest.mark.parametrize("way", ["itself", "data", "detach"])
def test_writes_into_results(number, way):
    def run(wrap):
        f, seen = wrap(RESULTS[number]), []
        for k in range(3):
            x = data(3, k=k, grad=True)
            results = f(x)
            {"itself": results[0], "data": results[0].data,
             "detach": results[0].detach()}[way].mul_(2)  # fmt: skip
            total = sum(r.sum() for r in results)
            seen.append((type(attempt(total.backward)).__name__, x.grad))
        return seen

    same(run)


def test_gradients_of_gradients_after_a_write():
    def run(wrap):
        f, seen = wrap(lambda x: (x + 1).exp().sum()), []
        for k in range(3):
            x = data(3, k=k, grad=True)
            h = x * 2
            y = f(h)
            with torch.no_grad():
                h.add_(1)
            (g,) = torch.autograd.grad(y, x, create_graph=True)
            g.pow(2).sum().backward()
            seen.append((g.detach(), x.grad))
        return seen

    same(run)


def test_a_function_that_writes_over_its_own_inputs():
    def body(x, y):
        result = (x + y).tanh().exp()
        with torch.no_grad():
            y.mul_(0.5)
        return result

    def run(wrap):
        f, seen = wrap(body), []
        for k in range(6):
            x = data(3, k=k, grad=True)
            result = f(x, data(3, k=k + 1))
            (x if k % 2 else result).data.mul_(2)
            result.sum().backward()
            seen.append(x.grad)
        return seen

    same(run)


def test_parameters_stepped_while_another_loss_waits():
    def run(wrap):
        torch.manual_seed(1)
        m = nn.BatchNorm1d(3)
        o = torch.optim.Adam(m.parameters(), 0.1)
        f, seen = wrap(lambda x: torch.relu(m(x) * 2).sum()), []
        for k in range(3):
            x = data(4, 3, k=k, grad=True)
            first, second = f(x), f(x * 2)
            first.backward()
            o.step()
            failed = type(attempt(second.backward)).__name__
            seen.append((failed, x.grad, grads_of(*m.parameters())))
            o.zero_grad()
        return seen, list(m.buffers())

    same(run)


APART = [
    lambda x: (x.exp(), x.sin()),
    lambda x: (x.tanh().exp(), x.tanh().sin()),
    lambda x: (lambda h: (h.exp(), h.sin()))(x.tanh()),
    lambda x: (lambda h: (h.exp(), h.sin(), h))(x + 1),
]


@pytest.mark.parametrize("number", range(len(APART)))
@pytest.mark.parametrize("order", [1, -1])
def test_backward_from_one_result_after_another(number, order):
    """Histories that have nothing in common are freed one by one."""

    def run(wrap):
        f, seen = wrap(APART[number]), []
        for k in range(3):
            x = data(3, k=k, grad=True)
            results = f(x)[::order]
            failed = [type(attempt(r.sum().backward)).__name__ for r in (*results, results[0])]
            seen.append((failed, x.grad))
        return seen

    same(run)


def test_double_backward_reads_buffers_as_the_call_found_them():
    """Spectral norm writes its vectors, and uses what it wrote: to do so again is another step."""

    def run(wrap):
        torch.manual_seed(0)
        layer = nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))
        f, seen = wrap(layer), []
        for k in range(4):
            x = data(5, 4, k=k, grad=True)
            y = f(x)
            f(data(5, 4, k=k + 9))  # writes again
            (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
            g.square().sum().backward()
            seen += [y, g, grads_of(x, *layer.parameters())]
            layer.zero_grad()
            with torch.no_grad():
                layer.parametrizations.weight.original.copy_(data(3, 4, k=k))
        return seen

    same(run)


def test_writes_into_what_became_an_expanded_tensor():
    state, weight = types.SimpleNamespace(total=torch.zeros(2, 3)), data(2, 3, grad=True)

    @torch.compile
    def add(x):
        return state.total.add_(x)

    @torch.compile
    def collect(x):
        (weight * x).sum().backward()

    for k in range(3):
        add(data(2, 3, k=k))
        collect(data(2, 3, k=k))
    state.total, weight.grad = data(1, 3).expand(2, 3), data(1, 3).expand(2, 3)
    for call in (add, collect, add, collect):
        with pytest.raises(RuntimeError, match="single memory location"):
            call(data(2, 3))


SHOWN = {
    "itself": lambda v: v, "turned": lambda v: v.t(), "flat": lambda v: v.view(-1),
    "all of it": lambda v: v.reshape(-1)[:6].view(v.shape), "a part": lambda v: v[:, 1:],
    "of an expanded": lambda v: v.unsqueeze(0).expand(2, 2, 3)[1],
}  # fmt: skip
KEPT = {
    "itself": lambda v: v * v, "detached": lambda v: v * v.detach(),
    "a view": lambda v: v.view(-1) * v.view(-1).detach(), "what was made of it": lambda v: v.exp(),
}  # fmt: skip


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("shown", SHOWN)
def test_unseen_writes_into_views_of_what_is_kept(shown, kept):
    """Eager keeps the memory that a result shows, and backward sees what was written there."""

    def function(x):
        v = x * 1.0 - 0.25
        return KEPT[kept](v).sum() + SHOWN[shown](v).sum(), SHOWN[shown](v)

    grads = []
    for call in (function, torch.compile(function)):
        for _ in range(3):
            x = torch.arange(6.0).reshape(2, 3).requires_grad_()
            total, last = call(x)
            last.data.mul_(2)
            total.backward()
        grads.append(x.grad)
    assert torch.allclose(*grads)
