"""Faults that the sweeps over the catalogue found, each in the small: eager and compiled.

Expected values are torch's.
"""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from graphs import build, check
from wengert.ir.op import TABLE

INF, NAN = float("inf"), float("nan")


def leaf(values):
    made = torch.tensor(values)
    return made.requires_grad_() if made.dtype.is_floating_point else made


def weighted_loss(reduction, ignored):
    return lambda x, target, weight: F.nll_loss(
        x, target, weight.detach(), reduction=reduction, ignore_index=ignored)  # fmt: skip


CALLS = {
    "factors are read in the product's dtype": (
        lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=0.5),
        ([1, 1], [[2, 2]], [[1, 1], [1, 1]]), [[2, 2]]),
    "elu of zeros": (lambda x: F.elu(x, alpha=-0.7), ([0.0, -0.0, -1e-20],), [0.0, -0.0, 7e-21]),
    "a sum begins with 0.0": (lambda x: (x.sum(), x[:1].sum(), x[0].sum(), x[:1].mean()),
                              ([-0.0, -0.0],), [0.0, 0.0, 0.0, 0.0]),
    "a running sum begins with 0.0": (lambda x: x.cumsum(0), ([-0.0, -0.0, 1.0],), [0.0, 0.0, 1.0]),
    "softmax of one infinity": (lambda x: (x.softmax(0), x.log_softmax(0)), (INF,), [NAN, NAN]),
    "batch norm of an infinite mean": (
        lambda x: F.batch_norm(x, torch.tensor([INF]), torch.ones(1), eps=0.0), ([[INF], [1.0]],),
        [[NAN], [-INF]]),
    "a weight of 0 hides no infinity": (
        weighted_loss("none", -100), ([[-INF, 0.5], [1.0, 2.0]], [0, 0], [0.0, 1.0]), [NAN, -0.0]),
    "the infinite weight of an ignored class": (
        weighted_loss("mean", 0), ([[-INF, 0.5], [0.2, 0.3]], [0, 1], [INF, 1.0]), -0.3),
    "distances of no coordinates": (torch.cdist, ([[[], []]], [[[]]]), [[[0.0], [0.0]]]),
    "products of none": (lambda x: x.cumprod(0), ([],), []),
}  # fmt: skip


@pytest.mark.parametrize("what", CALLS)
def test_calls(what, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    function, arguments, expected = CALLS[what]
    compiled = torch.compile(function)
    for call in (function, compiled, compiled, compiled):
        tensors = [leaf(a) for a in arguments]
        results = call(*tensors)
        results = torch.stack(results) if isinstance(results, tuple) else results
        found = results.detach().numpy()
        np.testing.assert_allclose(found, np.array(expected, found.dtype), rtol=1e-6)
        np.testing.assert_array_equal(np.signbit(found[found == 0]),
                                      np.signbit(np.array(expected)[found == 0]))  # fmt: skip
        if results.requires_grad:
            results.sum().backward()


@pytest.mark.parametrize("shape", [(0, 2, 3), (3, 2, 0)])
def test_batch_norm_of_nothing(shape, monkeypatch):
    """Running moments stay as they are, and gradients of parameters are 0."""
    monkeypatch.setenv("WENGERT_STRICT", "1")

    def train(x, mean, var, weight):
        return F.batch_norm(x, mean, var, weight, training=True)

    compiled = torch.compile(train)
    for call in (train, compiled, compiled):
        mean, var, weight = torch.ones(2), torch.full((2,), 2.0), leaf([1.0, 1.0])
        call(torch.zeros(shape, requires_grad=True), mean, var, weight).sum().backward()
        assert (mean.tolist(), var.tolist()) == ([1.0, 1.0], [2.0, 2.0])
        assert weight.grad.tolist() == [0.0, 0.0]


def test_updates_whose_last_size_is_one():
    """All loops were shared by chunks, and none was left inside."""
    target, part = ("float32", 2, 4, 5, 2), ("float32", 2, 4, 5, 1)
    check(build(lambda x, y: x.slice_scatter(y, dim=3, start=1, end=2, step=2), target, part))
    check(build(lambda x, y: x.slice_scatter(y.exp(), dim=3, start=1, end=2), target, part))


@pytest.mark.parametrize("kernel, padding", [((9,), (1,)), ((3,), (0,))])
def test_windows_stay_in_the_input(kernel, padding):
    """A graph that is read from text may ask for any: no kernel looks behind an array."""
    geometry = {"kernel": kernel, "padding": padding, "stride": (1,), "dilation": (1,)}
    with pytest.raises(RuntimeError, match="do not fit"):
        build(lambda x, g: TABLE["conv_weight"](x, g, groups=1, **geometry),
              ("float32", 1, 2, 5), ("float32", 1, 3, 5))  # fmt: skip


@pytest.mark.parametrize("shape", [(5000,), (5000, 8), (70, 3)])
def test_infinities_that_cancel_are_no_missing_numbers(shape):
    """Partial sums that were NaN were left out like elements."""
    x = torch.zeros(shape)
    x[0], x[1] = INF, -INF
    compiled = torch.compile(lambda x: (x.nansum(0), x.abs().nansum(0)))
    for _ in range(2):
        total, size = compiled(x)
        assert total.isnan().all() and (size == INF).all()
    x[-1] = NAN
    x[0] = 1
    assert (compiled(x)[0] == -INF).all()
