"""Whole steps with checkpoints and hooks inside, replayed: backward has the values of its call."""

import pytest
import wengert as torch
from scenarios import data, filled
from wengert import nn
from wengert.autograd.graph import saved_tensors_hooks
from wengert.utils.checkpoint import checkpoint


def layers():
    return filled(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)))


def halved(net, x, reentrant):
    """Hooks that compute with what they are given, results of ops among it."""
    with saved_tensors_hooks(lambda t: (t.half(), t.dtype), lambda pair: pair[0].to(pair[1])):
        return net(x).softmax(-1).exp() * torch.sigmoid(x)


def of_results(net, x, reentrant):
    """Ops whose backward reads their results, and nothing after them."""
    y = checkpoint(lambda x: net(x).tanh().exp(), x, use_reentrant=reentrant)
    return checkpoint(torch.softmax, y, -1, use_reentrant=reentrant)


BODIES = [halved, of_results]


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
    assert not step.refusals and any(t.hits for ts in step.traces.values() for t in ts)
