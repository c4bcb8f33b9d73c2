"""`torch.func` inside compiled functions: the transforms leave nothing but ops in the graph."""

import contextlib

import pytest
import wengert as torch
from scenarios import data, filled
from wengert import func, nn

W, NET = data(3, 3, k=1), filled(nn.Linear(3, 2))


def per_example(x):
    parameters = {name: p.detach() for name, p in NET.named_parameters()}

    def loss(values, row):
        return func.functional_call(NET, values, (row,)).pow(2).sum()

    return func.vmap(func.grad(loss), in_dims=(None, 0))(parameters, x)


USES = {
    "grad": lambda x: func.grad(lambda t: (t @ W).sin().sum())(x),
    "grad_and_value": lambda x: func.grad_and_value(lambda t: (t * t).sum())(x),
    "vmap": lambda x: func.vmap(lambda row: (row * row).sum() + W.sum())(x),
    "jacrev": lambda x: func.jacrev(lambda t: (t @ W).tanh())(x[0]),
    "jacfwd": lambda x: func.jacfwd(lambda t: (t @ W).tanh())(x[0]),
    "hessian": lambda x: func.hessian(lambda t: (t @ W).tanh().sum())(x[0]),
    "vjp": lambda x: func.vjp(torch.sin, x)[1](x)[0],
    "jvp": lambda x: func.jvp(lambda t: t.sin() @ W, (x,), (x,)),
    "per example": per_example,
    "vmap of products": lambda x: func.vmap(func.grad(lambda r: (r @ W.t()).pow(2).sum()))(x),
}


@pytest.mark.parametrize("use", USES)
def test_transforms_are_compiled(use):
    function, compiled = USES[use], torch.compile(USES[use])
    for k in range(4):
        x = data(4, 3, k=k)
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)
    assert "replayed 3 times" in compiled.explain()


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = filled(nn.Linear(3, 2))

    def forward(self, x):
        return (self.linear(x).tanh() * x.sum()).cumsum(-1)


def drawn(x):
    return nn.functional.dropout(x, 0.5) * x


AROUND = {
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "hessian": lambda f, x: func.hessian(f)(x),
    "rows of hessians": lambda f, x: func.jacrev(func.jacrev(f))(x),
    "columns of hessians": lambda f, x: func.jacfwd(func.jacfwd(f))(x),
    "pull in vmap": lambda f, x: func.vmap(func.vjp(f, x)[1])(data(4, *f(x).shape, k=2)),
    "some results": lambda f, x: func.vmap(func.vjp(lambda t: f(t)[:1], x)[1])(data(4, 1, k=2)),
}


@pytest.mark.parametrize(
    "make", [Wave, lambda: drawn, lambda: torch.sin], ids=["module", "drawn", "sin"]
)
@pytest.mark.parametrize("hooked", [False, True], ids=["", "hooked"])
@pytest.mark.parametrize("around", AROUND)
def test_transforms_around_compiled_functions(around, hooked, make):
    function, x = make(), data(3, k=1)
    compiled = torch.compile(function)
    for _ in range(2):  # there is a trace for what requires grad, so that the transform meets it
        compiled(x.clone().requires_grad_())
    packed = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    for seed in (1, 2):
        torch.manual_seed(seed)
        expected = AROUND[around](function, x)
        torch.manual_seed(seed)
        with packed if hooked else contextlib.nullcontext():
            found = AROUND[around](compiled, x)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_gradients_of_each_example_are_one_trace_for_all_sizes():
    model = nn.Linear(3, 2)

    def loss(weights, x):
        return func.functional_call(model, weights, (x[None],))[0].square().mean()

    def each(x):
        weights = {name: p.detach() for name, p in model.named_parameters()}
        return func.vmap(func.grad(loss), (None, 0))(weights, x)

    compiled = torch.compile(each)
    for size in (5, 6, 7, 9, 5):
        x = data(size, 3, k=size)
        torch.testing.assert_close(compiled(x), each(x))
    assert "symbolic trace" in compiled.explain() and "specialise" not in compiled.explain()
