"""Tensors of modules and optimizers that a body also finds by names of its own, which change."""

import pytest
import wengert as torch
from wengert import nn

X = torch.tensor([[1.0, 2.0], [-1.0, 0.5]])


class Named(nn.Module):
    """A buffer and a parameter that have other names as well."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(2, 2)
        self.register_buffer("scale", torch.ones(2))
        self.also = self.scale
        self.names = {"weight": self.inner.weight}

    def forward(self, x):
        return self.inner(x) * self.also + self.scale + x @ self.names["weight"]


def attributes(wrap):
    module = Named()
    run = wrap(module)
    for k in range(7):
        if k in (2, 5):
            module.also = torch.full((2,), float(k))
        if k == 4:
            module.names["weight"] = nn.Parameter(torch.full((2, 2), 3.0))
        if k == 6:
            module.also = module.scale
        yield run(X)


def variables(wrap):
    module = Named()
    weight, scale = module.inner.weight, module.scale

    @wrap
    def run(x):
        return x @ weight + module(x) * scale

    for k in range(7):
        if k in (2, 5):
            weight = nn.Parameter(torch.full((2, 2), float(k)))
        if k == 3:
            scale = torch.zeros(2)
        if k == 6:
            weight = module.inner.weight
        yield run(X)


def optimized(wrap):
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([weight], 0.1, momentum=0.9)

    @wrap
    def step(x):
        optimizer.zero_grad()
        loss = (x * weight).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    first = weight
    for k in range(9):
        if k in (3, 6):
            weight = torch.full((2,), float(k), requires_grad=True)
        if k == 8:
            weight = first
        yield step(X)
        yield weight
        yield first
        yield torch.zeros(2) if weight.grad is None else weight.grad


def state_of_an_optimizer(wrap):
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.Adam([weight], 0.1)
    weight.square().sum().backward()
    optimizer.step()
    seen = optimizer.state[weight]["exp_avg"]

    @wrap
    def step(x):
        optimizer.zero_grad()
        (x * weight).square().sum().backward()
        optimizer.step()
        return seen * 2

    for k in range(6):
        if k == 3:
            seen = torch.full((2,), 5.0)
        yield step(X)
        yield weight


@pytest.mark.parametrize("case", [attributes, variables, optimized, state_of_an_optimizer])
def test_other_names_are_looked_up_at_each_call(case):
    plain = [value.tolist() for value in case(lambda function: function)]
    compiled = [value.tolist() for value in case(torch.compile)]
    assert len(plain) == len(compiled)
    for k, (got, want) in enumerate(zip(compiled, plain)):
        assert torch.tensor(got).allclose(torch.tensor(want), rtol=1e-4), k


def test_other_names_that_stay_are_no_other_trace():
    module = Named()
    run = torch.compile(module)
    for _ in range(5):
        run(X)
    assert run.explain().count("trace of") == 1 and "replayed 4 times" in run.explain()
