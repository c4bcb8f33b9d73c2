"""Sums along any dimension are as accurate as pairwise ones: Note [Blocked sums]."""

import math

import numpy as np
import pytest
import wengert as torch
from wengert.ir.ops.totals import BLOCK, SHORT, add_up

F = torch.nn.functional
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52,
           "complex64": 2.0**-23, "complex128": 2.0**-52}  # fmt: skip


def assert_accurate(found, exact, magnitude, count, epsilon=EPSILON["float32"], log=None):
    """Is the error a few roundings per doubling of the terms? Row by row, it is up to `count`."""
    found = np.asarray(found).astype(np.result_type(exact))
    assert found.shape == np.shape(exact)
    bound = epsilon * (math.log2(count) + 2 if log is None else log)
    worst = np.max(np.abs(found - exact) / np.maximum(magnitude, 1e-300), initial=0)
    assert worst <= bound, f"{worst / epsilon:.1f} roundings, {bound / epsilon:.1f} allowed"


def constant(shape):
    """A number that is rounded the same way again and again: the worst of data for a sum."""
    return np.full(shape, 0.1)


def drawn(shape):
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape)


LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "rows apart": lambda x: np.repeat(x, 2, 0)[::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "first slower": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "spread": lambda x: np.broadcast_to(x[..., :1], x.shape),
    "spread rows": lambda x: np.broadcast_to(x[:1], x.shape),
}
SUMS = [((10000, 4), (0,)), ((1000, 4), (0,)), ((129, 3), (0,)), ((1, 5000), (0,)),
        ((7, 5000), (1,)), ((5000, 2), (0, 1)), ((300, 3, 5), (0, 2)), ((3, 500, 4), (1,)),
        ((40, 3, 6, 7), (0, 2, 3)), ((6, 700, 3), (0, 1)), ((9, 5, 800), (0, 2)), ((70, 70), (0,)),
        ((65, 1), (0, 1))]  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("data", [constant, drawn])
def test_sums_of_arrays(data, layout):
    for shape, axes in SUMS:
        x = LAYOUTS[layout](data(shape).astype(np.float32))
        exact = x.sum(axes, dtype=np.float64)
        count = math.prod(shape[d] for d in axes)
        found = add_up(x, axes)
        assert_accurate(found, exact, exact, count)
        assert found.dtype == x.dtype
        kept = add_up(x, axes, True)
        assert np.array_equal(kept, found.reshape(kept.shape))
        assert kept.shape == x.sum(axes, keepdims=True).shape
        if len(axes) == 1:
            assert np.array_equal(add_up(x, axes[0]), found)
            assert np.array_equal(add_up(x, axes[0] - x.ndim), found)
        assert_accurate(add_up(x), x.sum(dtype=np.float64), exact.sum(), x.size)


@pytest.mark.parametrize("rows", [SHORT, SHORT + 1, BLOCK**2 - 1, BLOCK**2, BLOCK**2 + 1, 4099])
def test_every_row_is_added_once(rows):
    x = np.arange(rows * 3, dtype=np.float64).reshape(rows, 3)
    assert np.array_equal(add_up(x, 0), np.add.reduce(x, axis=0))
    lifted = np.ascontiguousarray(np.stack([x, x + 1]))
    assert np.array_equal(add_up(lifted, 1), np.add.reduce(lifted, axis=1))


def test_sums_of_nothing_and_of_other_kinds():
    assert np.array_equal(add_up(np.zeros((0, 500), np.float32), 0), np.zeros(500, np.float32))
    assert add_up(np.zeros((500, 0), np.float32), 0).shape == (0,)
    assert add_up(np.zeros((500, 0, 2), np.float32), (0, 2), True).shape == (1, 0, 1)
    assert add_up(np.ones((500, 3), np.int8), 0).tolist() == [500 - 512] * 3
    assert add_up(np.ones((500, 3), bool), 0).dtype == bool
    assert np.isnan(add_up(np.full((500, 3), np.nan, np.float32), 0)).all()
    assert (add_up(np.full((500, 3), np.inf, np.float32), 0) == np.inf).all()


def test_results_of_row_major_arrays_are_row_major():
    x = drawn((80, 5, 90)).astype(np.float32)
    for axes in ((0,), (1,), (0, 2), (0, 1), (1, 2)):
        assert add_up(x, axes).flags.c_contiguous
        assert add_up(x, axes, True).flags.c_contiguous


@pytest.mark.parametrize("dtype", EPSILON)
@pytest.mark.parametrize("shape, dim", [((5000, 4), 0), ((40, 3, 6, 7), (0, 2, 3)), ((3, 500), 1)])
def test_sums_and_means_of_tensors(shape, dim, dtype):
    x = torch.full(shape, 0.1).to(getattr(torch, dtype))
    if x.is_complex():
        x = x * (1 + 1j)
    exact = x.to(torch.complex128 if x.is_complex() else torch.float64)
    count = math.prod(shape[d] for d in ((dim,) if isinstance(dim, int) else dim))
    log = 1 if dtype in ("float16", "bfloat16") else None  # summed in float32, rounded once
    for name in ("sum", "mean"):
        truth = getattr(exact, name)(dim).numpy()
        found = getattr(x, name)(dim)
        assert found.dtype is x.dtype
        wide = found.to(exact.dtype).numpy()
        assert_accurate(wide, truth, np.abs(truth), count, EPSILON[dtype], log)


CALLS = {
    "var": lambda x: x.var(0),
    "std_mean": lambda x: torch.stack(torch.std_mean(x, 0)),
    "norm": lambda x: x.norm(dim=0),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, dim=0),
    "norm 3": lambda x: torch.linalg.vector_norm(x, 3, dim=0),
    "nansum": lambda x: x.nansum(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "softmax": lambda x: 1 / x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "batch_norm": lambda x: F.batch_norm((x - 1) * 100, None, None, training=True) + 10,
    "addbmm": lambda x: torch.addbmm(torch.zeros((), dtype=x.dtype), x[:, None, :1], x[:, None]),
    "pool": lambda x: F.adaptive_avg_pool2d(x[None, None], (1, 4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_made_of_sums(name):
    x = torch.from_numpy((1 + drawn((3000, 4)) * 1e-2).astype(np.float32))
    exact = CALLS[name](x.double()).numpy()
    assert_accurate(CALLS[name](x).numpy(), exact, np.abs(exact), 3000)


@pytest.mark.parametrize("layer", [lambda x, b: x + b, lambda x, b: F.linear(x, torch.eye(4), b),
                                   lambda x, b: F.conv1d(x.T[None], torch.ones(4, 4, 1), b),
                                   lambda x, b: F.layer_norm(x, (4,), b + 1, b)])  # fmt: skip
def test_gradients_of_what_is_broadcast(layer):
    x = torch.from_numpy(drawn((4000, 4)).astype(np.float32))
    found = []
    for dtype in (torch.float32, torch.float64):
        bias = torch.zeros(4, dtype=dtype, requires_grad=True)
        try:
            torch.set_default_dtype(dtype)
            y = layer(x.to(dtype), bias)
        finally:
            torch.set_default_dtype(torch.float32)
        y.backward(torch.full_like(y, 0.1))
        found.append(bias.grad.numpy())
    assert_accurate(found[0], found[1] * np.float32(0.1) / 0.1, np.abs(found[1]), 4000)
