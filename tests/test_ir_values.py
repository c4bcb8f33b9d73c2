"""Rules that look at values in eager execution must not freeze what they saw into a graph."""

import pytest
import wengert as torch


@pytest.mark.parametrize("product", [torch.prod, lambda x: torch.cumprod(x, 0).sum()])
def test_zeros_that_come_after_recording(product):
    def slopes(x):
        return torch.autograd.grad(product(x), x)[0]

    compiled = torch.compile(slopes)
    compiled(torch.tensor([1.0, 2.0, 3.0], requires_grad=True))
    x = torch.tensor([1.0, 0.0, 3.0], requires_grad=True)
    assert compiled(x).tolist() == slopes(x).tolist()
    assert "ran eagerly" not in compiled.explain()


def test_second_order_of_a_compiled_cumprod_at_zeros():
    def curvature(function):
        x = torch.tensor([1.5, 0.0, 2.0, 0.0], dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(function(x), x, create_graph=True)
        return torch.autograd.grad((first * first.detach().cos()).sum(), x)[0]

    def function(x):
        return (x.cumprod(0) * torch.arange(1.0, 5.0, dtype=torch.float64)).sum()

    torch.testing.assert_close(curvature(torch.compile(function)), curvature(function))
