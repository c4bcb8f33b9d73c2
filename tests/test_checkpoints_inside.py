"""Whole steps with checkpoints inside are replayed: backward draws the same numbers again."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from scenarios import data, filled
from wengert import nn
from wengert.autograd.graph import saved_tensors_hooks
from wengert.utils.checkpoint import checkpoint, checkpoint_sequential


def layers():
    return filled(nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 3)))


def one(net, x, reentrant):
    return checkpoint(net, x, use_reentrant=reentrant)


def several(net, x, reentrant):
    y = F.dropout(checkpoint(net, x, use_reentrant=reentrant), 0.3)
    return checkpoint(net, y, use_reentrant=reentrant) * torch.rand(3)


def nested(net, x, reentrant):
    def outer(x):
        y = checkpoint(net, F.dropout(x, 0.2), use_reentrant=False)
        return F.dropout(y, 0.4) + torch.randn_like(y)

    return checkpoint(outer, x, use_reentrant=reentrant)


def in_sequence(net, x, reentrant):
    return checkpoint_sequential(net, 2, x, use_reentrant=reentrant)


def with_a_branch(net, x, reentrant):
    y = checkpoint(net, x, use_reentrant=reentrant)
    return y * 2 if y.sum() > 0 else F.dropout(y)


def other_numbers(net, x, reentrant):
    """Draws by probabilities that are computed again."""

    def body(x):
        y = net(x)
        return y * torch.bernoulli(y.sigmoid().detach())

    return checkpoint(body, x, use_reentrant=reentrant)


def not_kept(net, x, reentrant):
    return checkpoint(net, x, use_reentrant=reentrant, preserve_rng_state=False)


def halved(net, x, reentrant):
    """Hooks that compute with what they are given, results of ops among it."""
    with saved_tensors_hooks(lambda t: (t.half(), t.dtype), lambda pair: pair[0].to(pair[1])):
        return net(x).softmax(-1).exp() * torch.sigmoid(x)


def of_results(net, x, reentrant):
    """Ops whose backward reads their results, and nothing after them."""
    y = checkpoint(lambda x: net(x).tanh().exp(), x, use_reentrant=reentrant)
    return checkpoint(torch.softmax, y, -1, use_reentrant=reentrant)


BODIES = [one, several, nested, in_sequence, with_a_branch, other_numbers, not_kept, halved,
          of_results]  # fmt: skip


def trained(body, reentrant, wrap):
    net = layers()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        y = body(net, x, reentrant)
        y.pow(2).mean().backward()
        optimizer.step()
        return y.detach(), x.grad.clone()

    torch.manual_seed(3)
    step, out = wrap(step), []
    for k in range(7):
        out += [*step(data(2 + k // 5, 3, k=k, grad=True)), torch.rand(2)]
    return [*out, *net.parameters()], step


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("body", BODIES)
def test_steps(body, reentrant):
    want, _ = trained(body, reentrant, lambda f: f)
    got, step = trained(body, reentrant, torch.compile)
    for a, b in zip(want, got, strict=True):
        torch.testing.assert_close(b, a)
    if body not in (other_numbers, not_kept):
        assert not step.refusals and any(t.hits for ts in step.traces.values() for t in ts)


HOOKS = {
    "as they are": (lambda t: t, lambda t: t),
    "copied": (lambda t: t.clone(), lambda t: t),
    "halved": (lambda t: t * 0.5, lambda t: t * 2),
}


def penalised(hooks):
    def penalty(x, w):
        with saved_tensors_hooks(*hooks):
            y = (torch.tanh(x * w) * x).exp().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g * g).sum()

    return penalty


def checked_again(x, w):
    y = checkpoint(lambda x: torch.tanh(x * w) * x, x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return (g * g).sum()


BODIES = {name: penalised(hooks) for name, hooks in HOOKS.items()} | {"again": checked_again}


@pytest.mark.parametrize("name", BODIES)
def test_what_is_handed_back_has_its_history(name):
    """Gradients made inside with `create_graph`: those of a result that is computed of them."""
    compiled = torch.compile(BODIES[name])
    for k in range(4):
        found = []
        for function in (BODIES[name], compiled):
            x = torch.tensor([0.5, -1.0, float(k)], requires_grad=True)
            w = torch.tensor([1.0, 0.5, 0.2], requires_grad=True)
            function(x, w).backward()
            found.append((x.grad, w.grad))
        torch.testing.assert_close(*found)
