"""What compiled gradients depend on, as eager's do; see Note [Formal dependence]."""

import pytest
import wengert as torch
from wengert.nn import functional as F

BODIES = {
    "relu": lambda x, w, b: torch.relu(x),
    "leaky_relu": lambda x, w, b: F.leaky_relu(x),
    "hardtanh": lambda x, w, b: F.hardtanh(x),
    "threshold": lambda x, w, b: F.threshold(x, 0.1, 0.0),
    "max_pool1d": lambda x, w, b: F.max_pool1d(x[None], 2),
    "avg_pool1d": lambda x, w, b: F.avg_pool1d(x[None], 2),
    "linear": lambda x, w, b: F.linear(x, w, b),
    "a layer": lambda x, w, b: torch.relu(F.linear(x, w, b)),
    "two layers": lambda x, w, b: F.linear(torch.relu(F.linear(x, w, b)), w.t()),
    "a bias": lambda x, w, b: torch.relu(x.t()[:, :2] + b[:2]),
    "parts": lambda x, w, b: torch.cat([x, w[:2]]).relu(),
    "a branch": lambda x, w, b: torch.relu(x) if x.sum() > 0 else w * 2,
}


def looks(function):
    """Which gradients have history, and what comes of them: nothing, zeros or more."""
    inputs = [torch.linspace(-1, 2, 8).view(2, 4), torch.linspace(-1, 1, 16).view(4, 4),
              torch.linspace(-0.5, 1, 4)]  # fmt: skip
    for tensor in inputs:
        tensor.requires_grad_()
    first = torch.autograd.grad(function(*inputs).sum(), inputs, create_graph=True,
                                allow_unused=True)  # fmt: skip
    found = [None if g is None else g.requires_grad for g in first]
    totals = [g.sum() for g in first if g is not None and g.requires_grad]
    second = torch.autograd.grad(totals, inputs, allow_unused=True) if totals else []
    return found, [None if g is None else g.tolist() for g in second]


@pytest.mark.parametrize("name", BODIES)
def test_gradients_depend_on_what_eager_says(name):
    compiled = torch.compile(BODIES[name])
    for _ in range(4):
        assert looks(compiled) == looks(BODIES[name])


def test_second_derivatives_of_piecewise_linear_functions_are_zeros():
    """Not an error, that something was not used."""
    compiled = torch.compile(lambda x: torch.relu(x).sum())
    for _ in range(4):
        x = torch.tensor([-1.0, 2.0], requires_grad=True)
        (grad,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        (grad.sum() + x.sum()).backward()
        assert x.grad.tolist() == [1.0, 1.0] and grad.requires_grad
