"""Optimizers that make their state in the first step are recorded at the first call."""

import copy

import pytest
import wengert as torch
from scenarios import Scenarios, attempt, check, data, filled
from wengert import nn, optim

scenario = Scenarios()

STARTING = ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adadelta", "RMSprop", "Rprop", "ASGD")


def made(name="Adam", **options):
    net = filled(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)))
    optimizer = getattr(torch.optim, name)(net.parameters(), **{"lr": 0.05, **options})

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return net, optimizer, step


def observed(net, optimizer):
    return [[p.detach() for p in net.parameters()], optimizer.state_dict()["state"]]


@pytest.mark.parametrize("name", STARTING)
def test_the_first_step_is_the_one_that_is_compiled(name):
    _, optimizer, step = made(name)
    compiled = torch.compile(step)
    compiled(data(6, 4))
    (traces,) = compiled.traces.values()
    assert len(traces) == 1
    kept = [value for of_one in optimizer.state.values() for value in of_one.values()]
    for k in range(3):
        compiled(data(6, 4, k=k))
    assert compiled.traces and not any("warm-up" in event for event in compiled.events)
    assert len(traces) == 1, compiled.explain()
    now = [value for of_one in optimizer.state.values() for value in of_one.values()]
    assert all(a is b for a, b in zip(kept, now, strict=True))  # state is written in place


def closure_of(net, optimizer, x):
    """Named apart from the step, so that nothing in sight of it looks at state."""

    def closure():
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        return loss

    return closure


def test_a_closure_does_not_look_at_state():
    """L-BFGS keeps its history in lists and numbers, which change at each step."""
    found = []
    for wrap in (torch.compile, lambda f: f):
        net = filled(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)))
        optimizer = torch.optim.LBFGS(net.parameters(), max_iter=4)
        closure = wrap(closure_of(net, optimizer, data(6, 4)))
        found.append([optimizer.step(closure) for _ in range(4)])
        if wrap is torch.compile:
            (traces,) = closure.traces.values()
            assert len(traces) == 1, closure.explain()
    torch.testing.assert_close(*found)


class Decaying(torch.optim.SGD):
    def zero_grad(self, set_to_none=True):
        super().zero_grad(set_to_none)
        for p in self.param_groups[0]["params"]:
            p.grad = self.state[p].get("kept", torch.zeros(())) * torch.ones_like(p)


def test_code_of_users_may_look_at_state():
    grads = []
    for wrap in (torch.compile, lambda f: f):
        net = filled(nn.Linear(4, 2))
        optimizer = Decaying(net.parameters(), lr=0.1)
        closure = wrap(closure_of(net, optimizer, data(6, 4)))
        for k in range(4):
            optimizer.state[net.weight]["kept"] = torch.tensor(float(k))
            closure()
            grads.append(net.weight.grad.clone())
    torch.testing.assert_close(grads[:4], grads[4:])


@scenario
def amsgrad_and_decay(wrap):
    net, optimizer, step = made("AdamW", amsgrad=True, weight_decay=0.1)
    f = wrap(step)
    return [f(data(6, 4, k=k)) for k in range(4)], observed(net, optimizer)


@scenario
def state_that_is_loaded_or_dropped_between_calls(wrap):
    net, optimizer, step = made()
    f = wrap(step)
    losses = [f(data(6, 4, k=k)) for k in range(3)]
    saved = copy.deepcopy(optimizer.state_dict())
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    optimizer.load_state_dict(saved)
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    optimizer.state.clear()
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    return losses, observed(net, optimizer)


@scenario
def an_optimizer_that_the_body_makes(wrap):
    w = nn.Parameter(data(3))

    def step(x):
        optimizer = torch.optim.Adam([w], lr=0.1)
        (w * x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        return w.detach().clone()

    f = wrap(step)
    return [f(data(3, k=k)) for k in range(4)]


@scenario
def a_parameter_that_gets_its_first_gradient_later(wrap):
    net, optimizer, _ = made()
    late = nn.Parameter(data(2))
    optimizer.add_param_group({"params": [late]})

    def step(x, both):
        optimizer.zero_grad()
        out = net(x)
        loss = (out * late if both else out).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    f = wrap(step)
    losses = [f(data(6, 4, k=k), both) for k, both in enumerate((False, False, True, True, False))]
    return losses, observed(net, optimizer), late.detach()


@scenario
def two_steps_of_one_optimizer_in_a_call(wrap):
    net, optimizer, step = made("RMSprop", momentum=0.5)

    def twice(x):
        return step(x), step(x + 1)

    f = wrap(twice)
    return [f(data(6, 4, k=k)) for k in range(3)], observed(net, optimizer)


@scenario
def a_body_that_puts_state_of_its_own_beside(wrap):
    net, optimizer, step = made()
    weight = net[0].weight

    def body(x):
        loss = step(x)
        optimizer.state[weight]["last"] = loss.detach()
        return loss

    f = wrap(body)
    losses = [f(data(6, 4, k=k)) for k in range(5)]
    return losses, observed(net, optimizer)


@scenario
def hooks_of_the_step_that_come_and_go(wrap):
    net, optimizer, step = made()
    f, seen, losses = wrap(step), [], []

    def count(optimizer, args, kwargs):
        seen.append(len(losses))

    def damp(optimizer, args, kwargs):
        for p in net.parameters():
            p.grad.mul_(0.5)

    of_all = optim.optimizer.register_optimizer_step_pre_hook
    for register, hook in ((optimizer.register_step_post_hook, count), (of_all, count),
                           (optimizer.register_step_pre_hook, damp), (of_all, damp)):  # fmt: skip
        losses += [f(data(6, 4, k=k)) for k in range(3)]
        with register(hook):
            losses += [f(data(6, 4, k=k)) for k in range(3)]
    return losses, seen, observed(net, optimizer), net[0].weight.grad._version


@scenario
def steps_that_are_replaced(wrap):
    net, optimizer, step = made()
    f, seen, usual = wrap(step), [], optimizer.step
    losses = [f(data(6, 4, k=k)) for k in range(3)]

    def counted(closure=None):
        seen.append(len(losses))
        return usual(closure)

    optimizer.step = counted
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    del optimizer.step
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    optimizer.__class__ = optim.SGD
    optimizer.param_groups[0].update(momentum=0, dampening=0, nesterov=False)
    losses += [f(data(6, 4, k=k)) for k in range(3)]
    return losses, seen, observed(net, optimizer)


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


@pytest.mark.parametrize("name, option, value", [
    ("RMSprop", "momentum", 0.9), ("RMSprop", "centered", True), ("Adam", "amsgrad", True),
])  # fmt: skip
def test_options_that_ask_for_state_which_was_never_made_change_nothing(name, option, value):
    def run(wrap):
        net, optimizer, step = made(name)
        f, found = wrap(step), []
        for _ in range(3):
            f(data(6, 4))
        optimizer.param_groups[0][option] = value
        before = copy.deepcopy(observed(net, optimizer))
        for k in range(2):
            found.append(attempt(f, data(6, 4, k=k)))
            torch.testing.assert_close(observed(net, optimizer), before, rtol=0, atol=0)
            kept = [v for of_one in optimizer.state.values() for v in of_one.values()]
            found.append([t._version for t in (*net.parameters(), *kept)])
        assert isinstance(found[0], KeyError)
        return found

    check(run)


class Users(optim.Optimizer):
    """An optimizer of a user's, which reads its options as any dict."""

    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr, "momentum": 0.5, "decays": (0.9, 0.8), "mode": "a"})
        self.power = 1.0

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                kept = self.state[p].setdefault("mean", torch.zeros_like(p))
                kept.mul_(group["momentum"]).add_(p.grad)
                p.add_(kept, alpha=-group["lr"] * self.power)
                p.mul_(group["decays"][0])
                if group["mode"] == "b":
                    p.add_(1.0)


class Shrinking(optim.SGD):
    """One that adds to the library's."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                p.data.mul_(group["momentum"] + group["lr"])


@pytest.mark.parametrize("make", [
    Users,
    lambda params: Shrinking(params, lr=0.1, momentum=0.5),
    lambda params: optim.Rprop(params, lr=0.1),
    lambda params: optim.Adafactor(params, lr=0.1),
])  # fmt: skip
def test_options_take_effect_whoever_reads_them(make):
    changes = [("lr", 0.2), ("lr", 0.3), ("momentum", 0.7), ("decays", (0.5, 0.4)), ("mode", "b"),
               ("lr", 0.4), ("momentum", 0.1), ("decays", [0.2, 0.3]), ("step_sizes", (0.05, 0.06)),
               ("step_sizes", (0.3, 0.4)), ("d", 3.0), ("beta2_decay", -0.2)]  # fmt: skip

    def run(wrap):
        weight = nn.Parameter(data(3))
        optimizer = make([weight])

        def body(x):
            optimizer.zero_grad()
            (weight * x).sum().backward()
            optimizer.step()
            return weight * optimizer.param_groups[0]["lr"]

        step, found = wrap(body), []
        for name, value in changes:
            for k in range(3):
                found += [step(data(3, k=k)), weight.detach().clone()]
            if name in optimizer.param_groups[0]:
                optimizer.param_groups[0][name] = value
        optimizer.power = 2.0
        return found, step(data(3)), step(data(3))

    check(run)


def test_a_schedule_of_a_users_optimizer_is_two_recordings():
    weight = nn.Parameter(data(3))
    optimizer = Shrinking([weight])

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()

    for k in range(12):
        step(data(3, k=k))
        optimizer.param_groups[0]["lr"] = 0.1 * 0.9**k
    assert step.explain().count("trace of") <= 2


def test_adam_records_what_is_of_its_group_once():
    _, _, step = made()
    compiled = torch.compile(step)
    compiled(data(3, 4))
    # 1 - beta of both betas, and two corrections of each of the four parameters, 1 - beta2**step
    # and, as it divides what is subtracted, beta1**step - 1
    trace = compiled.dump("trace")
    assert trace.count(": f64[] = rsub ") == 2 + 4
    assert trace.count(": f64[] = sub ") == 4


@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_rates_that_are_tensors_may_be_replaced(kind):
    def run(wrap):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 2)
        optimizer = getattr(torch.optim, kind)(model.parameters(), lr=torch.tensor(0.1))

        @wrap
        def step():
            optimizer.zero_grad()
            loss = model(torch.ones(1, 2)).square().sum()
            loss.backward()
            optimizer.step()
            return loss

        found = []
        for rate in (None, None, 0.3, None, 0.02, None):
            if rate is not None:
                optimizer.param_groups[0]["lr"] = torch.tensor(rate)
            found += [step().item(), step().item()]
            optimizer.param_groups[0]["lr"].mul_(0.9)
        return found, step

    found, step = run(torch.compile)
    assert found == pytest.approx(run(lambda f: f)[0], rel=1e-4)
    assert step.explain().count("trace of") == 1


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameters_that_are_given_later_begin_their_state(name):
    """Each layer that thaws has state that the body makes: that is no reason to stop compiling."""

    def run(wrap):
        layers = filled(nn.Sequential(*(nn.Linear(3, 3) for _ in range(6))))
        layers[:5].requires_grad_(False)
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(torch.optim, name)(layers[5].parameters(), lr=1e-3, **options)

        @wrap
        def step(x):
            optimizer.zero_grad()
            loss = layers(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        found = []
        for k in range(5, -1, -1):
            found += [step(data(4, 3)).item() for _ in range(4)]
            if k:
                layers[k - 1].requires_grad_(True)
                optimizer.add_param_group({"params": layers[k - 1].parameters()})
        return found, step

    found, step = run(torch.compile)
    assert found == pytest.approx(run(lambda f: f)[0], rel=1e-4)
    assert "at each call" not in step.explain() and step.explain().count("trace of") == 6
