"""Live buffers never overlap, plans are tight and printable, and calls at once do not share."""

import ctypes
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wengert.runtime.memory import ALIGNMENT, Arena, Buffer, plan, shared_arena


@st.composite
def programs(draw):
    buffers = []
    for i in range(draw(st.integers(0, 40))):
        first = draw(st.integers(0, 30))
        buffers.append(
            Buffer(f"b{i}", draw(st.integers(0, 5000)), first, first + draw(st.integers(0, 10)))
        )
    return buffers


@settings(deadline=None)
@given(programs())
def test_live_buffers_never_overlap(buffers):
    made = plan(buffers)
    for i, a in enumerate(buffers):
        start = made.offsets[a.name]
        assert start % ALIGNMENT == 0
        assert start >= 0 and start + a.size <= made.total
        for b in buffers[:i]:
            if a.first_use <= b.last_use and b.first_use <= a.last_use and a.size and b.size:
                other = made.offsets[b.name]
                assert start + a.size <= other or other + b.size <= start
    assert made.live_peak <= made.total <= sum(-(-b.size // 64) * 64 for b in buffers)


@settings(deadline=None)
@given(programs(), st.randoms())
def test_the_plan_does_not_depend_on_the_order(buffers, random):
    shuffled = list(buffers)
    random.shuffle(shuffled)
    assert plan(shuffled).offsets == plan(buffers).offsets


def test_a_chain_needs_two_buffers():
    chain = [Buffer(f"t{i}", 1000, i, i + 1) for i in range(50)]
    assert plan(chain).total == 2 * 1024


def test_the_tightest_gap_is_taken():
    made = plan(
        [
            Buffer("whole", 4096, 0, 0),
            Buffer("wall", 512, 0, 9),
            Buffer("low", 256, 1, 9),
            Buffer("small", 64, 2, 3),
        ]
    )
    assert made.total == 4096 + 512
    assert made.offsets["small"] + 64 <= 4096


def test_it_prints():
    text = str(plan([Buffer("x", 100, 0, 2), Buffer("y", 64, 1, 3), Buffer("z", 50, 3, 4)]))
    assert text.splitlines() == [
        "arena 192 bytes (192 live at the peak, 256 without reuse)",
        "         0 +       100  steps    0 to    2  x",
        "         0 +        50  steps    3 to    4  z",
        "       128 +        64  steps    1 to    3  y",
    ]
    assert str(plan([])) == "arena 0 bytes (0 live at the peak, 0 without reuse)"


def test_thousands_of_buffers_are_no_matter():
    made = plan([Buffer(f"t{i}", 64 * (1 + i % 13), i, i + 3) for i in range(3000)])
    assert made.total <= 2 * made.live_peak


def test_bad_buffers_are_refused():
    with pytest.raises(ValueError, match="share a name: x"):
        plan([Buffer("x", 1, 0, 0), Buffer("x", 1, 1, 1)])
    with pytest.raises(ValueError, match="size -1"):
        Buffer("x", -1, 0, 0)
    with pytest.raises(ValueError, match="live from 3 to 2"):
        Buffer("x", 1, 3, 2)


def test_an_arena_is_reused_and_grows():
    arena = Arena()
    assert arena.kept == 0
    with arena.borrow(1000) as first:
        assert first % ALIGNMENT == 0
        ctypes.memset(first, 1, 1000)
    with arena.borrow(500) as second:
        assert second == first
    assert arena.kept >= 1000
    with arena.borrow(1 << 20) as third:
        ctypes.memset(third, 1, 1 << 20)
        with arena.borrow(1 << 20) as other:
            assert abs(third - other) >= 1 << 20
    assert arena.kept >= 1 << 20
    arena.trim()
    assert arena.kept == 0
    with arena.borrow(0) as address:
        assert address % ALIGNMENT == 0


def test_an_arena_that_cannot_be_had():
    with pytest.raises(MemoryError), Arena().borrow(1 << 60):
        pass


def test_calls_at_once_have_a_block_each():
    arena = shared_arena()
    wrong = []

    def work(mark):
        for _ in range(300):
            with arena.borrow(4096) as address:
                ctypes.memset(address, mark, 4096)
                if ctypes.string_at(address, 4096) != bytes([mark]) * 4096:
                    wrong.append(mark)

    running = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not wrong
