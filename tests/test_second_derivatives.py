"""What compiled gradients depend on, as eager's do; see Note [Formal dependence]."""

import pytest
import wengert as torch
from alike import outcome
from custom_functions import Pair, Straight
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
    "layer_norm": lambda x, w, b: F.layer_norm(x, (4,), w[0], b),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w[0], b, training=True),
    "group_norm": lambda x, w, b: F.group_norm(x, 2, w[0], b),
    "two norms": lambda x, w, b: F.layer_norm(x, (4,), w[0], b) + F.group_norm(x, 2, w[1], b),
    "a norm of one with a bias": lambda x, w, b: F.layer_norm(x + b, (4,), w[0], b),
    "a norm after a branch": lambda x, w, b: (
        F.layer_norm(x, (4,), w[0], b) if x.sum() > 0 else w * 2
    ),
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
    return found, [None if g is None else g.round(decimals=3).tolist() for g in second]


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


ABSENT = {
    "of a Function": lambda x, y: Straight.apply(x, y),
    "of a value": lambda x, y: Straight.apply(x * 2, y * 2),
    "and another": lambda x, y: Straight.apply(y, x) + x.sum(),
    "before a Function": lambda x, y: Straight.apply(x, Pair.apply(y, y)[1]) * x,
    "of one of two": lambda x, y: Pair.apply(x, y)[0],
    "after a branch": lambda x, y: Straight.apply(x, y) if x.sum() > 0 else y,
    "inside": lambda x, y: torch.autograd.grad(Straight.apply(x, y).sum(), (x, y),
                                               allow_unused=True)[0] * y,
    "a count": lambda x, y: torch.linalg.vector_norm(x, 0) * y,
    "a distance": lambda x, y: torch.dist(x, y, 0),
    "a sign": lambda x, y: torch.linalg.slogdet(x)[0] * y,
    "a norm": lambda x, y: F.layer_norm(x, (3,), y, y * 2),
    "two results": lambda x, y: (Pair.apply(x, y)[0], Straight.apply(y, x)),
}  # fmt: skip


def absences(function, hooks):
    """Gradients by all ways, and what asking for all of them raises."""
    x = torch.linspace(-1, 2, 9).view(3, 3).sin().requires_grad_()
    y = torch.linspace(1, 2, 3).requires_grad_()

    def results():
        if not hooks:
            made = function(x, y)
        else:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                made = function(x, y)
        return made if isinstance(made, tuple) else (made,)

    asked = []
    for options in ({"allow_unused": True}, {}, {"allow_unused": True, "create_graph": True}):
        for k in (0, -1):
            asked += outcome(lambda k=k, options=options: torch.autograd.grad(
                results()[k].sum(), (x, y), **options))  # fmt: skip
    sum([t.sum() for t in results()]).backward()
    return [(g.requires_grad, g.round(decimals=3).tolist()) if isinstance(g, torch.Tensor) else g
            for g in (*asked, x.grad, y.grad)]  # fmt: skip


@pytest.mark.parametrize("hooks", [False, True])
@pytest.mark.parametrize("name", ABSENT)
def test_there_is_no_gradient_where_eager_has_none(name, hooks):
    compiled = torch.compile(ABSENT[name])
    for _ in range(4):
        assert absences(compiled, hooks) == absences(ABSENT[name], hooks)
