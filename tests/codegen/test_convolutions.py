"""Convolutions of sizes where runs are short and many: as eager ones, for any thread count."""

import re

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


def close(function, *shapes, dtype=torch.float32):
    """The compiled function, and its gradients, against the eager one."""
    torch.manual_seed(0)
    data = [torch.randn(*shape, dtype=dtype) for shape in shapes]
    v = torch.randn(*function(*data).shape, dtype=dtype)

    def results(call):
        inputs = [x.clone().requires_grad_() for x in data]
        y = call(*inputs)
        y.backward(v)
        return [t.detach().numpy() for t in (y, *(x.grad for x in inputs))]

    compiled = torch.compile(function)
    results(compiled)  # the first call is recorded
    eps = np.finfo(v.numpy().dtype).eps
    for got, want in zip(results(compiled), results(function)):
        np.testing.assert_allclose(got, want, rtol=0, atol=64 * eps * np.abs(want).max())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("side", [4, 7, 15, 40])
def test_runs_of_any_length(side, dtype):
    def block(x, w, b):
        return (F.conv2d(x, w, b, 1, 1) + x).relu()

    close(block, (3, 20, side, side), (20, 20, 3, 3), (20,), dtype=dtype)


@pytest.mark.parametrize("stride, padding, dilation, groups", [
    (1, 4, 1, 1), (1, (3, 4), 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (2, 3, 1, 4), (1, 1, 1, 2),
])  # fmt: skip
def test_geometries(stride, padding, dilation, groups):
    def convolve(x, w, b):
        return F.conv2d(x, w, b, stride, padding, dilation, groups)

    close(convolve, (4, 32, 33, 18), (24, 32 // groups, 3, 3), (24,))


@pytest.mark.parametrize("function, x, w", [
    (lambda x, w: F.conv1d(x, w, None, 1, 2), (7, 32, 100), (64, 32, 5)),
    (lambda x, w: F.conv1d(x, w, None, 3, 2, 2), (7, 32, 100), (64, 32, 5)),
    (lambda x, w: F.conv3d(x, w, None, (1, 2, 1), (1, 0, 1)), (3, 16, 9, 10, 11),
     (24, 16, 3, 3, 2)),
    (lambda x, w: F.conv_transpose2d(x, w, None, 2, 1, 1), (3, 32, 15, 14), (32, 24, 3, 3)),
    (lambda x, w: F.conv_transpose2d(x, w, None, 1, 1, 1, 1, 2), (3, 32, 15, 14), (32, 24, 3, 3)),
    (lambda x, w: F.conv2d(x, w.permute(3, 2, 1, 0)), (4, 32, 24, 24), (3, 3, 32, 48)),
    (lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w), (4, 24, 24, 32), (48, 32, 3, 3)),
    (lambda x, w: torch.matmul(w, x).relu(), (3, 4, 80, 50), (64, 80)),
    (lambda x, w: torch.matmul(w, x.mT).relu(), (12, 50, 80), (64, 80)),
], ids=["1d", "1d strided", "3d", "transposed", "transposed dilated", "permuted weight",
        "permuted input", "shared matrix", "shared matrix, turned"])  # fmt: skip
def test_other_products_of_windows(function, x, w):
    close(function, x, w)


def test_no_windows_are_stored():
    """Forward and backward keep a bordered copy of what they read, and no matrix of windows."""
    x, w = torch.randn(8, 64, 28, 28), torch.randn(64, 64, 3, 3).requires_grad_()
    step = torch.compile(lambda x, w: F.conv2d(x, w, None, 1, 1).relu().sum())
    step(x, w).backward()
    arenas = [int(n) for n in re.findall(r"^arena (\d+) bytes", step.dump("kernels"), re.M)]
    assert len(arenas) == 2 and max(arenas) < 9 * x.numel() * 4 / 2


@pytest.mark.parametrize("items, channels, outputs, side", [
    (3, 40, 20, 19), (2, 300, 7, 14), (5, 8, 60, 9),
])  # fmt: skip
def test_points_of_several_images(items, channels, outputs, side):
    """Columns of a packed product are cut where images are not."""
    close(lambda x, w: F.conv2d(x, w), (items, channels, side, side), (outputs, channels, 1, 1))


def test_results_are_stored_as_they_are():
    """A result that only gets another shape is no tail, which tiles would go through memory for."""
    x, w = torch.randn(2, 16, 20, 20), torch.randn(24, 16, 1, 1)
    for function, tails in ((F.conv2d, 0), (lambda x, w: F.conv2d(x, w).relu(), 1)):
        compiled = torch.compile(function)
        compiled(x, w)
        assert len(re.findall(r"^ *then ", compiled.dump("kernels"), re.M)) == tails
        np.testing.assert_allclose(compiled(x, w).numpy(), function(x, w).numpy(), atol=1e-4)


@pytest.mark.parametrize("size, kernel, stride, padding, groups", [
    ((23,), (5,), (2,), (1,), 1), ((23,), (4,), (3,), (0,), 2),
    ((9, 14), (3, 3), (2, 2), (1, 1), 1), ((12, 15), (4, 5), (2, 3), (2, 0), 1),
    ((12, 11), (3, 3), (1, 2), (1, 1), 2), ((17, 13), (7, 2), (4, 3), (3, 0), 1),
    ((7, 8, 9), (3, 2, 3), (2, 1, 2), (1, 0, 1), 1),
    ((16, 16), (5, 3), (2, 4), (4, 0), 1),  # a phase that meets no part of the kernel
], ids=str)  # fmt: skip
def test_steps_go_by_phases(size, kernel, stride, padding, groups):
    """Many channels; also transposed, with elements that no window reaches."""
    dims, (m, c) = len(size), (12, 18)
    convolve = getattr(F, f"conv{dims}d")
    close(lambda x, w: convolve(x, w, None, stride, padding, 1, groups),
          (2, c, *size), (m, c // groups, *kernel))  # fmt: skip
    transposed = getattr(F, f"conv_transpose{dims}d")
    more = tuple(s - 1 for s in stride)
    close(lambda x, w, b: transposed(x, w, b, stride, padding, more, groups),
          (2, c, *size), (c, m // groups, *kernel), (m,))  # fmt: skip


def test_overlapping_windows_with_steps_are_products_of_phases():
    """What does not overlap, what few channels give and many phases are a product to be added."""

    def products(channels, kernel, stride=2):
        function = torch.compile(lambda x, w: F.conv_transpose2d(x, w, stride=stride))
        for _ in range(2):
            function(torch.ones(2, 32, 10, 10), torch.ones(32, channels, kernel, kernel))
        return len(re.findall(r"^\d+: matmul ", function.dump("kernels"), re.M))

    assert products(64, 3) == 4
    assert products(64, 2) == products(1, 3) == products(64, 6, 5) == 1
