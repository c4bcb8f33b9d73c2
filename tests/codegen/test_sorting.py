"""Sorting, ranks and searching: compiled code gives eager's bits, natively, for every dtype."""

import numpy as np
import pytest
import wengert as torch

DTYPES = ("bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64").split()  # noqa: SIM905
LINES = [((1,), 0), ((9,), 0), ((700,), 0), ((3, 40), 0), ((5, 150), 1), ((3, 200, 4), 1)]


def drawn(shape, dtype, rng):
    """Values with ties and, of floats, all that orders strangely."""
    values, dtype = rng.integers(-40, 40, shape) / 4, getattr(torch, dtype)
    if dtype.is_floating_point:
        odd = rng.choice([np.nan, -0.0, 0.0, np.inf, -np.inf], shape)
        values = np.where(rng.random(shape) < 0.3, odd, values)
    return torch.tensor(np.abs(values) if dtype is torch.uint8 else values).to(dtype)


def bits(tensor):
    return tensor.contiguous().view(torch.uint8).numpy() if tensor.ndim else tensor.item()


def check(function, *inputs):
    """Compiled as eager, without a host call."""
    compiled = torch.compile(function, fullgraph=True)
    for a, b in zip(compiled(*inputs), function(*inputs), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(bits(a), bits(b))
    assert "host call" not in compiled.dump("kernels")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, dim", LINES)
def test_sorts(dtype, shape, dim):
    x = drawn(shape, dtype, np.random.default_rng(0))
    check(lambda x: (*x.sort(dim), *x.sort(dim, descending=True), x.argsort(dim)), x)


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("shape, dim", LINES[2::3])
def test_ranks(dtype, shape, dim):
    x = drawn(shape, dtype, np.random.default_rng(1))
    n = shape[dim]

    def function(x):
        wanted = sorted({1, (n + 3) // 4, (3 * n + 3) // 4, n})
        found = [x.topk(k, dim, largest) for k in wanted for largest in (True, False)]
        found += [x.kthvalue(k, dim) for k in wanted]
        found += [getattr(x, name)(dim, keepdim=True) for name in ("median", "nanmedian", "mode")]
        return tuple(part for pair in found for part in pair)

    check(function, x)


@pytest.mark.parametrize("dtype", ["int32", "bfloat16", "float64"])
def test_the_median_of_all(dtype):
    x = drawn((4, 9), dtype, np.random.default_rng(2))
    check(lambda x: (x.median(), x.nanmedian()), x)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_nothing_and_single_elements(size):
    function = torch.compile(lambda x, y: (*x.sort(0), *y.sort(), *y.topk(1), *x.topk(size, 0)))
    x, y = torch.ones(size, 0), torch.tensor(2.5)
    assert [tuple(r.shape) for r in function(x, y)] == [(size, 0)] * 2 + [()] * 4 + [(size, 0)] * 2
    assert function(x, y)[2].item() == 2.5


def test_views_are_sorted_where_they_are():
    x = torch.arange(60.0).reshape(5, 12).sin()
    check(lambda x: (*x.t().sort(0), *x[:, ::2].topk(3), *x.flip(1).kthvalue(4)), x)


def test_lines_are_shared_among_threads():
    x = drawn((300, 257), "float32", np.random.default_rng(3))
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 4):
            torch.set_num_threads(threads)
            results.append([bits(r) for r in torch.compile(lambda x: tuple(x.sort(0)))(x)])
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*[r[1] for r in results])
    np.testing.assert_array_equal(*[r[0] for r in results])


def test_gradients_return_to_where_values_came_from():
    x = torch.tensor([[3.0, 1.0, 2.0, 2.0], [0.5, 7.0, -1.0, 7.0]], requires_grad=True)
    weights = torch.arange(1.0, 5.0)

    def loss(x):
        ranked = x.kthvalue(2, 1).values + x.median(1).values * 3 + x.mode(1).values * 5
        return (x.sort(1).values * weights).sum() + x.topk(2, 1).values.prod() + ranked.sum()

    (expected,) = torch.autograd.grad(loss(x), x)
    (got,) = torch.autograd.grad(torch.compile(loss, fullgraph=True)(x), x)
    assert torch.equal(got, expected)


# --- eager ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [600, 70_000])
def test_of_equals_the_first_are_taken(n):
    """Whatever the way: NumPy's partition, its sort, or the kernel of large calls."""
    x = torch.zeros(n)
    x[n // 2] = 1.0
    assert x.topk(4).indices.tolist() == [n // 2, 0, 1, 2]
    assert x.topk(3, largest=False).indices.tolist() == [0, 1, 2]
    assert x.kthvalue(5).indices == 4 and x.median(0).indices == (n - 1) // 2
    assert x.sort(descending=True).indices[:3].tolist() == [n // 2, 0, 1]


# --- searching -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES[1:])
@pytest.mark.parametrize("right", [False, True])
def test_searches(dtype, right):
    rng = np.random.default_rng(4)
    x = drawn((3, 50), dtype, rng)
    lines, values = x.sort(1).values, drawn((3, 17), dtype, rng)

    def function(x, lines, values):
        return (torch.searchsorted(lines, values, right=right),
                torch.searchsorted(x, values, right=right, sorter=x.argsort(1)),
                torch.searchsorted(lines[0], values, right=right, out_int32=True),
                torch.bucketize(values, lines[1], right=right))  # fmt: skip

    check(function, x, lines, values)


def test_searching_passes_by_nan_as_torch_does():
    line = torch.tensor([1.0, 2.0, float("nan")])
    values = torch.tensor([float("nan"), 2.0, 5.0])
    assert torch.searchsorted(line, values, right=True).tolist() == [3, 3, 3]
    assert torch.searchsorted(line, values).tolist() == [3, 1, 3]
    assert torch.searchsorted(torch.tensor([1, 2, 3]), torch.tensor([1.5])).tolist() == [1]
