"""What compiled calls leave behind is eager's in all that can be seen of tensors."""

import pytest
import wengert as torch
import wengert.nn.functional as F
from alike import differences, facts, outcome
from wengert import nn

BODIES = {}


def body(function):
    BODIES[function.__name__] = function
    return function


@body
def written_thrice(x):
    y = x * 2
    y.add_(1)
    y.mul_(3)
    return F.relu(y, inplace=True)


@body
def written_through_views(x):
    y = x * 2
    y[0] = 5.0
    v = y[1]
    v.add_(1)
    return y, v, y.view(-1), y.t()


@body
def a_view_of_what_was_written(x):
    y = x * 2
    y.add_(1)
    return y[1:]


@body
def filled(x):
    b = torch.zeros(3, 4)
    b[0] = x[0]
    b[1:] = x[1:] * 2
    return b, torch.empty(3).normal_(), torch.empty(2).fill_(1)


@body
def counted_apart(x):
    y = x * 2
    y.add_(1)
    d = y.data
    d.add_(1)
    return y, d, d[0], y.detach(), x.data, x.detach()


@body
def made_leaf(x):
    y = (x * 2).detach()
    y.add_(1)
    y.requires_grad_()
    (y * 2).sum().backward()
    (y * 3).sum().backward()
    return y


@body
def written_again_by_backward(x):
    y = x.exp()
    y.detach()[0].add_(0)
    return y, y * 2


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Seen(Same):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad.view(3, 4) * 2


class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2, x.view(-1), x

    @staticmethod
    def backward(ctx, a, b, c):
        return a * 2 + b.view_as(a) + c


@body
def custom_views_of_the_argument(x):
    z = Same.apply(x)
    return z, z.view(-1), x, Seen.apply(x), Same.apply(x[0])


@body
def custom_views_of_results(x):
    y = x * 2
    z = Same.apply(y)
    return y, z, z[0], Same.apply(z), Seen.apply(y), y, z


@body
def a_custom_view_alone(x):
    return Seen.apply(x * 2)


@body
def several_outputs(x):
    return Both.apply(x), Both.apply(x * 2)


@body
def written_behind_a_custom_view(x):
    y = x.detach() * 2
    z = Same.apply(y)
    y.add_(1)
    z[0].mul_(2)
    return z * 1, y * 1, x * 2


@body
def made_in_no_grad(x):
    with torch.no_grad():
        y = x * 2
        z = y.view(2, 6)
        w = x[0]
    return y, z, w, x.view(-1)


@body
def the_same_view_twice(x):
    y = x * 2
    v, w, d = y[0], x[1], y.detach()[1]
    return v, v, w, [w, d], d, y


@body
def dimensions_of_size_one(x):
    z = x.view(3, 1, 4)
    return (x.t()[None] * 2, z.permute(1, 2, 0).exp(), z.transpose(0, 1) + 1, z.mT.clone(),
            x[:, :1] * 2, x[:1].t() * 2, z.sum(2, keepdim=True).transpose(0, 2).relu())  # fmt: skip


def backward(results):
    def leaf(value):
        if isinstance(value, tuple | list):
            return sum(leaf(v) for v in value)
        return (value * value).sum() if value.requires_grad and not value.is_leaf else 0

    total = leaf(results)
    if isinstance(total, torch.Tensor):
        total.backward()


def rounds(function, grad, count=4):
    """What is seen after some calls, and after backward from the results of each."""
    found = []
    for k in range(count):
        torch.manual_seed(k)
        x = torch.randn(3, 4).requires_grad_(grad)
        results = outcome(lambda x=x: function(x))
        found.append(facts([results, x]))
        found.append(facts([outcome(lambda r=results: backward(r)), results, x]))
    return found


def check(eager, compiled):
    assert len(eager) == len(compiled)
    assert [differences(*pair) for pair in zip(eager, compiled)] == [[]] * len(eager)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_results(name, grad):
    function = BODIES[name]
    check(rounds(function, grad), rounds(torch.compile(function), grad))


def test_what_a_writer_of_data_leaves_uncounted():
    def outside(function):
        x = torch.ones(3)
        for _ in range(3):
            y, d = function(x)
            d.add_(1)
        return facts([x, y, d])

    def body(x):
        y = x * 2
        return y, y.data

    def given(x):
        return x * 2, x.data

    for function in (body, given):
        assert differences(outside(function), outside(torch.compile(function))) == []


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", ["made_in_no_grad", "custom_views_of_results"])
def test_writes_into_views(name, grad):
    def outside(function):
        found = []
        for k in range(3):
            for position in range(4):
                x = torch.full((3, 4), k + 1.0).requires_grad_(grad)
                results = function(x)
                w = torch.ones((), requires_grad=True)
                found += [outcome(lambda t=results[position], w=w: (t.add_(w), None)[1])]
        return found

    function = BODIES[name]
    assert outside(function) == outside(torch.compile(function))


# --- gradients -----------------------------------------------------------------------------------


def several(model, x):
    model.zero_grad()
    for _ in range(3):
        model(x).sum().backward()


def clipped(model, x):
    model.zero_grad()
    (model(x) ** 2).sum().backward()
    return nn.utils.clip_grad_norm_(model.parameters(), 0.1)


def assigned(model, x):
    model.weight.grad = torch.zeros(2, 4)
    model.weight.grad.add_(1)
    (model(x) ** 2).sum().backward()


def handed_out(model, x):
    several(model, x)
    return [p.grad for p in model.parameters()], model.weight.grad.view(-1)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("training", [several, clipped, assigned, handed_out])
def test_gradients(training, keep):
    def run(wrap):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        step, found, kept = wrap(lambda x: training(model, x)), [], []
        for k in range(6):
            out = step(torch.full((3, 4), k + 1.0))
            kept.append([p.grad for p in model.parameters()] if keep else None)
            found.append(facts([out, list(model.parameters()), kept]))
        return found

    check(run(lambda f: f), run(torch.compile))


@pytest.mark.parametrize("training", [several, clipped, assigned, handed_out])
def test_gradients_in_windows(training, monkeypatch):
    monkeypatch.setattr("wengert.bodies.WORTH", 0)

    def run(wrap):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        step, found = wrap(lambda x: (x.sum().item() > 0, x.sum().item(), training(model, x))), []
        for k in range(5):
            out = step(torch.full((3, 4), k + 1.0))
            found.append(facts([out, list(model.parameters())]))
        return found

    check(run(lambda f: f), run(torch.compile))


def test_gradients_that_nobody_holds_are_made_in_place():
    model = nn.Linear(64, 64)
    step = torch.compile(lambda x: several(model, x))
    x = torch.ones(2, 64)
    for _ in range(4):
        step(x)
    pointers = set()
    for _ in range(3):
        step(x)
        pointers.add(model.weight.grad.data_ptr())
        assert model.weight.grad._version == 2
    assert len(pointers) == 1
    model.weight.grad.add_(1)
    step(x)
    assert model.weight.grad._version == 2
    assert model.weight.grad[0, 0] == 6


def test_errors_name_the_version_of_results():
    def body(x):
        y = x.exp()
        y.detach().add_(0)
        return y, y * y

    x = torch.ones(3, requires_grad=True)
    f = torch.compile(body)
    for _ in range(3):
        a, b = f(x)
        a.detach().add_(1)
        with pytest.raises(RuntimeError, match="is at version 2; expected version 1"):
            b.sum().backward()
