"""Compiling never changes meaning: training steps, and autograd across the border."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from scenarios import Scenarios, attempt, check, close, data, filled, grads_of, plain
from wengert import nn
from wengert.utils.checkpoint import checkpoint

scenario = Scenarios()


# --- training ------------------------------------------------------------------------------------


def optimizers():
    chosen = []
    for name in ("SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta",
                 "RMSprop", "Rprop", "ASGD", "Adafactor"):  # fmt: skip
        chosen.append((getattr(torch.optim, name), {"lr": 0.02}))
    chosen.append((torch.optim.SGD, {"lr": 0.02, "momentum": 0.9, "nesterov": True}))
    return [*chosen, (matrices_by_muon, {"lr": 1e-4})]  # it computes in bfloat16


def matrices_by_muon(parameters, lr):
    """Muon takes nothing else."""
    return torch.optim.Muon([p for p in parameters if p.ndim == 2], lr)


def train(wrap, make, steps=6, accumulate=1, set_to_none=True, schedule=None, add_group=False):
    net = filled(nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)))
    extra = data(2, k=3, grad=True)
    optimizer = make(net.parameters())
    scheduler = None if schedule is None else schedule(optimizer)

    def step(x, y):
        loss = F.mse_loss(net(x) + extra, y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)
        return loss

    f, losses = wrap(step), []
    pointers = [p.data_ptr() for p in net.parameters()]
    for k in range(steps):
        losses.append(f(data(6, 4, k=k % 2), data(6, 2, k=9)))
        if scheduler is not None:
            scheduler.step()
        if add_group and k == 3:
            optimizer.add_param_group({"params": [extra], "lr": 0.3})
    kept = [p.data_ptr() for p in net.parameters()] == pointers
    return [losses, [p.detach() for p in net.parameters()], extra.detach(), kept,
            [p.grad for p in net.parameters()]], f  # fmt: skip


@pytest.mark.parametrize("kind", optimizers(), ids=lambda k: k[0].__name__)
def test_every_optimizer_under_a_schedule_is_one_trace(kind):
    optimizer, options = kind

    def schedule(o):
        return torch.optim.lr_scheduler.CosineAnnealingLR(o, 8)

    def run(wrap):
        return train(wrap, lambda p: optimizer(p, **options), 8, schedule=schedule)

    want, _ = run(lambda f: f)
    got, compiled = run(torch.compile)
    assert close(plain(got), plain(want))
    text = compiled.explain()
    assert "Python body" not in text and "eagerly" not in text, text
    assert sum(line.startswith("  trace of") for line in text.splitlines()) <= 2, text


def test_complex_parameters_are_updated_through_their_real_views():
    def run(wrap):
        w = nn.Parameter(torch.complex(data(3), data(3, k=1)))
        optimizer = torch.optim.Adam([w], lr=0.05)

        def step():
            loss = (w * w.conj()).real.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        f = wrap(step)
        return [f() for _ in range(6)], torch.view_as_real(w.detach())

    check(run)


@scenario
def gradients_set_to_zero_or_none(wrap):
    return [train(wrap, lambda p: torch.optim.Adam(p, lr=0.05), set_to_none=flag)[0]
            for flag in (False, True)]  # fmt: skip


@scenario
def a_group_added_in_between(wrap):
    return train(wrap, lambda p: torch.optim.SGD(p, lr=0.05), 8, add_group=True)[0]


@scenario
def gradients_accumulated_over_calls(wrap):
    net = filled(nn.Linear(3, 2))
    seen = []

    def forward_backward(x):
        loss = net(x).pow(2).mean()
        loss.backward()
        return loss

    f = wrap(forward_backward)
    for k in range(6):
        seen.append(f(data(4, 3, k=k)))
        seen.append(grads_of(*net.parameters()))
        if k == 3:
            net.zero_grad()
    return seen


@scenario
def schedules_inside_loops(wrap):
    """A body that trains for some steps: the options it changes take effect at once."""
    net = filled(nn.Linear(3, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def epoch(x):
        for _ in range(3):
            optimizer.zero_grad()
            net(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

    f = wrap(epoch)
    for k in range(3):
        f(data(4, 3, k=k))
    return list(net.parameters()), optimizer.param_groups[0]["lr"]


@scenario
def averages_of_weights(wrap):
    net, ema = filled(nn.Linear(3, 2)), filled(nn.Linear(3, 2), 7)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(ema.parameters(), net.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
        return loss

    f = wrap(step)
    return [[f(data(4, 3, k=k)), *(p.detach().clone() for p in ema.parameters())]
            for k in range(4)]  # fmt: skip


# --- autograd across the border ------------------------------------------------------------------


@scenario
def retained_and_higher_order_gradients(wrap):
    w = data(3, k=1, grad=True)
    f, seen = wrap(lambda x: (x * w).tanh() * w), []
    for k in range(3):
        x = data(3, k=k, grad=True)
        y = f(x * 2).sum()
        y.backward(retain_graph=True)
        y.backward()
        seen += [grads_of(x, w), attempt(y.backward)]
        z = f(x).sum()
        (g,) = torch.autograd.grad(z, x, create_graph=True)
        (g.pow(2).sum() + f(g).sum()).backward()
        seen.append(grads_of(x, w))
    return seen


@scenario
def saved_tensor_hooks_checkpoints_and_custom_functions(wrap):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x

    f = wrap(lambda x: Double.apply(x.sin()) + checkpoint(torch.tanh, x, use_reentrant=False))
    seen = []
    for k in range(4):
        x = data(3, k=k, grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), torch.tensor):
            y = f(x * 1)
        y.sum().backward()
        seen += [y, x.grad]
    return seen


@scenario
def grad_modes_inside_and_outside(wrap):
    w = data(3, k=1, grad=True)

    def body(x):
        with torch.no_grad():
            a = x * w
        with torch.enable_grad():
            b = x * w
        return a, b + a, torch.is_grad_enabled(), x.detach() * w

    f, seen = wrap(body), []
    for _ in range(3):
        seen.append(f(data(3)))
        with torch.no_grad():
            seen.append(f(data(3)))
        with torch.inference_mode():
            out = f(data(3))
            seen += [out, [t.is_inference() for t in out if isinstance(t, torch.Tensor)]]
    return seen


@scenario
def leaves_made_and_flags_changed_inside(wrap):
    def body(x):
        leaf = (x * 2).detach().requires_grad_()
        (leaf * leaf).sum().backward()
        return leaf.grad, leaf

    def flips(x):
        x.requires_grad_(True)
        (x * 3).sum().backward()
        return x.grad

    f, g = wrap(body), wrap(flips)
    return [[*f(data(2, k=k)), g(data(2, k=k))] for k in range(4)]


@scenario
def mixed_precision(wrap):
    net = filled(nn.Linear(3, 2))

    def body(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = net(x)
        return y, y.float().sum()

    f, seen = wrap(body), []
    for k in range(3):
        y, s = f(data(2, 3, k=k))
        s.backward()
        seen += [y.float(), s, net.weight.grad.clone()]
    return seen


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)
