"""`torch.func` inside compiled functions: the transforms leave nothing but ops in the graph."""

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
