"""Compiled sums are as accurate as pairwise ones in every form: Note [Cascaded sums]."""

import math

import numpy as np
import pytest
import wengert as torch
from wengert.codegen.cascade import BLOCK, chained, steps

F = torch.nn.functional
EPSILON = {torch.float32: 2.0**-23, torch.float64: 2.0**-52}

# What is summed, of which shape, and over how many elements.
SUMS = {
    "column": (lambda x: x.sum(0), (1000, 4), 1000),
    "column without blocks": (lambda x: x.sum(0), (2 * BLOCK, 9), 2 * BLOCK),
    "column, a block too many": (lambda x: x.sum(0), (2 * BLOCK + 1, 9), 2 * BLOCK + 1),
    "column, no multiple": (lambda x: x.sum(0), (4099, 67), 4099),
    "column in pieces": (lambda x: x.sum(0), (40000, 33), 40000),
    "middle": (lambda x: x.sum(1), (10, 500, 7), 500),
    "row": (lambda x: x.sum(1), (3, 4099), 4099),
    "long row": (lambda x: x.sum(1), (2, 100003), 100003),
    "all": (lambda x: x.sum(), (1000003,), 1000003),
    "short rows of an image": (lambda x: x.sum((0, 2, 3)), (2000, 3, 2, 2), 8000),
    "images": (lambda x: x.sum((0, 2, 3)), (500, 16, 3, 3), 4500),
    "two loops, columns": (lambda x: x[:, ::2].sum((0, 1)), (300, 20, 30), 3000),
    "three loops, columns": (lambda x: x[:, ::2, ::2].sum((0, 1, 2)), (50, 20, 12, 30), 3000),
    "short loop inside": (lambda x: x[:, ::2].sum((0, 1)), (900, 6, 40), 2700),
    "rows apart": (lambda x: x[:, :3].sum(), (3000, 300), 9000),
    "turned": (lambda x: x.transpose(1, 2).sum((0, 2)), (300, 20, 30), 6000),
    "backwards": (lambda x: x.flip(0).sum(0), (1000, 5), 1000),
    "kept": (lambda x: x.sum((0, 2), keepdim=True), (60, 5, 70), 4200),
    "heavy": (lambda x: (x.lgamma().exp() + x.digamma() * 0).sum(1), (4, 5000), 5000),
    "heavy columns": (lambda x: (x.lgamma().exp() + x.digamma() * 0).sum(0), (3000, 20), 3000),
    "indexed": (lambda x: x[:, torch.arange(5000)].sum(1), (4, 5000), 5000),
    "many": (lambda x: torch.stack([(x * k).sum(0) for k in (1, 3, 5, 7, 11)]), (9000, 40), 9000),
    "tallied": (lambda x: (x / x.sum(1, keepdim=True)).sum(0), (20000, 300), 20000),
    "mean": (lambda x: x.mean(0), (10000, 4), 10000),
    "norm": (lambda x: x.norm(dim=0), (3000, 5), 3000),
    "softmax": (lambda x: x.softmax(0), (3000, 5), 3000),
    "nothing": (lambda x: x.sum(0), (0, 5), 1),
}


def compiled_twice(function, *arguments):
    compiled = torch.compile(function)
    compiled(*arguments)  # by eager
    return compiled(*arguments)


def assert_accurate(found, exact, count, epsilon):
    bound = epsilon * (math.log2(count) + 2)
    found, exact = found.double().numpy(), exact.numpy()
    assert found.shape == exact.shape
    worst = np.max(np.abs(found / np.where(exact == 0, 1, exact) - (exact != 0)), initial=0)
    assert worst <= bound, f"{worst / epsilon:.1f} roundings, {bound / epsilon:.1f} allowed"


@pytest.mark.parametrize("dtype", EPSILON, ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums(name, dtype):
    function, shape, count = SUMS[name]
    constant = torch.full(shape, 0.1, dtype=dtype)
    numbers = torch.from_numpy(np.random.default_rng(0).uniform(0.5, 1.5, shape)).to(dtype)
    for x in (constant, numbers):
        # of doubles eager, which has another order and bounds of its own, is the truth
        exact = function(x.double())
        bound = EPSILON[dtype] * (2 if dtype is torch.float64 else 1)
        assert_accurate(compiled_twice(function, x), exact, count, bound)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape, dim", [((5000, 4), 0), ((3, 4000 + 61), 1), ((900, 3, 5), (0, 2))])
def test_short_floats_are_summed_in_float32(shape, dim, dtype):
    x = torch.full(shape, 0.1).to(dtype)
    exact = x.double().sum(dim)
    count = x.numel() / exact.numel()
    wide = compiled_twice(lambda x: x.float().sum(dim), x)
    assert_accurate(wide, exact, count, EPSILON[torch.float32])
    assert torch.equal(compiled_twice(lambda x: x.sum(dim), x), exact.to(dtype))


@pytest.mark.parametrize("shape", [(2000, 5), (64, 16, 8, 8)])
def test_statistics_of_a_batch_and_gradients_of_a_bias(shape):
    def step(x, w, b, g):
        y = F.batch_norm(x, None, None, w, b, training=True)
        return torch.autograd.grad(y, (w, b), g)

    x = torch.from_numpy(np.random.default_rng(1).uniform(0.5, 1.5, shape))
    w, b = (torch.ones(shape[1], dtype=torch.float64, requires_grad=True) for _ in range(2))
    g = 0.1 + x * 0.01
    exact = step(x, w, b, g)
    narrow = [t.detach().float() for t in (x, w, b, g)]
    found = compiled_twice(step, narrow[0], *(t.requires_grad_() for t in narrow[1:3]), narrow[3])
    count = x.numel() / shape[1]
    assert_accurate(found[1], exact[1], count, EPSILON[torch.float32])
    assert (found[0].double() - exact[0]).abs().max() < 1e-6 * g.sum()


@pytest.mark.parametrize("name", ["column in pieces", "all", "tallied", "images", "turned"])
def test_bits_do_not_depend_on_threads(name):
    function, shape, _ = SUMS[name]
    x = torch.from_numpy(np.random.default_rng(2).standard_normal(shape).astype(np.float32))
    before, found = torch.get_num_threads(), []
    compiled = torch.compile(function)
    compiled(x)
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append(compiled(x))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_how_loops_are_cut():
    assert steps(2 * BLOCK) == []
    assert steps(2 * BLOCK + 1) == [BLOCK]
    assert steps(2 * BLOCK**2 + 1) == [BLOCK**2, BLOCK]
    assert chained([5, 6]) == [[], []]
    assert chained([100, 4]) == [[BLOCK // 4], []]
    assert chained([3, 100]) == [[], [BLOCK]]
    assert chained([100, 30]) == [[BLOCK, 1], []]
    assert chained([100, 100]) == [[BLOCK * 2, 2], [BLOCK]]


@pytest.mark.parametrize("sizes", [(7,), (100,), (33, 2), (1000, 3), (40, 50), (5, 4, 300)])
def test_no_sum_has_many_terms(sizes):
    """Counts the terms that each loop adds one after the other."""
    cuts, chain = chained(sizes), 1
    for turns, cut in zip(reversed(sizes), reversed(cuts)):
        chain *= turns if not cut else min(turns, cut[-1])
        for step, outer in zip(reversed(cut), [*reversed(cut[:-1]), turns]):
            assert chain <= 2 * BLOCK
            chain = -(-outer // step)
    assert chain <= 2 * BLOCK
