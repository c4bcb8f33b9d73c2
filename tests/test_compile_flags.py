"""Bodies that change `requires_grad` of tensors from outside; see Note [Flags that change]."""

import pytest
import wengert as torch
from scenarios import Scenarios, check, data, filled, grads_of
from wengert import nn

scenario = Scenarios()


def made():
    net = filled(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)))
    return net, torch.optim.SGD(net.parameters(), lr=0.01)


def energy_step(net, optimizer):
    def step(x):
        x.requires_grad_()
        energy = net(x).sum()
        (force,) = torch.autograd.grad(energy, x, create_graph=True)
        loss = energy.square() + force.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, force.detach()

    return step


@scenario
def derivatives_by_an_argument(wrap):
    net, optimizer = made()
    step, out = wrap(energy_step(net, optimizer)), []
    for k in range(4):
        x = data(4, 3, k=k)
        out += [step(x), x.requires_grad, x.is_leaf, x.grad, grads_of(*net.parameters())]
        x.square().sum().backward()
        out.append(x.grad)
    out.append(step(x))
    return out


@scenario
def frozen_and_thawed(wrap):
    net, optimizer = made()

    @wrap
    def step(x):
        optimizer.zero_grad()
        for p in net.parameters():
            p.requires_grad = False
        shift = torch.zeros(4, 3, requires_grad=True)
        net(x + shift).square().sum().backward()
        for p in net.parameters():
            p.requires_grad = True
        none = [p.grad is None for p in net.parameters()]
        net(x + shift.grad).square().sum().backward()
        optimizer.step()
        return shift.grad, none

    out = []
    for k in range(4):
        out += [step(data(4, 3, k=k)), [p.requires_grad for p in net.parameters()]]
        out.append(grads_of(*net.parameters()))
    return out


@scenario
def left_frozen(wrap):
    net, _ = made()
    weight = net[0].weight

    @wrap
    def step(x):
        weight.requires_grad = False
        loss = net(x).sum()
        loss.backward()
        return loss.detach(), weight.requires_grad

    out = []
    for k in range(6):
        out += [step(data(4, 3, k=k)), weight.requires_grad, grads_of(*net.parameters())]
        weight.requires_grad = k % 2 == 0
    return out


@scenario
def handed_back(wrap):
    @wrap
    def cubes(x):
        x.requires_grad = True
        (x**3).sum().backward()
        return x, x.grad

    out = []
    for k in range(4):
        x = data(3, k=k)
        same, grad = cubes(x)
        out += [same is x, grad is x.grad, grad.clone(), same.requires_grad]
    return out


@scenario
def results_with_history(wrap):
    @wrap
    def cubes(x, y):
        before = x * y
        x.requires_grad = True
        return x**3 * y, before

    out = []
    for k in range(4):
        x, y = data(3, k=k), data(3, k=k + 1, grad=True)
        for result in cubes(x, y):
            result.sum().backward()
            out += [result, grads_of(x, y)]
    return out


@scenario
def beside_branches(wrap):
    @wrap
    def step(x):
        x.requires_grad_()
        loss = x.square().sum()
        if loss > 5:
            loss = loss * 2
        loss.backward()
        return x.grad * 1

    out = []
    for k in range(6):
        x = torch.full((3,), float(k % 4))
        out += [step(x), x.grad, x.requires_grad]
    return out


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_steps_with_flags_are_replayed():
    step = torch.compile(energy_step(*made()))
    for k in range(3):
        step(data(4, 3, k=k))
    assert "replayed 2 times" in step.explain()
    history = torch.compile(lambda x: x.requires_grad_() * 2)
    history(data(3))
    assert "R105" in history.explain()
