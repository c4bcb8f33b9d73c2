"""Views inside and out of compiled functions keep their base alive; that is no leak."""

import pytest
import wengert as torch
from alike import differences, facts, outcome


def test_a_view_of_a_computed_tensor_is_returned_and_replayed():
    function = torch.compile(lambda x: (x + 1).view(-1))
    x = torch.ones(2, 2, requires_grad=True)
    for _ in range(3):
        y = function(x)
    assert "replayed 2 times" in function.explain()
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_a_view_that_backward_saved_is_no_leak():
    layer = torch.nn.Linear(4, 4)
    function = torch.compile(lambda x: layer(x + 1))
    for _ in range(3):
        function(torch.ones(2, 3, 4))
    assert "replayed 2 times" in function.explain()


def test_a_view_of_memory_that_nobody_else_sees_is_the_result_itself():
    linear = torch.nn.Linear(3, 4)
    f = torch.compile(lambda x: linear(x))
    for k in range(4):
        x = torch.full((2, 5, 3), float(k), requires_grad=True)
        y = f(x)
        assert torch.equal(y, linear(x))
        (g,) = torch.autograd.grad(y.exp().sum(), x)
        (want,) = torch.autograd.grad(linear(x).exp().sum(), x)
        assert torch.allclose(g, want)
    assert type(y.grad_fn).__name__ == "CompiledFunctionBackward"


def test_views_of_memory_that_is_handed_out_twice_share_it():
    f = torch.compile(lambda x: (lambda y: (y.view(4), y, y.t(), y[0]))(x * 2))
    for k in range(4):
        flat, whole, turned, row = f(torch.full((2, 2), float(k)))
        flat[1] = 7.0
        assert whole[0, 1] == turned[1, 0] == row[1] == 7


def turned_in_place(x):
    y = x * 2
    y.transpose_(0, 1)
    y.add_(1)  # written as it looks now
    row = y[0]
    row.mul_(3)
    return y.unsqueeze_(0) * 2, y, row, (x * 3).unsqueeze(0).squeeze_().t_()


@pytest.mark.parametrize("tracked", [True, False])
def test_shapes_that_change_in_place_are_followed(tracked):
    function = torch.compile(turned_in_place)
    for k in range(3):
        results = []
        for call in (turned_in_place, function):
            x = torch.arange(6.0).add(k).reshape(2, 3).requires_grad_(tracked)
            made = call(x)
            if tracked:
                sum((t * t).sum() for t in made).backward()
            results.append([*made, x.grad])
        for want, got in zip(*results):
            assert (want is None and got is None) or torch.equal(want, got)
            assert want is None or want.squeeze().stride() == got.squeeze().stride()
    assert "replayed 2 times" in function.explain()


def test_the_shape_of_an_argument_may_change_in_place():
    def turn(x):
        x.t_()
        return x * 2

    function, x = torch.compile(turn), torch.ones(2, 3)
    for shape in ((3, 2), (2, 3), (3, 2)):
        assert function(x).shape == x.shape == shape


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_recurrent_layers_are_replayed(kind, batch_first):
    layer = getattr(torch.nn, kind)(3, 4, batch_first=batch_first)
    x = torch.randn(5, 2, 3)

    def loss(x):
        return (layer(x)[0] ** 2).sum()

    compiled = torch.compile(loss)
    for _ in range(3):
        grads = []
        for function in (loss, compiled):
            layer.zero_grad()
            function(x).backward()
            grads.append([p.grad for p in layer.parameters()])
        for want, got in zip(*grads):
            torch.testing.assert_close(got, want)
    assert "replayed 2 times" in compiled.explain()


TURNED = {
    "computed": lambda x: x.t() * 2,
    "copied": lambda x: (x + 1).t().clone(),
    "three dimensions": lambda x: x.unsqueeze(2).expand(2, 3, 4).permute(2, 0, 1) * 2,
    "beside a view": lambda x: (lambda y: (y, y[0]))(x.t() * 2),
    "either side of a branch": lambda x: x.t() + 1 if x.sum() > 6 else x.t() - 1,
    "shown and written": lambda x: (x.t() * 2).add_(1),
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("tracked", [True, False])
def test_results_lie_in_memory_as_eager_results_do(name, tracked):
    compiled = torch.compile(TURNED[name])
    for k in (3, 2, 1, 0):
        seen = []
        for function in (TURNED[name], compiled):
            x = torch.arange(6.0).add(-k).reshape(2, 3).requires_grad_(tracked)
            made = function(x)
            made = made if isinstance(made, tuple) else (made,)
            for y in made:
                y.detach().t().view(-1) if y.ndim == 2 else None  # strides decide that it can
            if tracked:
                sum((y.mul(2) ** 2).sum() for y in made).backward()
                made[0].mul_(3) if len(made) == 1 else None
            seen.append([(y.tolist(), y.stride()) for y in made])
            seen[-1].append(made[0]._is_view() if len(made) == 1 else None)
            seen[-1].append(x.grad.tolist() if tracked else None)
        assert seen[0] == seen[1]
    assert "replayed" in compiled.explain()


PARTS = {
    "two": lambda y: y.chunk(2, -1),
    "beside all of it": lambda y: (y[1:], y),
    "beside what was detached": lambda y: (y[0], y.detach()[1], y.detach()),
}


@pytest.mark.parametrize("name", PARTS)
def test_bases_of_views_whose_backward_ran_have_history(name):
    layer = torch.nn.Linear(4, 4)

    def body(x):
        y = layer(x)
        y.sum().backward()
        return PARTS[name](y)

    compiled = torch.compile(body)
    for k in range(4):
        seen = []
        for run in (body, compiled):
            made = run(torch.full((3, 4), float(k)))
            seen.append(facts(made))
            seen.append(outcome(lambda made=made: made[0]._base.sum().backward()))
        assert differences(seen[0], seen[2]) == []
        assert seen[1] == seen[3]
