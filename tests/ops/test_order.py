"""Sorting, order statistics, bins and distinct elements."""

import numpy as np
import pytest
import wengert as torch

NAN = float("nan")


def test_sort_is_stable_and_nan_is_largest():
    x = torch.tensor([2.0, NAN, 1.0, 2.0])
    values, indices = x.sort()
    assert indices.tolist() == [2, 0, 3, 1] and values[:3].tolist() == [1.0, 2.0, 2.0]
    assert x.sort(descending=True).indices.tolist() == [1, 0, 3, 2]
    assert x.argsort().tolist() == [2, 0, 3, 1] and x.msort()[0] == 1.0


@pytest.mark.parametrize("size, k", [(40, 5), (4000, 7)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(size, k, largest):
    x = np.random.default_rng(size).permutation(size).astype(np.float64)
    values, indices = torch.tensor(x).topk(k, largest=largest)
    expected = np.sort(x)[::-1][:k] if largest else np.sort(x)[:k]
    assert np.array_equal(values.numpy(), expected)
    assert np.array_equal(x[indices.numpy()], expected)


def test_medians_modes_and_ranks():
    x = torch.tensor([[1.0, NAN, 2.0], [3.0, 1.0, 1.0]])
    assert x.median(1).indices.tolist() == [1, 2] and x.median().isnan()
    assert x.nanmedian(1).values.tolist() == [1.0, 1.0] and x.nanmedian() == 1.0
    assert torch.tensor([3, 1, 1, 3, 2]).mode() == (1, 2)
    assert x[1].kthvalue(3).values == 3.0
    assert torch.tensor([]).median().isnan()
    y = torch.tensor([2.0, 1.0, 1.0], requires_grad=True)
    y.median().backward()
    assert y.grad.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("interpolation, expected", [
    ("linear", 1.75), ("lower", 1.0), ("higher", 2.0), ("midpoint", 1.5), ("nearest", 2.0),
])  # fmt: skip
def test_quantiles(interpolation, expected):
    x = torch.tensor([3.0, 1.0, 2.0, 0.0, 4.0, NAN])
    assert x[:5].quantile(0.4375, interpolation=interpolation) == expected
    assert x.quantile(0.5).isnan() and x.nanquantile(0.5) == 2.0
    both = torch.stack((x[:5], x[:5] + 1)).quantile(torch.tensor([0.0, 1.0]), dim=1)
    assert both.tolist() == [[0.0, 1.0], [4.0, 5.0]]


def test_running_extrema_take_the_latest():
    values, indices = torch.tensor([1.0, 3.0, 3.0, NAN, 5.0]).cummax(0)
    assert indices.tolist() == [0, 1, 2, 3, 3] and values[2] == 3.0 and values[4].isnan()
    assert torch.tensor([3, 1, 1]).cummin(0).indices.tolist() == [0, 1, 2]
    x = torch.tensor([1000.0, 1001.0], requires_grad=True)
    total = x.logcumsumexp(0)
    total[1].backward()
    assert total[1].item() == pytest.approx(1001.3132617, rel=1e-6)
    assert x.grad.sum().item() == pytest.approx(1, abs=1e-3)


def test_cumprod_gradient_passes_zeros():
    x = torch.tensor([2.0, 0.0, 3.0, 0.0, 5.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1.0, 8.0, 0.0, 0.0, 0.0]


def test_distinct():
    x = torch.tensor([3, 1, 1, 2, 3])
    values, inverse, counts = x.unique(return_inverse=True, return_counts=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == (
        [1, 2, 3], [2, 0, 0, 1, 2], [2, 1, 2])  # fmt: skip
    rows = torch.tensor([[2, 1], [1, 5], [2, 1]])
    assert rows.unique(dim=0).tolist() == [[1, 5], [2, 1]]
    assert x.unique_consecutive(return_counts=True)[1].tolist() == [1, 2, 1, 1]
    assert torch.isin(x, torch.tensor([1, 9])).tolist() == [False, True, True, False, False]
    with pytest.raises(NotImplementedError, match="_unique2"):
        torch.ones(2, requires_grad=True).unique().sum().backward()


def test_bins():
    edges = torch.tensor([1.0, 3.0, 5.0])
    assert torch.bucketize(torch.tensor([0.0, 3.0, 9.0]), edges).tolist() == [0, 1, 3]
    assert torch.searchsorted(edges, torch.tensor([3.0]), right=True).tolist() == [2]
    rng = np.random.default_rng(3)
    lines, wanted = np.sort(rng.standard_normal((4, 9))), rng.standard_normal((4, 6))
    found = torch.searchsorted(torch.tensor(lines), torch.tensor(wanted)).numpy()
    assert all(np.array_equal(f, np.searchsorted(a, b)) for f, a, b in zip(found, lines, wanted))
    assert torch.tensor([1, 3, 3]).bincount(minlength=5).tolist() == [0, 1, 0, 2, 0]
    assert torch.tensor([1.0, 2.0, 2.5, 9.0]).histc(4, 1, 3).tolist() == [1.0, 0.0, 1.0, 1.0]
    hist, edges = torch.tensor([1.0, 2.0, 3.0]).histogram(2, density=True)
    assert hist.tolist() == pytest.approx([1 / 3, 2 / 3]) and edges.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("call, error", [
    (lambda x: x.topk(9), RuntimeError), (lambda x: x.kthvalue(0), RuntimeError),
    (lambda x: x.quantile(1.5), RuntimeError), (lambda x: x[:0].median(0), IndexError),
    (lambda x: torch.complex(x, x).sort(), RuntimeError), (lambda x: x.bincount(), Exception),
    (lambda x: x.max(1.5), TypeError), (lambda x: x[:0].amax(), RuntimeError),
])  # fmt: skip
def test_refusals(call, error):
    with pytest.raises(error):
        call(torch.ones(3))
