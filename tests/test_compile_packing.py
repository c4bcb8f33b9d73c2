"""Compiled calls inside `saved_tensors_hooks` and checkpoints: hooks see what eager saves."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from scenarios import Net, Scenarios, attempt, check, data, filled, grads_of
from wengert import nn
from wengert.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from wengert.utils.checkpoint import checkpoint, checkpoint_sequential

scenario = Scenarios()


def mixed(x, w):
    """Saves inputs, views of inputs, results, views of results, numbers, values inside."""
    hidden = F.linear(x, w).tanh() * 0.5
    gate = hidden.t()[:2].sigmoid()
    return gate, (gate.reshape(-1) * hidden.sum()).sin(), (x * x).softmax(-1)


class Log:
    """Hooks that note what they are called with."""

    def __init__(self, *inputs):
        self.inputs, self.seen = inputs, []

    def pack(self, t):
        known = [k for k, x in enumerate(self.inputs) if t is x]
        self.seen.append(("pack", known, t.detach().clone()))
        return t.detach().clone()

    def unpack(self, packed):
        self.seen.append(("unpack", packed))
        return packed

    def __call__(self):
        return saved_tensors_hooks(self.pack, self.unpack)


@scenario
def hooks_see_each_value_in_order(wrap):
    f, out = wrap(mixed), []
    for k in range(5):
        x, w = data(3, 4, k=k, grad=True), data(5, 4, k=9, grad=k != 3)
        log = Log(x, w)
        with log():
            results = f(x, w)
        sum(r.sum() * n for n, r in enumerate(results, 1)).backward()
        packed = [seen for seen in log.seen if seen[0] == "pack"]
        unpacked = sorted(str(seen[1].shape) for seen in log.seen if seen[0] == "unpack")
        out.append((results, grads_of(x, w), packed, unpacked))
    return out


@scenario
def lossy_hooks_change_gradients_slot_by_slot(wrap):
    f, out = wrap(mixed), []
    for k in range(4):
        x, w = data(3, 4, k=k, grad=True), data(5, 4, k=9, grad=True)
        count = iter(range(100))
        hooks = saved_tensors_hooks(lambda t: (next(count), t.detach()), lambda p: p[1] + p[0] / 20)  # noqa: B023
        with hooks:
            results = f(x, w)
        sum(r.sum() for r in results).backward()
        out.append(grads_of(x, w))
    return out


@scenario
def one_result_goes_backward_at_a_time(wrap):
    f, out = wrap(mixed), []
    for k in range(5):
        x, w = data(3, 4, k=k, grad=True), data(5, 4, k=9, grad=True)
        log = Log()
        with log():
            a, b, c = f(x, w)
        c.sum().backward()
        b.sum().backward(retain_graph=True)
        a.sum().backward()
        out.append((grads_of(x, w), len(log.seen), attempt(b.sum().backward) is None))
    return out


@scenario
def double_backward_through_hooks(wrap):
    f, out = wrap(mixed), []
    for k in range(4):
        x, w = data(3, 4, k=k, grad=True), data(5, 4, k=9, grad=True)
        with saved_tensors_hooks(lambda t: t.detach().double(), lambda t: (t * 1.25).float()):
            y = sum(r.sum() for r in f(x, w))
        first = torch.autograd.grad(y, (x, w), create_graph=True)
        again = torch.autograd.grad(sum((g * g).sum() for g in first), (x, w))
        out.append((first, again))
    return out


@scenario
def hooks_that_come_and_go(wrap):
    f, out = wrap(mixed), []
    for k in range(8):
        x, w = data(3, 4, k=k, grad=True), data(5, 4, k=9, grad=True)
        log, inner = Log(), Log()
        if k % 2:
            with log(), inner():
                y = f(x, w)[1]
        elif k % 3:
            with disable_saved_tensors_hooks("none here"):
                y = f(x, w)[1]
        else:
            with log(), torch.no_grad():
                f(x, w)
            y = f(x, w)[1]
        y.sum().backward()
        out.append((y, grads_of(x, w), len(log.seen), len(inner.seen)))
    return out


@scenario
def values_that_take_no_part(wrap):
    def body(x, w):
        (x * w).exp()
        with torch.no_grad():
            a = (x * w).sin()
        return (x * a).detach(), (x * x).sum()

    f, out = wrap(body), []
    for k in range(4):
        x, w, log = data(3, k=k, grad=True), data(3, k=5, grad=True), Log()
        with log():
            a, b = f(x, w)
        b.backward()
        out.append((a, b, grads_of(x, w), [seen[:2] for seen in log.seen if seen[0] == "pack"]))
    return out


@scenario
def errors_in_hooks_leave_what_eager_leaves(wrap):
    class Stop(Exception):
        pass

    def body(x, steps, drop):
        y = x.exp()
        steps.add_(1)
        y = F.dropout(y, 0.5) * y
        steps.add_(10)
        drop.copy_(y.detach())
        return y.sin().sum()

    f, out = wrap(body), []
    for k in range(10):
        x, steps, drop = data(3, k=k, grad=True), torch.zeros(()), torch.zeros(3)
        calls = []

        def pack(t, k=k, calls=calls):
            calls.append(t.detach().tolist())
            if len(calls) == k:
                raise Stop(f"at {k}")
            return t

        with saved_tensors_hooks(pack, lambda t: t):
            y = attempt(f, x, steps, drop)
        if isinstance(y, torch.Tensor):
            y.backward()
        out.append(
            (str(getattr(y, "data", y)), calls, steps, drop, x.grad, torch.rand(1), steps._version)
        )
    return out


@scenario
def what_is_written_is_packed_as_it_was(wrap):
    def body(x, state):
        y = x * state
        with torch.no_grad():
            state.mul_(2).add_(1)
        return y * state

    f, out = wrap(body), []
    for k in range(4):
        x, state, log = data(3, k=k, grad=True), data(3, k=7), Log()
        for _ in range(2):
            with log():
                y = f(x, state)
            y.sum().backward()
        out.append((y, x.grad, state, log.seen))
    return out


@scenario
def backward_inside_and_branches(wrap):
    def step(x):
        y = (x.exp() * x).sum()
        return torch.autograd.grad(y, x, create_graph=True)[0] * x

    def turn(x):
        y = x.exp()
        return y * x if y.sum() > 3 else y.sin()

    f, g, out = wrap(step), wrap(turn), []
    for k in range(6):
        for function in (f, g):
            x, log = data(3, k=k, grad=True), Log()
            with log():
                y = function(x)
            y.sum().backward()
            out.append((y, x.grad, len(log.seen)))
    return out


@scenario
def checkpoints_around_modules_with_state(wrap):
    net = filled(Net())
    f, out = wrap(net), []
    for k in range(8):
        x = data(5, 4, k=k, grad=True)
        if k == 6:
            net.eval()
        y = checkpoint(f, x, use_reentrant=bool(k % 2), preserve_rng_state=k != 4)
        y.pow(2).sum().backward()
        out.append((y, x.grad, list(net.buffers()), torch.rand(1)))
    return out, grads_of(*net.parameters())


@scenario
def checkpoints_of_compiled_pieces(wrap):
    layers = [filled(nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Dropout(0.3))) for _ in range(4)]
    pieces, out = [wrap(layer) for layer in layers], []
    for k in range(5):
        x = data(2, 4, k=k, grad=True)
        y = checkpoint_sequential(pieces, 2, x, use_reentrant=bool(k % 2))
        loss = y.sum()
        if not k % 2:
            (first,) = torch.autograd.grad(loss, x, create_graph=True)
            loss = (first * first).sum() + loss
        loss.backward()
        out.append((y, x.grad))
    return out, grads_of(*(p for layer in layers for p in layer.parameters())), torch.rand(1)


@scenario
def checkpoints_inside_with_dropout(wrap):
    m = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5)))

    def body(x, reentrant):
        y = checkpoint(m, x, use_reentrant=reentrant)
        return checkpoint(torch.tanh, y, use_reentrant=reentrant).sum()

    f, out = wrap(body), []
    for k in range(8):
        x = data(2, 3, k=k, grad=True)
        y = f(x, bool(k % 2))
        y.backward()
        out.append((y, x.grad, torch.rand(1)))
    return out, grads_of(*m.parameters())


@scenario
def checkpoints_inside_that_do_more_than_compute(wrap):
    net, out = filled(Net()), []

    def body(x, preserve):
        y = checkpoint(net, x, use_reentrant=False)
        return checkpoint(F.dropout, y, use_reentrant=False, preserve_rng_state=preserve).sum()

    def step(x):
        y = checkpoint(net.first, x, use_reentrant=True)
        y.pow(2).sum().backward()
        return y

    f, g = wrap(body), wrap(step)
    for k in range(6):
        x = data(5, 4, k=k, grad=True)
        f(x, k < 3).backward()
        out.append((x.grad, g(data(5, 4, k=k, grad=True)), list(net.buffers()), torch.rand(1)))
    return out, grads_of(*net.parameters())


@scenario
def custom_backwards_that_write(wrap):
    count, w = torch.zeros(()), data(3, grad=True)

    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        @staticmethod
        def backward(ctx, grad):
            count.add_(1)
            return grad * ctx.saved_tensors[0]

    class Nested(Counted):
        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                (w * w).sum().backward()
            return grad * ctx.saved_tensors[0]

    f, out = wrap(lambda x: Counted.apply(x) + Nested.apply(x)), []
    for k in range(5):
        x = data(3, k=k, grad=True)
        f(x).sum().backward()
        out.append((x.grad, count.clone(), grads_of(w)))
    return out


@scenario
def hooks_inside(wrap):
    def copied(x):
        with save_on_cpu():
            y = x.exp()
            z = y * x
        return z.sin()

    def halved(x):
        with saved_tensors_hooks(lambda t: t.detach().half(), lambda t: t.float()):
            return (x.exp() * x).sin()

    def dropped(x):
        with saved_tensors_hooks(lambda t: tuple(t.shape), torch.ones):
            return (x.exp() * x).sin()

    def inner_step(x):
        with save_on_cpu():
            y = (x.exp() * x).sum()
        return torch.autograd.grad(y, x)[0]

    out = []
    for body in (copied, halved, dropped):
        f = wrap(body)
        for k in range(5):
            x = data(3, k=k, grad=True)
            y = f(x)
            y.sum().backward()
            out.append((y, x.grad))
    f = wrap(inner_step)
    return out, [f(data(3, k=k, grad=True)) for k in range(5)]


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_calls_inside_hooks_are_compiled():
    f, net = torch.compile(lambda x: (x.exp() * x).sum()), torch.compile(filled(Net()))
    for k in range(5):
        x = data(3, k=k, grad=True)
        with save_on_cpu():
            y = f(x)
        y.backward()
        checkpoint(net, data(5, 4, k=k, grad=True), use_reentrant=False).sum().backward()
    assert "replayed 4 times" in f.explain()
    assert "replayed 9 times" in net.explain()


def test_sizes_vary_inside_hooks():
    f = torch.compile(lambda x: (x.exp() * x).tanh().sum(0))
    for k in range(2, 8):
        x = data(k, 3, grad=True)
        with save_on_cpu():
            y = f(x)
        y.sum().backward()
    assert "symbolic trace" in f.explain()


def test_a_step_with_a_checkpoint_inside_is_one_trace():
    net = filled(nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Linear(3, 1)))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        checkpoint(net, x, use_reentrant=False).pow(2).mean().backward()
        optimizer.step()

    for k in range(4):
        step(data(2, 3, k=k))
    assert "replayed 3 times" in step.explain()
