"""Memory made and written inside vmap: every example has its own, and gradients follow writes."""

import pytest
import wengert as torch
from wengert.func import grad, hessian, jacrev, vmap

ROWS = torch.arange(1.0, 7).view(2, 3)
MAKERS = [
    lambda x: torch.zeros_like(x).add_(x),
    lambda x: torch.ones_like(x).mul_(x),
    lambda x: torch.empty_like(x).copy_(x),
    lambda x: torch.full_like(x, 2.0).sub_(2).add_(x),
    lambda x: x.new_zeros(3).add_(x),
    lambda x: x.new_ones(3).mul_(x),
    lambda x: x.new_empty(3).copy_(x),
    lambda x: x.new_full((3,), 1.0).mul_(x),
]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_made_after_an_example_is_memory_of_each_example(make):
    assert torch.equal(vmap(make)(ROWS), ROWS)
    assert torch.equal(vmap(vmap(make))(ROWS.expand(2, 2, 3)), ROWS.expand(2, 2, 3))


def test_memory_of_all_examples_takes_no_write_of_one():
    with pytest.raises(RuntimeError, match="vmapped over but `self` not being"):
        vmap(lambda x: torch.zeros(3).copy_(x))(ROWS)


def shifted(x):
    y = torch.zeros_like(x)
    y[1:] = x[:-1]
    return (y * x).sum()


def several(x):
    y = torch.zeros_like(x)
    y[0] = x[1] ** 2
    y[1:] += x[:-1]
    y[2].mul_(x[0])
    return (y * x).sum()


def earlier_view(x):
    y = x * 1
    part = y[1:]
    y.mul_(2)
    return (part * x[1:]).sum()


def old_value_needed(x):
    y = torch.ones_like(x)
    y.mul_(x)
    y.mul_(x)
    return y.sum()


@pytest.mark.parametrize("function", [shifted, several, earlier_view, old_value_needed])
def test_gradients_inside_and_outside_vmap_follow_writes(function):
    wanted = torch.stack([grad(function)(row) for row in ROWS])
    assert torch.equal(vmap(grad(function))(ROWS), wanted)
    assert torch.equal(grad(lambda rows: vmap(function)(rows).sum())(ROWS), wanted)
    rows = ROWS.clone().requires_grad_()
    vmap(function)(rows).sum().backward()
    assert torch.equal(rows.grad, wanted)
    second = torch.stack([hessian(function)(row) for row in ROWS])
    assert torch.equal(vmap(hessian(function))(ROWS), second)


def test_gradients_inside_vmap_as_torch_gives_them():
    assert vmap(grad(shifted))(ROWS).tolist() == [[2, 4, 2], [5, 10, 5]]

    def products(x):
        out = torch.zeros_like(x)
        for i in range(3):
            out[i] = x[: i + 1].prod()
        return out

    assert vmap(jacrev(products))(ROWS)[0].tolist() == [[1, 0, 0], [2, 1, 0], [6, 3, 2]]


def test_outside_gradients_of_operands_see_the_value_before_the_write():
    w = torch.ones(3, requires_grad=True)
    vmap(lambda x: x.clone().mul_(w).sum())(ROWS).sum().backward()
    assert w.grad.tolist() == [5, 7, 9]


def test_a_write_to_what_a_gradient_inside_vmap_needs_is_an_error():
    def spoiled(x):
        y = x.exp()
        y.add_(1)
        return y.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        vmap(grad(spoiled))(ROWS)


def test_what_is_differentiated_inside_vmap_is_not_written_as_it_is():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        vmap(grad(lambda x: x.sin_().sum()))(ROWS.clone())
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being"):
        vmap(grad(lambda x: x[1:].sin_().sum()))(ROWS.clone())


def test_compiled_functions_write_inside_vmap():
    step = torch.compile(lambda rows: vmap(grad(several))(rows))
    for scale in (1, 2, 3):
        assert torch.equal(step(ROWS * scale), vmap(grad(several))(ROWS * scale))
