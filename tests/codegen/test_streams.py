"""Large results written around the caches: Note [Streamed stores] in codegen/streams.py."""

import platform

import numpy as np
import pytest
import wengert as torch
from wengert.codegen import streams

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="streams stores on x86 only"
)
ROWS, COLUMNS = 257, 140  # no multiple of a vector, but rows stay aligned


def pointwise(x, w, b):
    return (x * w + b.flip(0).flip(0)).tanh(), x > w


def rows(x, w, b):
    return (x + b[0]).softmax(1)


def narrowed(x, w, b):
    return (x * w).to(torch.float16), (x * w).to(torch.float64)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(streams, "MOVED", 1 << 12)
    monkeypatch.setattr(streams, "LARGE", 1 << 12)


@pytest.fixture
def arguments():
    torch.manual_seed(5)
    return torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)


def listed(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("function", [pointwise, rows, narrowed])
def test_the_same_bits_as_with_plain_stores(function, arguments, monkeypatch):
    plain = torch.compile(function)
    plain(*arguments)
    expected = plain(*arguments)
    assert "nontemporal" not in plain.dump("llvm")
    monkeypatch.setattr(streams, "MOVED", 1 << 12)
    monkeypatch.setattr(streams, "LARGE", 1 << 12)
    streamed = torch.compile(lambda *values: function(*values))
    streamed(*arguments)
    found = streamed(*arguments)
    assert "nontemporal" in streamed.dump("llvm")
    assert all(torch.equal(a, b) for a, b in zip(listed(found), listed(expected)))


def test_memory_that_is_not_aligned_is_stored_to_plainly(small, arguments):
    x, w, _ = arguments
    room = np.full(x.numel() + 8, 7.0, "f")
    first = -(room.ctypes.data // 4) % 4 + 1  # one element behind an aligned one
    y = torch.from_numpy(room[first : first + x.numel()].reshape(x.shape))

    @torch.compile
    def step(y, x, w):
        y.copy_(x * w)

    step(y, x, w)
    y.zero_()
    step(y, x, w)
    assert "nontemporal" in step.dump("llvm")
    assert torch.equal(y, x * w)
    assert (room[:first] == 7).all() and (room[first + x.numel() :] == 7).all()


def test_what_is_read_in_the_same_kernel_is_not_streamed(small, arguments):
    x, w, _ = arguments

    @torch.compile
    def step(x, w):
        x.mul_(w)

    step(x, w)
    step(x, w)
    assert "nontemporal" not in step.dump("llvm")


def test_rows_that_do_not_stay_aligned_are_not_streamed(small):
    x, b = torch.randn(300, 141), torch.randn(141)
    function = torch.compile(lambda x, b: x + b)
    function(x, b)
    assert torch.equal(function(x, b), x + b)
    assert "nontemporal" not in function.dump("llvm")
