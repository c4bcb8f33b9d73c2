"""Floats in attributes, globals, closures and containers that change from call to call."""

import math
import threading
import types

import pytest
import wengert as torch
from scenarios import Scenarios, attempt, check, data, filled, grads_of
from wengert import nn

scenario = Scenarios()
TEMPERATURE = 1.0


class Options:
    def __init__(self, **values):
        self.__dict__.update(values)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Shared:
    rate = 1.0


def test_a_float_that_changes_is_data():
    """One trace for the first value, and one for all others, wherever it lies."""
    global TEMPERATURE
    options, table, items, slot = Options(a=1.0), {"a": 1.0, "b": [1.0]}, [1.0, 2.0], Slotted(1.0)
    module = filled(nn.Linear(3, 3))
    module.scale = inner = 1.0

    def body(x):
        y = module(x) * module.scale / TEMPERATURE + options.a * slot.value
        return y - table["a"] * table["b"][0] + items[1] ** 2 - inner

    f = torch.compile(body)
    for k in range(20):
        value = 1.0 + 0.25 * k
        options.a = table["a"] = table["b"][0] = items[1] = slot.value = inner = value
        module.scale = TEMPERATURE = value
        torch.testing.assert_close(f(data(2, 3)), body(data(2, 3)))
    assert f.explain().count("trace of") == 2
    assert "replayed 18 times" in f.explain()
    found = (options.a, table["a"], items[1], slot.value, inner, module.scale, TEMPERATURE)
    assert all(type(v) is float and v == value for v in found)


def test_steps_under_a_schedule_of_ones_own():
    """`trainer.lr *= 0.99` between steps of a compiled training step."""
    ran = []

    class Trainer:
        def __init__(self):
            self.w, self.lr, self.decay = data(3, grad=True), 0.1, 0.01

        def step(self, x):
            ran.append(None) if len(ran) > 10**9 else None
            loss = ((self.w * x).sum() - 1) ** 2 + self.decay * self.w.norm()
            (grad,) = torch.autograd.grad(loss, self.w)
            with torch.no_grad():
                self.w -= self.lr * grad
            return loss

    both = Trainer(), Trainer()
    step = torch.compile(both[1].step)
    for k in range(200):
        losses = both[0].step(data(3, k=k)), step(data(3, k=k))
        torch.testing.assert_close(*losses)
        for trainer in both:
            trainer.lr *= 0.99
    torch.testing.assert_close(both[0].w, both[1].w)
    assert step.explain().count("trace of") == 2


@scenario
def python_looks_at_the_value(wrap):
    options, out = Options(a=0.5, b=0.25, kind="x"), []

    def body(x):
        text = f"{options.b:.1f}" if options.a > 1 else "small"
        return x * math.exp(options.a) + options.b, text, options.a * 2, options.b

    f = wrap(body)
    for k in range(8):
        options.a, options.b = 0.5 + 0.3 * k, 0.25 * k
        out.append(f(data(2)))
    return out


@scenario
def branches_on_floats(wrap):
    options, out = Options(a=0.5, b=1.5), []

    def body(x):
        if options.a > 1 and options.b < options.a:
            x = x * options.a
        while x.abs().sum() < 10 * options.b:
            x = x * 2 + options.a
        return x if options.a else -x

    f = wrap(body)
    for k in range(12):
        options.a, options.b = 0.3 * (k % 7), 0.5 + (k % 3)
        out.append(f(data(2) + 1))
    return out


@scenario
def modules_whose_mode_changes_as_well(wrap):
    """The trace for evaluation does not read the momentum, which varies."""
    m, out = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)), []
    f = wrap(m)
    for k in range(14):
        m.train(k % 3 != 0)
        m[0].momentum = 0.1 * (k % 4) + 0.05
        out += [f(data(4, 3, k=k)), m[0].running_mean.clone(), f(data(4, 3, k=k))]
    return out


@scenario
def segments_that_read_them(wrap):
    """Each segment of a tree reads them anew, also in shortcuts."""
    options, module, out = Options(a=0.5), nn.Identity(), []
    module.shift = 0.25

    def body(x):
        y = x * 2 if x.sum() > 0 else x - 1
        y = module(y) + options.a * module.shift
        return y.sin() if y.amax() > 1 else y * options.a

    f = wrap(body)
    for k in range(40):
        options.a, module.shift = 0.5 + k % 5, 0.25 * (k % 3)
        out.append(f(data(3, k=k % 2)))
        out.append(f(data(3, k=k % 2)))
    return out


@scenario
def the_body_changes_them(wrap):
    options, out = Options(a=1.0, seen=0.0), []

    def body(x):
        options.a *= 0.5
        options.seen = options.a + 1
        return x * options.a

    f = wrap(body)
    for k in range(6):
        out.append((f(data(2)), options.a, type(options.seen), options.seen))
        options.a += k
    return out


@scenario
def other_kinds_of_values_come(wrap):
    options, out = Options(a=0.5), []
    f = wrap(lambda x: x * options.a)
    for value in (0.5, 1.5, 2.5, 3, True, 4.5, torch.ones(2), 5.5, math.nan, -0.0, math.inf, 2**40):
        options.a = value
        out.append(f(data(2)))
    options.a = "text"
    out.append(type(attempt(f, data(2))))
    items = [1.0, 2.0]
    f = wrap(lambda x: x * items[0] + items[1])
    for k in range(30):  # freed floats leave their place to others
        items[0] = items[1] + k if k % 4 else k
        out += [f(data(2)), f(data(2))]
    return out


@scenario
def errors_leave_floats_in_place(wrap):
    options, out = Options(a=1.0, b=2.0), []

    def body(x, k):
        y = x / (options.a - options.b)
        if k == 3:
            raise ValueError("stop")
        return y

    f = wrap(body)
    for k in range(6):
        options.a, options.b = 1.0 + k, 2.0 * (k % 4)
        out.append((attempt(f, data(2), k), options.a, type(options.b)))
    return out


@scenario
def classes_and_types(wrap):
    options, out = Options(a=1.0), []

    def typed(x):
        return x * options.a if type(options.a) is float else x

    def isinstanced(x):
        return x * options.a if isinstance(options.a, float) else x

    f, g, h = wrap(typed), wrap(isinstanced), wrap(lambda x: x * Shared.rate)
    for k in range(5):
        options.a = Shared.rate = 1.0 + k
        out.append((f(data(2)), g(data(2)), h(data(2))))
    return out


@scenario
def with_sizes_and_gradients_that_vary(wrap):
    options = Options(a=1.0)
    net = filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh()))
    f, out = wrap(lambda x: (net(x) * options.a).pow(2).mean()), []
    for k in range(9):
        options.a = 1.0 + 0.5 * k
        x = data(2 + k % 4, 3, k=k, grad=k % 2 == 0)
        f(x).backward()
        out.append((x.grad, grads_of(*net.parameters())))
    return out


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_threads_see_their_own_calls():
    options = Options(a=1.0)
    f = torch.compile(lambda x: x * options.a)
    for value in (1.0, 2.0, 3.0):
        options.a = value
        f(torch.ones(3))
    results = []

    def work():
        results.extend(f(torch.ones(3)).tolist() for _ in range(50))

    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert results == [[3.0] * 3] * 150


def test_other_objects_beside_a_float_that_varies():
    thing = types.SimpleNamespace(scale=1.0, rates=(1.0, 2.0), function=torch.sin)
    f = torch.compile(lambda x: thing.function(x) * thing.scale * thing.rates[0])
    x = torch.ones(3)
    for k in range(1, 6):
        thing.scale = float(k)
        if k == 4:
            thing.rates = (5.0, 6.0)
        if k == 5:
            thing.function = torch.cos
        want = thing.function(x) * thing.scale * thing.rates[0]
        assert f(x).tolist() == pytest.approx(want.tolist())


class Signs(torch.optim.Optimizer):
    """An optimizer of a user's own."""

    def __init__(self, parameters, lr=0.1, decay=0.01):
        super().__init__(parameters, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(p.grad.sign(), alpha=-group["lr"])


def test_an_optimizer_of_ones_own_under_a_schedule_is_two_recordings():
    def run(wrap):
        p = torch.ones(3).requires_grad_()
        optimizer = Signs([p])
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x):
            optimizer.zero_grad()
            (p * x).sin().sum().backward()
            optimizer.step()

        f, found = wrap(step), []
        for k in range(8):
            f(torch.full((3,), k + 1.0))
            schedule.step()
            found.append(p.tolist())
        return found, f

    (compiled, f), (eager, _) = run(torch.compile), run(lambda f: f)
    assert compiled == [pytest.approx(row, rel=1e-5) for row in eager]
    assert f.explain().count("trace of") == 2, f.explain()
