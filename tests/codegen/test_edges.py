"""Borders of rows, written by the kernel that writes the rows."""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F

PADS = [(1, 1), (1, 1, 1, 1), (0, 3, 2, 0), (4, 0), (0, 1), (5, 1, 0, 2), (2, 2, 0, 0, 1, 1),
        (-1, 2, 1, -1), (1, 1, 1, 1, 0, 1)]  # fmt: skip
SHAPES = [(3, 2, 5, 56), (2, 3, 4, 7), (1, 1, 1, 9), (2, 1, 3, 4), (5, 2, 6, 33), (2, 3, 1, 1)]


def compiled(function):
    return torch.compile(function, fullgraph=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("pad", PADS, ids=str)
def test_padding_is_numpys(pad, dtype):
    widths = [(0, 0)] * (4 - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2]))
    assert len(widths) == 4
    for shape in SHAPES:
        x = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)
        cut = x[tuple(slice(-min(0, a), n + min(0, b)) for n, (a, b) in zip(shape, widths))]
        want = np.pad(cut, [(max(0, a), max(0, b)) for a, b in widths], constant_values=1)
        got = compiled(lambda x: F.pad(x, pad, value=1))(torch.tensor(x))
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("threads", [1, 4])
def test_what_is_padded_is_computed_on_the_way(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randn(8, 16, 40, 40)
        f = compiled(lambda x: F.pad(torch.relu(x) * 2, (1, 1, 1, 1), value=-1.0))
        for _ in range(3):
            assert torch.equal(f(x), F.pad(torch.relu(x) * 2, (1, 1, 1, 1), value=-1.0))
    finally:
        torch.set_num_threads(before)


def kernels(function, *inputs):
    f = compiled(function)
    f(*inputs)
    return [k for k in f.dump("kernels").split("\n\n") if not k.startswith("arena")]


def test_sides_have_no_kernels_of_their_own():
    padded = kernels(lambda x: F.pad(x, (1, 2, 1, 0)), torch.randn(4, 3, 20, 20))
    stores = [sum(" = %" in line and "[" in line for line in k.splitlines()) for k in padded]
    assert sorted(stores) == [1, 4]  # the rows above; rows and three elements beside each


def test_wide_borders_and_rows_of_other_loops_have():
    assert len(kernels(lambda x: F.pad(x, (9, 0)), torch.randn(4, 3, 20, 20))) == 2
    turned = kernels(lambda x: F.pad(x.transpose(2, 3), (1, 1)), torch.randn(2, 2, 40, 40))
    assert len(turned) == 3


def test_short_rows_end_without_masks():
    """Rows of 112 are seven vectors of sixteen, not three of 32 and two with masks."""
    f = compiled(lambda x: F.pad(x, (1, 1)))
    f(torch.randn(64, 112))
    assert "masked.store" not in f.dump("llvm")
