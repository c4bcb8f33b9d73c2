"""Variances of equal numbers are 0, and those of numbers far from 0 are exact to a few roundings:
Note [Shifted moments]. Eager and compiled."""

import numpy as np
import pytest
import wengert as torch

CALLS = {
    "var": lambda x, dim: x.var(dim),
    "std": lambda x, dim: x.std(dim, keepdim=True),
    "var_mean": lambda x, dim: torch.var_mean(x, dim)[0],
    "std_mean": lambda x, dim: torch.std_mean(x, dim, correction=0)[0],
    "of another op": lambda x, dim: (x * 3).sigmoid().std(dim),
}
SHAPES = [((37, 4), 0), ((4, 37), 1), ((1000,), None), ((7, 3, 9), (0, 2)), ((5, 300, 6), 1),
          ((3, 5), (0, 1))]  # fmt: skip


def both(function):
    """The eager function, then the compiled one: its first call is eager, too."""
    compiled = torch.compile(function)
    return [function, compiled, compiled]


@pytest.mark.parametrize("value", [0.354856, 10000.1, -3.3e-5])
@pytest.mark.parametrize("name", CALLS)
def test_equal_numbers_do_not_vary_and_have_no_gradient(name, value):
    for shape, dim in SHAPES:
        for call in both(lambda x, d=dim: CALLS[name](x, d)):
            x = torch.full(shape, value, requires_grad=True)
            result = call(x)
            assert (result == 0).all()
            result.sum().backward()
            assert (x.grad == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64,
                                   torch.complex128], ids=str)  # fmt: skip
def test_equal_numbers_of_other_dtypes(dtype):
    x = torch.full((300, 7), 0.1, dtype=dtype)
    if x.is_complex():
        x = x * (1 + 3j)
    for call in both(lambda x: torch.var_mean(x, 0)):
        var, mean = call(x)
        assert (var == 0).all() and torch.allclose(mean, x[0])


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e4, -1e6])
@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.T.contiguous().T, lambda x: x.flip(0)])
def test_an_offset_costs_no_digits(layout, offset):
    drawn = np.random.default_rng(0).standard_normal((3000, 5)) * 3
    x = layout(torch.from_numpy((drawn + offset).astype(np.float32)))
    wide = x.double()
    for call in both(lambda x: (x.var(0), x.std((0, 1)))):
        for found, exact in zip(call(x), (wide.var(0), wide.std((0, 1)))):
            assert ((found.double() - exact).abs() <= 16 * 2.0**-23 * exact).all()


def test_an_outlier_that_comes_first():
    x = torch.full((500, 2), 1.0)
    x[0] = 1e7
    for call in both(lambda x: x.var(0)):
        assert torch.allclose(call(x).double(), x.double().var(0), rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_of_nothing_and_of_one():
    for call in both(lambda x: x.var(0)):
        assert call(torch.zeros(0, 3)).isnan().all()
        assert call(torch.zeros(3, 0)).shape == (0,)
        assert call(torch.ones(1, 2)).isnan().all()
    for call in both(lambda x: x.var((0, 1), correction=0)):
        assert call(torch.zeros(0, 3)).isnan() and call(torch.zeros(3, 0)).isnan()
        assert call(torch.ones(1, 1)) == 0
    assert torch.tensor(2.0).var(correction=0) == 0


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_of_sizes_that_change():
    compiled = torch.compile(lambda x: (x.var(0), x.std(1)), dynamic=True)
    for rows in (5, 7, 9, 2, 1, 0, 40):
        x = torch.arange(rows * 3.0).view(rows, 3) + 1e4
        for found, exact in zip(compiled(x), (x.double().var(0), x.double().std(1))):
            torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=0, equal_nan=True)


def test_first_and_second_derivatives():
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((4, 3)) + 5).requires_grad_()
    for name in ("var", "std", "std_mean"):
        for dim in (0, 1, (0, 1)):
            function = lambda x, n=name, d=dim: CALLS[n](x, d)  # noqa: E731
            assert torch.autograd.gradcheck(function, (x,))
            assert torch.autograd.gradgradcheck(function, (x,))
