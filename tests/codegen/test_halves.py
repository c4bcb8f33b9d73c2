"""What has kernels for float32 has them for 16-bit floats: widened before, rounded once after."""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from graphs import build, check

HALVES = ("float16", "bfloat16")
CASES = {
    "product": (lambda a, b: a @ b, [(7, 33), (33, 5)]),
    "packed product": (lambda a, b: a @ b, [(70, 300), (300, 90)]),
    "transposed": (lambda a, b: a.t() @ b.t(), [(33, 7), (5, 33)]),
    "batch": (lambda a, b: a @ b, [(3, 4, 6), (3, 6, 5)]),
    "vectors": (lambda a, b: (a @ b[0], b @ a.t()), [(4, 6), (5, 6)]),
    "tail": (lambda a, b, c: torch.relu(a @ b + c), [(9, 20), (20, 11), (11,)]),
    "convolution": (lambda x, w, b: F.conv2d(x, w, b, padding=1),
                    [(2, 3, 8, 7), (4, 3, 3, 3), (4,)]),
    "groups": (lambda x, w: F.conv1d(x, w, stride=2, groups=4), [(2, 4, 9), (4, 1, 3)]),
    "transposed convolution": (lambda x, w: F.conv_transpose2d(x, w), [(1, 2, 4, 5), (2, 3, 3, 3)]),
    "running sum": (lambda x: (x.cumsum(0), x.cumprod(1)), [(5, 6)]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("case", CASES)
def test_native(case, dtype):
    function, shapes = CASES[case]
    assert not check(build(function, *((dtype, *s) for s in shapes))).host_calls


@pytest.mark.parametrize("dtype", HALVES)
def test_sums_are_rounded_once(dtype):
    """256 + 1 is not a bfloat16, 2048 + 1 not a float16: rounded on the way, sums would stall."""
    ones = torch.ones(1, 5000, dtype=getattr(torch, dtype))
    product = torch.compile(lambda a: a @ a.t())(ones)
    assert product.item() == torch.tensor(5000.0).to(product.dtype).item()


@pytest.mark.parametrize("dtype", HALVES)
def test_gradients(dtype):
    rng = np.random.default_rng(0)
    x, w = (torch.tensor(rng.standard_normal(s)).to(getattr(torch, dtype)).requires_grad_()
            for s in ((2, 3, 6, 5), (4, 3, 3, 3)))  # fmt: skip

    def loss(x, w):
        maps = F.conv2d(x, w, padding=1)
        return (maps.flatten(2) @ maps.flatten(2).mT).tanh().sum()

    expected = torch.autograd.grad(loss(x, w), (x, w))
    for got, want in zip(torch.autograd.grad(torch.compile(loss)(x, w), (x, w)), expected):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got.float(), want.float(), rtol=2e-2, atol=2e-2)
