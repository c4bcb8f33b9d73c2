"""Running sums, products, extrema and logarithms of sums, natively."""

import numpy as np
import pytest
import wengert as torch
from graphs import build, check

LINES = [((1,), 0), ((37,), 0), ((3, 40), 0), ((3, 40), 1), ((2, 9, 5), 1)]
DTYPES = ("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64").split()  # noqa: SIM905


def drawn(shape, dtype, rng):
    values = rng.integers(0, 5, shape) - (0 if dtype in ("bool", "uint8") else 2.0)
    if getattr(torch, dtype).is_floating_point:
        odd = rng.choice([np.nan, -0.0, np.inf, -np.inf], shape, p=[0.1, 0.5, 0.2, 0.2])
        values = np.where(rng.random(shape) < 0.2, odd, values)
    return torch.tensor(values).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dim", LINES)
def test_running_extrema_are_eager_bits(dtype, shape, dim):
    x = drawn(shape, dtype, np.random.default_rng(0))

    def function(x):
        return (*x.cummax(dim), *x.cummin(dim))

    compiled = torch.compile(function, fullgraph=True)
    for got, expected in zip(compiled(x), function(x), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.view(torch.uint8), expected.view(torch.uint8))
    assert "host call" not in compiled.dump("kernels")


def test_the_latest_of_equals_is_taken_with_its_sign():
    values, indices = torch.tensor([0.0, -0.0, -1.0]).cummax(0)
    assert indices.tolist() == [0, 1, 1] and values.signbit().tolist() == [False, True, True]


@pytest.mark.parametrize("shape, dim", LINES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_running_sums(dtype, shape, dim):
    graph = build(lambda x: (x.cumsum(dim), x.cumprod(dim), x.logcumsumexp(dim)), (dtype, *shape))
    assert not check(graph).host_calls


def test_logarithms_of_nothing_and_of_infinities():
    x = torch.tensor([-np.inf, -np.inf, 1.0, np.inf, 2.0, np.nan, 0.0])
    got = torch.compile(lambda x: x.logcumsumexp(0))(x)
    np.testing.assert_array_equal(got.numpy(), x.logcumsumexp(0).numpy())


def test_gradients():
    x = torch.tensor([[0.5, 2.0, 1.0, 2.0], [3.0, -1.0, 4.0, 0.0]], requires_grad=True)

    def loss(x):
        lines = x.cummax(1).values * 2 + x.cummin(1).values + x.logcumsumexp(1)
        return (lines * torch.arange(1.0, 5.0)).sum()

    (expected,) = torch.autograd.grad(loss(x), x)
    (got,) = torch.autograd.grad(torch.compile(loss)(x), x)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("function", [
    lambda x, i: x.index_fill(1, i, 2.5),
    lambda x, i: x.index_fill(0, i, x[0, 0]),
    lambda x, i: torch.linalg.cross(x, x[:1] + 1, dim=1),
])  # fmt: skip
def test_by_parts(function):
    graph = build(function, ("float32", 4, 3), ("int64", 2))
    assert not check(graph, [np.arange(12, dtype=np.float32).reshape(4, 3), np.array([2, 0])]
                     ).host_calls  # fmt: skip
