"""Convolutions of sizes where runs are short and many: as eager ones, for any thread count."""

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F


def gradients(function, x, w, v):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    y = function(x, w)
    y.backward(v)
    return [t.detach().numpy() for t in (y, x.grad, w.grad)]


@pytest.mark.parametrize("size, groups, stride, padding, dilation", [
    (14, 1, 1, 0, 1), (28, 1, 1, 2, 1), (40, 1, 1, 1, 1), (28, 2, 1, 1, 1), (21, 2, 2, 2, 2),
    (28, 4, 1, 1, 1),
])  # fmt: skip
def test_as_eager_for_any_thread_count(size, groups, stride, padding, dilation):
    torch.manual_seed(0)
    x, w = torch.randn(24, 4, size, size), torch.randn(4, 4 // groups, 3, 3)

    def convolve(x, w):
        return F.conv2d(x, w, None, stride, padding, dilation, groups)

    v = torch.randn(*convolve(x, w).shape)
    compiled, threads = torch.compile(convolve), torch.get_num_threads()
    gradients(compiled, x, w, v)  # the first call is recorded
    found = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(gradients(compiled, x, w, v))
    finally:
        torch.set_num_threads(threads)
    for expected, one, two in zip(gradients(convolve, x, w, v), *found):
        np.testing.assert_array_equal(one, two)
        np.testing.assert_allclose(one, expected, rtol=2e-4, atol=2e-3)
