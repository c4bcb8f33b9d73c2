"""Memory of a program: where each temporary lives in the arena, and the arenas themselves.

Invariants:
- Two buffers that are live at the same step never overlap. A buffer is live from its first to its
  last use, both included: a kernel may read one and write the other in the same step.
- Offsets are multiples of `ALIGNMENT`, and an arena starts on one: a cache line, and the widest
  vector there is.
- The plan depends on the buffers alone, so that it prints the same every time.
- A block of an arena is in the hands of one call at a time. Native code and Python take and give
  it back by the same two functions.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from . import cache as object_cache
from . import jit

ALIGNMENT = 64


@dataclass(frozen=True)
class Buffer:
    """A temporary: `size` bytes, live from step `first_use` to step `last_use`, inclusive."""

    name: str
    size: int
    first_use: int
    last_use: int

    def __post_init__(self) -> None:
        if self.size < 0 or self.first_use > self.last_use:
            raise ValueError(
                f"buffer {self.name!r}: size {self.size}, "
                f"live from {self.first_use} to {self.last_use}"
            )


@dataclass(frozen=True)
class Plan:
    """An offset for each buffer by name, and the arena's size."""

    buffers: tuple[Buffer, ...]
    offsets: dict[str, int]
    total: int

    @property
    def live_peak(self) -> int:
        """The most bytes live at one step: no plan can need less."""
        return _live_peak(self.buffers)

    def __str__(self) -> str:
        """One line per buffer, in order of address.

        arena 192 bytes (128 live at the peak, 256 without reuse)
               0 +      64  steps    0 to    2  a
        """
        unshared = sum(_aligned(buffer.size) for buffer in self.buffers)
        head = (
            f"arena {self.total} bytes ({self.live_peak} live at the peak, "
            f"{unshared} without reuse)"
        )
        placed = sorted(self.buffers, key=lambda b: (self.offsets[b.name], b.first_use, b.name))
        return "\n".join(
            [
                head,
                *(
                    f"{self.offsets[b.name]:10d} +{b.size:10d}  "
                    f"steps {b.first_use:4d} to {b.last_use:4d}  {b.name}"
                    for b in placed
                ),
            ]
        )


def plan(buffers: Sequence[Buffer]) -> Plan:
    """Places buffers in one arena, large ones first, each in the tightest gap that holds it.

    >>> plan([Buffer("a", 256, 0, 1), Buffer("b", 256, 1, 2), Buffer("c", 256, 2, 3)]).total
    512
    """
    names = [buffer.name for buffer in buffers]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"buffers share a name: {', '.join(twice)}")
    order = sorted(
        (b for b in buffers if b.size > 0), key=lambda b: (-b.size, b.first_use, b.last_use, b.name)
    )
    first = np.array([b.first_use for b in order], np.int64)
    last = np.array([b.last_use for b in order], np.int64)
    sizes = np.array([_aligned(b.size) for b in order], np.int64)
    starts = np.zeros(len(order), np.int64)
    for i in range(len(order)):
        beside = (first[:i] <= last[i]) & (last[:i] >= first[i])
        starts[i] = _tightest_gap(starts[:i][beside], sizes[:i][beside], int(sizes[i]))
    offsets = {b.name: 0 for b in buffers}
    offsets.update((b.name, int(start)) for b, start in zip(order, starts))
    total = int((starts + sizes).max()) if order else 0
    return Plan(tuple(buffers), offsets, total)


def _tightest_gap(starts: np.ndarray, sizes: np.ndarray, size: int) -> int:
    """The offset of the smallest gap between neighbours that holds `size`; else after them all."""
    if not len(starts):
        return 0
    by_start = np.argsort(starts, kind="stable")
    starts = starts[by_start]
    # Neighbours may overlap each other in address: they are live with us, not with one another.
    ends = np.maximum.accumulate(starts + sizes[by_start])
    gap_starts = np.concatenate([[0], ends[:-1]])
    gaps = starts - gap_starts
    fits = gaps >= size
    if not fits.any():
        return int(ends[-1])
    return int(gap_starts[np.argmin(np.where(fits, gaps, np.iinfo(np.int64).max))])


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _live_peak(buffers: Sequence[Buffer]) -> int:
    changes: dict[int, int] = {}
    for buffer in buffers:
        size = _aligned(buffer.size)
        changes[buffer.first_use] = changes.get(buffer.first_use, 0) + size
        changes[buffer.last_use + 1] = changes.get(buffer.last_use + 1, 0) - size
    live = peak = 0
    for step in sorted(changes):
        live += changes[step]
        peak = max(peak, live)
    return peak


# Note [Arenas]
# An arena is one word: the block nobody is using, or null. Taking swaps null in; giving back
# swaps the block in if the word is still null, and frees it otherwise. So calls one after another
# reuse one block, calls at once have a block each, and none of them waits. A block knows its
# size (the line before it), so programs of different sizes can share an arena: it grows to the
# largest. `take` returns null when there is no memory.
ARENA = """
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)

define ptr @wengert_arena_take(ptr %arena, i64 %size) {
entry:
  %kept = atomicrmw xchg ptr %arena, ptr null acquire, align 8
  %none = icmp eq ptr %kept, null
  br i1 %none, label %new, label %look
look:
  %head = getelementptr i8, ptr %kept, i64 -64
  %room = load i64, ptr %head
  %fits = icmp uge i64 %room, %size
  br i1 %fits, label %reuse, label %outgrown
reuse:
  ret ptr %kept
outgrown:
  call void @free(ptr %head)
  br label %new
new:
  %more = add i64 %size, 127
  %whole = and i64 %more, -64
  %block = call ptr @aligned_alloc(i64 64, i64 %whole)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %refused, label %made
refused:
  ret ptr null
made:
  %usable = sub i64 %whole, 64
  store i64 %usable, ptr %block
  %start = getelementptr i8, ptr %block, i64 64
  ret ptr %start
}

define void @wengert_arena_give(ptr %arena, ptr %start) {
entry:
  %swap = cmpxchg ptr %arena, ptr null, ptr %start release monotonic, align 8
  %kept = extractvalue { ptr, i1 } %swap, 1
  br i1 %kept, label %out, label %spare
spare:
  %block = getelementptr i8, ptr %start, i64 -64
  call void @free(ptr %block)
  br label %out
out:
  ret void
}

define void @wengert_arena_trim(ptr %arena) {
entry:
  %kept = atomicrmw xchg ptr %arena, ptr null acquire, align 8
  %none = icmp eq ptr %kept, null
  br i1 %none, label %out, label %drop
drop:
  %block = getelementptr i8, ptr %kept, i64 -64
  call void @free(ptr %block)
  br label %out
out:
  ret void
}
"""


class ArenaCode:
    """The functions of Note [Arenas]: as addresses for native callers, and callable."""

    def __init__(self) -> None:
        names = ("wengert_arena_take", "wengert_arena_give", "wengert_arena_trim")
        self.library = object_cache.build(ARENA, names, options=jit.BRIEF)
        self.addresses = {name: self.library.address(name) for name in names}
        pointer, size = ctypes.c_void_p, ctypes.c_int64
        take, give, trim = self.addresses.values()
        self.take = ctypes.CFUNCTYPE(pointer, pointer, size)(take)
        self.give = ctypes.CFUNCTYPE(None, pointer, pointer)(give)
        self.trim = ctypes.CFUNCTYPE(None, pointer)(trim)


@jit.kept
def arena_code() -> ArenaCode:
    """Made once: every arena shares it."""
    return ArenaCode()


class Arena:
    """Scratch memory that calls borrow; see Note [Arenas]."""

    def __init__(self) -> None:
        self._word = ctypes.c_void_p(None)
        self._code = arena_code()

    @property
    def address(self) -> int:
        """The arena's word, for native code."""
        return ctypes.addressof(self._word)

    @contextmanager
    def borrow(self, size: int) -> Iterator[int]:
        """A block of at least `size` bytes, as an address.

        >>> with Arena().borrow(1000) as address: ...
        """
        start = self._code.take(self.address, size)
        if not start:
            raise MemoryError(f"no memory for an arena of {size} bytes")
        try:
            yield start
        finally:
            self._code.give(self.address, start)

    @property
    def kept(self) -> int:
        """Bytes of the block that waits for the next call."""
        start = self._word.value
        return ctypes.c_int64.from_address(start - ALIGNMENT).value if start else 0

    def trim(self) -> None:
        """Frees the block that waits for the next call."""
        self._code.trim(self.address)

    def __del__(self, at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the memory goes anyway; and modules, `sys` too, are taken apart in any order.
        if not at_exit():
            self.trim()


@jit.kept
def shared_arena() -> Arena:
    """The process's arena: programs that run one after another need only the largest's memory."""
    return Arena()
