"""Compiling never changes meaning: modules and optimizers that change between calls."""

import copy
import gc
import weakref

import pytest
import wengert as torch
from scenarios import Scenarios, check, data, filled, grads_of
from wengert import nn

scenario = Scenarios()


def trained(module, optimizer):
    """A training step for tests: its loss and the module's parameters after it."""

    def step(x):
        optimizer.zero_grad()
        loss = module(x).pow(2).sum()
        loss.backward()
        optimizer.step()
        return loss

    return step


@scenario
def modules_added_and_exchanged(wrap):
    m = filled(nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    f = wrap(m)
    changes = {
        1: lambda: m.__setitem__(1, nn.ReLU()),
        2: lambda: m.append(nn.Sigmoid()),
        3: lambda: m.insert(1, nn.Softplus()),
        4: lambda: m._modules.update({"1": nn.Tanh()}),
        5: lambda: m[0]._parameters.update(bias=None),
        6: lambda: m.pop(2),
    }
    seen = []
    for k in range(8):
        seen.append(f(data(3, k=k)))
        changes.get(k, lambda: None)()
    return seen


@scenario
def buffers_written_to_the_table(wrap):
    m = nn.BatchNorm1d(3)
    f = wrap(m)
    seen = []
    for k in range(4):
        seen.append(f(data(5, 3, k=k)))
        m._buffers["running_mean"] = torch.full((3,), float(k))
    return seen, list(m.buffers())


@scenario
def optimizers_loaded_and_emptied(wrap):
    torch.manual_seed(0)
    m = nn.Linear(3, 1)
    o = torch.optim.Adam(m.parameters(), lr=0.1)
    f = wrap(trained(m, o))
    seen, kept = [], None
    for k in range(10):
        seen.append(f(data(2, 3, k=k)).detach())
        if k == 3:
            kept = copy.deepcopy((m.state_dict(), o.state_dict()))
        if k == 6:
            m.load_state_dict(kept[0])
            o.load_state_dict(kept[1])
        if k == 8:
            o.state.clear()
    return seen, list(m.parameters()), [list(s.values()) for s in o.state.values()]


@scenario
def steps_that_take_gradients_away(wrap):
    torch.manual_seed(0)
    m = nn.Linear(3, 1)
    o = torch.optim.Adam(m.parameters(), lr=0.1)

    def collect(x):
        loss = m(x).pow(2).sum() / 4
        loss.backward()
        return loss

    def update():
        o.step()
        o.zero_grad()

    f, g = wrap(collect), wrap(update)
    seen = []
    for k in range(16):
        seen.append((f(data(2, 3, k=k)).detach(), grads_of(*m.parameters())))
        if k % 4 == 3:
            g()
    return seen, list(m.parameters())


@scenario
def objects_with_attributes_of_their_own_making(wrap):
    class Table:
        def __init__(self):
            self.scale, self.asked = 2.0, []

        def __getattr__(self, name):
            self.asked.append(name)
            return {"twice": self.scale * 2}[name]

    table = Table()
    f = wrap(lambda x: x * table.twice)
    seen = []
    for k in range(6):
        seen.append(f(data(3, k=k)))
        table.scale += k // 2
    return seen, set(table.asked)


@scenario
def eager_parts_on_both_sides(wrap):
    f, g = wrap(lambda x: x.tanh()), wrap(lambda x: (x * x).sum())
    seen = []
    for k in range(4):
        x = data(3, k=k, grad=True)
        a = x * 2
        d = g((f(a) + a).exp())
        (d * 2).backward()
        seen.append((d, x.grad))
    return seen


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_recording_keeps_no_argument_alive():
    f = torch.compile(lambda x: (x * 2).exp())
    for _ in range(3):
        x = data(3, grad=True)
        seen = weakref.ref(x)
        f(x)
        del x
        gc.collect()
        assert seen() is None
