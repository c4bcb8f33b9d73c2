"""Views made where no history is recorded: leaves, which require grad as their bases do."""

import pytest
import wengert as torch
from alike import differences, facts, outcome

VIEWS = {
    "turned": lambda x: x.t(),
    "a row": lambda x: x[0],
    "a part of a part": lambda x: x.view(-1)[3:],
    "all of it": lambda x: x.view_as(x),
    "one of several": lambda x: x.unbind(1)[1],
    "expanded": lambda x: x.expand(2, 3, 3),
}


def of_an_argument(view, x):
    with torch.no_grad():
        seen = view(x)
    return seen.sum() * x.sin()


def of_a_value(view, x):
    y = x * 2
    with torch.no_grad():
        seen = view(y)
    return seen.exp().sum() * y.sin()


def seen_again(view, x):
    y = x * 2
    with torch.no_grad():
        seen = view(y)
    return y.sin() * seen.view_as(seen).sum(), seen


def without_more(view, x):
    with torch.no_grad():
        seen = view(x)
    return seen * 3


def behind_a_branch(view, x):
    y = x * 2
    with torch.no_grad():
        seen = view(y)
    return (seen * seen).sum() * y if y.sum() > -1e9 else y


def backward_inside(view, x):
    y = x * 2
    with torch.no_grad():
        seen = view(y)
    (seen.sum() * y).sum().backward()
    return seen.grad, seen.sum() * x


BODIES = (of_an_argument, of_a_value, seen_again, without_more, behind_a_branch, backward_inside)


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("body", BODIES)
def test_no_gradients_pass_them(body, name):
    def run(x):
        return body(VIEWS[name], x)

    compiled = torch.compile(run)
    for k in range(5):
        found = []
        for function in (run, compiled):
            x = torch.linspace(-1, 1 + k, 9).view(3, 3).requires_grad_()
            made = function(x)
            made = made if isinstance(made, tuple) else (made,)
            raised = outcome(lambda: sum([(t * t).sum() for t in made]).backward())  # noqa: B023
            found.append(facts([raised, x.grad, *made, *[t.grad for t in made if t.is_leaf]]))
        assert differences(*found) == []


@pytest.mark.parametrize("name", VIEWS)
def test_saved_by_a_function(name):
    """Second derivatives do not pass by what `forward` made of its inputs."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            seen = VIEWS[name](x)
            ctx.save_for_backward(x, seen, y)
            return seen.sum() * y

        @staticmethod
        def backward(ctx, grad):
            x, seen, y = ctx.saved_tensors
            return (grad * y * y).sum() * x, grad * (seen * seen).sum()

    def body(x, y):
        return Scaled.apply(x * 1.5, y).sin()

    compiled = torch.compile(body)
    for k in range(5):
        found = []
        for function in (body, compiled):
            x = torch.linspace(-1, 1 + k, 9).view(3, 3).requires_grad_()
            y = torch.linspace(0, 1, 3).requires_grad_()
            first = torch.autograd.grad(function(x, y).sum(), (x, y), create_graph=True)
            second = torch.autograd.grad(sum([(g * g).sum() for g in first]), (x, y))
            found.append(facts([*first, *second]))
        assert differences(*found) == []
