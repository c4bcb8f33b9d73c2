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
