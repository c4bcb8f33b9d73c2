"""Compiling never changes meaning: hooks, checkpoints and custom Functions."""

import contextlib
import io

import pytest
import wengert as torch
from scenarios import Scenarios, attempt, check, data, filled, grads_of
from wengert import nn
from wengert.utils.checkpoint import checkpoint

scenario = Scenarios()


@scenario
def module_hooks(wrap):
    m = filled(nn.Linear(3, 2))
    f = wrap(m)
    log, out = [], []
    out.append(f(data(3)))
    out.append(f(data(3)))
    h = m.register_forward_hook(lambda mod, i, o: o * 2)
    out += [f(data(3)), f(data(3))]
    m.register_forward_pre_hook(lambda mod, i: (log.append(len(log)), i)[1])
    out += [f(data(3)), f(data(3))]
    h.remove()
    out += [f(data(3)), f(data(3))]
    m.register_full_backward_hook(lambda mod, gi, go: log.append(go[0].tolist()))
    x = data(3, grad=True)
    f(x).sum().backward()
    f(x).sum().backward()
    return out, log, x.grad


@scenario
def backward_hooks_of_modules_and_nodes(wrap):
    m = filled(nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1)))
    log, out = [], []

    def noted(x):
        y = x.sin()
        y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
        return m(y) if y.requires_grad else y

    f, g = wrap(m), wrap(noted)
    for k in range(9):
        if k == 3:
            handle = m[1].register_full_backward_hook(lambda mod, gi, go: (gi[0] * 3,))
        if k == 5:
            m[0].register_full_backward_pre_hook(lambda mod, go: log.append(go[0].tolist()))
        if k == 7:
            handle.remove()
        for function in (f, g):
            x = data(2, 3, k=k, grad=True)
            function(x).sum().backward()
            out.append(x.grad)
    return out, log


@scenario
def checkpoints(wrap):
    m = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5)))
    f = wrap(lambda x: checkpoint(m, x, use_reentrant=False).sum())
    out = []
    for k in range(4):
        x = data(2, 3, k=k, grad=True)
        y = f(x)
        y.backward()
        out.append((y.detach(), x.grad))
    return out, grads_of(*m.parameters()), torch.rand(1)


@scenario
def checkpoints_around(wrap):
    m = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5)))
    g = wrap(m)
    out = []
    for k in range(4):
        x = data(2, 3, k=k, grad=True)
        y = checkpoint(g, x, use_reentrant=bool(k % 2)).sum()
        y.backward()
        out.append((y.detach(), x.grad))
    return out, grads_of(*m.parameters()), torch.rand(1)


@scenario
def saved_tensor_hooks_inside_a_body_that_needs_python(wrap):
    seen = []

    def pack(t):
        seen.append(t.sum().item())
        return t.detach().numpy().copy()

    def body(x):
        scale = x.sum().item()
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.tensor):
            y = (x * 2).exp()
            z = y * y.sin()
        return z.sum() * scale + len(str(round(scale)))

    f, out = wrap(body), []
    for k in range(4):
        x = data(3, k=k, grad=True)
        y = f(x)
        y.backward()
        out.append((y.detach(), x.grad))
    return out, seen


class Square(torch.autograd.Function):
    log = None

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        Square.log.append("f")
        return x * x * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        Square.log.append("b")
        return g * 2 * x * ctx.k, None


@scenario
def custom_function_with_effects(wrap):
    Square.log = []
    f = wrap(lambda x: Square.apply(x, 3).sum())
    out = []
    for k in range(4):
        x = data(3, k=k, grad=True)
        f(x).backward()
        out.append(x.grad)
    return out, Square.log


class Counting(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Counting.calls += 1
        return g * Counting.calls


@scenario
def custom_function_that_counts(wrap):
    Counting.calls = 0
    f, out = wrap(lambda x: Counting.apply(x).sum()), []
    for k in range(4):
        x = data(3, k=k, grad=True)
        f(x).backward()
        out += [x.grad, Counting.calls]
    return out


class Reversing(torch.autograd.Function):
    """Its result is a view."""

    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return -5 * g.view(3, 1)


@scenario
def custom_function_that_gives_a_view(wrap):
    bodies = [Reversing.apply, lambda x: Reversing.apply(x)[1:], lambda x: Reversing.apply(x * 2),
              lambda x: Reversing.apply(x).exp()]  # fmt: skip
    out = []
    for f in map(wrap, bodies):
        for k in range(3):
            x = data(3, 1, k=k, grad=True)
            y = f(x)
            (y * y).sum().backward()
            out += [y, x.grad]
    return out


class Printing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        print("backward", g.sum().item())
        return g * 2


@scenario
def custom_function_that_prints(wrap):
    buf = io.StringIO()
    f = wrap(lambda x: Printing.apply(x).sum())
    out = []
    with contextlib.redirect_stdout(buf):
        for k in range(4):
            x = data(3, k=k, grad=True)
            y = f(x)
            if k != 1:
                y.backward()
            out.append(x.grad)
    return out, buf.getvalue()


class Materialize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, a, b):
        if a is None:
            return b * 30
        if b is None:
            return a * 20
        return a * 2 + b * 3


@scenario
def custom_function_that_asks_for_none(wrap):
    f = wrap(lambda x: Materialize.apply(x))
    out = []
    for k in range(5):
        x = data(3, k=k, grad=True)
        a, b = f(x)
        [a, b, a + b, b, a][k].sum().backward()
        out.append(x.grad)
    return out


class NeedsInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g * w if ctx.needs_input_grad[0] else None
        gw = g * x * 5 if ctx.needs_input_grad[1] else None
        return gx, gw


@scenario
def custom_function_needs_input(wrap):
    f = wrap(lambda x, w: NeedsInput.apply(x, w).sum())
    out = []
    for a, b in (
        (True, True),
        (True, False),
        (False, True),
        (True, True),
        (False, True),
        (True, False),
    ):
        x, w = data(3, grad=a), data(3, k=2, grad=b)
        f(x, w).backward()
        out.append(grads_of(x, w))
    return out


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, writes=True):
        if writes:
            x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


@scenario
def custom_function_that_writes_its_input(wrap):
    out = []
    for writes in (True, False):
        f = wrap(lambda x, w=writes: Doubled.apply(x, w))
        for _ in range(3):
            leaf, plain = data(3, grad=True), data(3)
            inner = leaf * 1
            results = f(plain), f(inner)
            results[1].sum().backward()
            out.append([*results, plain, plain._version, inner, inner._version, grads_of(leaf)])
    return out


@scenario
def in_place_after_saving(wrap):
    def body(x):
        y = x.exp()
        y.add_(1)
        return y.sum()

    f = wrap(body)
    out = []
    for _ in range(4):
        r = attempt(f(data(3, grad=True)).backward)
        out.append(str(r)[:60])
    return out


@scenario
def hooks_on_results_that_no_gradient_reaches(wrap):
    f = wrap(lambda x, w: ((x * w).sin(), (x + w).exp(), x.sum()))
    log, out = [], []
    for hooks in (contextlib.nullcontext(), torch.autograd.graph.save_on_cpu()):
        for _ in range(3):
            x, w = data(2, grad=True), data(2, k=1, grad=True)
            with hooks:
                a, b, c = f(x, w)
            b.register_hook(lambda g: (log.append(g.tolist()), g * 2)[1])
            a.retain_grad()
            a.sum().backward(retain_graph=True)
            out += [grads_of(x, w, a), list(log)]
            b.sum().backward()
            out += [grads_of(x, w, a), list(log)]
            c.backward()
            out += [grads_of(x, w, a), list(log)]
    return out


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_what_a_function_writes_of_the_bodys_own_is_replayed():
    f = torch.compile(lambda x: Doubled.apply(x * 3) + 1)
    for _ in range(3):
        x = data(3, grad=True)
        f(x).sum().backward()
        assert x.grad.tolist() == [6, 6, 6]
    assert "replayed 2 times" in f.explain()
