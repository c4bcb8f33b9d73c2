"""Ops without a kernel, called back from native programs."""

import threading

import numpy as np
import pytest
import wengert as torch
from native_calls import settled_natively
from wengert.ir.op import TABLE
from wengert.ir.program import Strided
from wengert.ir.types import TensorType, float32
from wengert.runtime.hosting import Seen


def matrix():
    return torch.rand(4, 4) + 4 * torch.eye(4)


def test_calls_with_host_calls_are_native():
    body = lambda a, b: torch.linalg.solve(a * 2, b).exp()  # noqa: E731
    function, a, b = torch.compile(body), matrix(), torch.rand(4, 2)
    result = settled_natively(function, a, b)
    np.testing.assert_allclose(result.numpy(), body(a, b).numpy(), rtol=1e-6)


def test_history_goes_through_host_calls():
    function = torch.compile(lambda a: torch.linalg.inv(a).sum())
    found = []
    for call in (function, function, function, function.__wrapped__):
        torch.manual_seed(0)
        a = matrix().requires_grad_()
        call(a).backward()
        found.append(a.grad.numpy())
    for grad in found[:-1]:
        np.testing.assert_allclose(grad, found[-1], rtol=1e-5, atol=1e-6)


def test_what_an_op_raises_reaches_the_caller_and_later_steps_do_not_run():
    def body(a, total):
        inverse = torch.linalg.inv(a)
        total.add_(1)
        return inverse * 2

    function, total = torch.compile(body), torch.zeros(3)
    settled_natively(function, matrix(), total)
    before = total.tolist()
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        function(torch.zeros(4, 4), total)
    assert total.tolist() == before
    np.testing.assert_array_equal(function(torch.eye(4), total).numpy(), 2 * np.eye(4))


def test_each_thread_is_told_of_its_own_error():
    function = torch.compile(lambda a: torch.linalg.inv(a))
    settled_natively(function, matrix())
    found = []

    def work(bad):
        for _ in range(30):
            try:
                function(torch.zeros(4, 4) if bad else torch.eye(4))
                found.append((bad, "fine"))
            except torch.linalg.LinAlgError:
                found.append((bad, "singular"))

    threads = [threading.Thread(target=work, args=(k % 2 == 0,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(set(found)) == [(False, "fine"), (True, "singular")] and len(found) == 120


def test_interrupts_pass_through_native_code(monkeypatch):
    function = torch.compile(lambda a: torch.linalg.inv(a))
    settled_natively(function, matrix())

    def interrupted(*operands, **attrs):
        raise KeyboardInterrupt

    monkeypatch.setattr(TABLE["linalg_inv_ex"], "numpy", interrupted)
    with pytest.raises(KeyboardInterrupt):
        function(matrix())


@pytest.mark.parametrize("shape, strides, offset", [
    ((3, 4), (4, 1), 0), ((3, 2), (4, -1), 3), ((2, 3), (-4, 1), 8), ((0, 4), (4, 1), 0),
    ((), (), 5),
])  # fmt: skip
def test_memory_is_seen_by_strides(shape, strides, offset):
    whole = np.arange(12, dtype=np.float32)
    seen = Seen(Strided(0, TensorType(float32, shape), strides, offset))
    expected = np.lib.stride_tricks.as_strided(whole[offset:], shape, [4 * s for s in strides])
    got = seen(whole.ctypes.data + 4 * offset)
    np.testing.assert_array_equal(got, expected)
    assert got.shape == shape
