"""Kernels of single numbers, and numbers that are made beside sums: few launches, the same bits."""

import re

import numpy as np
import pytest
import wengert as torch

OPS = {
    "pow": lambda x, y: x**y,
    "exp": lambda x, y: x.exp() + y,
    "two after each other": lambda x, y: (x.sin() * y).exp(),
    "number": lambda x, y: 0.9**x + y,
    "another type": lambda x, y: x.float().tanh() + y.log(),
}


@pytest.mark.parametrize("count", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("name", OPS)
def test_numbers_side_by_side(name, count):
    """Lanes have what each number has alone; the rest of a vector is nobody's."""
    op = OPS[name]
    xs = [torch.tensor(0.3 + k / 7, dtype=torch.float64) for k in range(count)]
    ys = [torch.tensor(1.5 + k, dtype=torch.float64) for k in range(count)]

    @torch.compile
    def together(xs, ys):
        return [op(x, y) for x, y in zip(xs, ys)]

    alone = torch.compile(op)
    for _ in range(3):
        found = together(xs, ys)
    assert len(re.findall(r"^\d+: ", together.dump("kernels"), re.M)) == 1
    for x, y, result in zip(xs, ys, found):
        assert result.dtype == op(x, y).dtype
        for _ in range(3):
            one = alone(x, y)
        assert result.item() == one.item()
        assert np.isclose(result.item(), op(x, y).item(), rtol=1e-6)


def test_odd_numbers_side_by_side():
    values = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-310, -2.0, 1e300]

    @torch.compile
    def powers(xs):
        return [x**0.3 for x in xs] + [x.exp() for x in xs]

    xs = [torch.tensor(v, dtype=torch.float64) for v in values]
    for _ in range(3):
        found = torch.stack(powers(xs))
    x = torch.stack(xs)
    torch.testing.assert_close(found, torch.cat([x**0.3, x.exp()]), rtol=1e-14, atol=0,
                               equal_nan=True)  # fmt: skip


@pytest.mark.parametrize("shape", [(2, 4), (70, 3), (5, 1), (1, 6), (33, 100)])
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_added_to_sums_is_made_beside_them(shape, dim):
    """As averages of a bias's gradient are: v * beta + (1 - beta) * g * g."""

    @torch.compile
    def update(v, x, beta):
        g = x.sum(dim)
        return v * beta + g * g * (1 - beta), g

    def plain(v, x, beta):
        g = x.sum(dim)
        return v * beta + g * g * (1 - beta), g

    v, x = torch.rand(shape[1 - dim]), torch.rand(shape)
    for _ in range(3):
        found = update(v, x, 0.9)
    for a, b in zip(found, plain(v, x, 0.9)):
        torch.testing.assert_close(a, b)
    listed = re.findall(r"^\d+: (\w+)", update.dump("kernels"), re.M)
    assert len(listed) == 1 or shape[dim] == 1, listed
