"""Views inside and out of compiled functions keep their base alive; that is no leak."""

import wengert as torch


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
