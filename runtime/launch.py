"""Runs Programs: loads their modules, lays out memory, and makes one callable.

A program is one native entry: Python is left once per call. Host calls are called back from it
(hosting.py).

Invariants:
- New results are freshly allocated at each call; bound calls use small arrays again that nobody
  else can see (spares.ll).
- The arena is borrowed for a call, so calls from several threads do not meet.
- Arguments that are not contiguous, or share memory with one that is written to, are copied first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.program import INPUT, OUTPUT, STATUS, TEMPORARY, HostCall, Launch, Program, may_raise
from . import cache, jit, memory
from .fastcall import Array, make
from .hosting import RAISED, Host, reraise, words_of
from .loading import ENTRY, Code, runner

LONG = 1 << 18  # bytes of traffic above which the GIL is released
SHARED = -1  # the status of a call whose arguments may share memory


def plan_memory(program: Program) -> memory.Plan:
    """Offsets of temporaries, live from their first to their last step."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, step in enumerate(program.steps):
        for b in step.buffers():
            if program.buffers[b].kind == TEMPORARY:
                first.setdefault(b, number)
                last[b] = number
    return memory.plan([
        memory.Buffer(f"{program.buffers[b].name}", program.buffers[b].nbytes, first[b], last[b])
        for b in first])  # fmt: skip


def can_fail(step: Launch | HostCall) -> bool:
    """May this step raise an error that depends on values?"""
    if isinstance(step, HostCall):
        return may_raise(step.op, step.operands)
    return any(word.buffer == STATUS for word in step.words)


def written_early(program: Program) -> list[int]:
    """Inputs that are written to before the last step that can fail.

    A call that raises has written nothing: kernels after that step are not run (run.ll), and these
    inputs are put back as they were.
    """
    steps = program.steps
    last = max((k for k, step in enumerate(steps) if can_fail(step)), default=0)
    writes = {b for step in steps[:last] for b in step.writes}
    return sorted({program.buffers[b].index for b in writes if program.buffers[b].kind == INPUT})


class Segment:
    """All steps as one native entry."""

    def __init__(self, owner: Runnable) -> None:
        listed = [(number, step) for number, step in enumerate(owner.program.steps)
                  if isinstance(step, HostCall) or step.chunks]  # fmt: skip
        self.hosts = {number: Host(step) for number, step in listed if isinstance(step, HostCall)}
        failing = max([0, *(k + 1 for k, (_, step) in enumerate(listed) if can_fail(step))])
        given = [words_of(s) if isinstance(s, HostCall) else s.words for _, s in listed]
        pointers = len(owner.inputs) + len(owner.results)
        words = [len(listed), max([1, *map(len, given)]), 0, 0, failing, pointers]
        self.steps = [number for number, _ in listed]
        for (number, step), own in zip(listed, given):
            if isinstance(step, HostCall):
                words += [self.hosts[number].address, 1]
            else:
                words += [owner.code.symbols[step.symbol], step.chunks]
            words += owner.block_words(own)
        self.table = np.array(words, np.int64)
        self.times = np.zeros(len(listed), np.int64)
        self.spans: list[np.ndarray] = []
        imports = {
            "wengert_run": runner().address("wengert_run"),
            "wengert_table": self.table.ctypes.data,
        }
        self.library = cache.build(ENTRY, ["entry"], imports, options=jit.LIGHT)
        self.address = self.library.address("entry")

    def watch(self, spans: np.ndarray) -> None:
        """Arrays to look at for shared memory, in order of address; see run.ll."""
        # calls under way may still read the ones before; 64 later ones are time enough for them
        self.spans = [*self.spans[-64:], spans]
        self.table[3] = spans.ctypes.data

    def profile(self, on: bool) -> None:
        self.table[2] = self.times.ctypes.data if on else 0


class Runnable:
    """A Program as a callable of arrays in storage form; results come as a tuple."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.plan = plan_memory(program)
        self.code = Code(program)
        self.inputs = [Array(t.dtype.storage, t.shape, writeable=k in program.written)
                       for k, t in enumerate(program.inputs)]  # fmt: skip
        self.results = [Array(r.type.dtype.storage, r.type.shape)
                        for r in program.results if r.target is None]  # fmt: skip
        self.segment = Segment(self)
        self.arena = memory.shared_arena()
        self.sizes = np.array([t.nbytes for t in program.inputs], np.int64)
        self.writes = np.array([k in program.written for k in range(len(self.inputs))], bool)
        self.trusted = False
        self.early = written_early(program)
        self.may_fail = any(map(can_fail, program.steps))
        # a generator may be drawn from by one thread at a time
        draws = any(k.kind == "draw" for k in program.kernels)
        self.long = not draws and sum(k.bytes for k in program.kernels) > LONG
        self.fresh = self.entry()
        if program.errors or program.written or self.segment.hosts:
            self.fresh = self.with_status(self.fresh)
        self.call = self.with_writes() if program.written else self.fresh

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return self.call(*arrays)

    # -- making it -------------------------------------------------------------------------

    def block_words(self, words: Sequence[Any]) -> list[int]:
        """The words of a launch, and which of them are relative to what, as run.ll reads them."""
        located = [self.locate(word) for word in words]
        fixes = [(k, origin) for k, (origin, _) in enumerate(located) if origin is not None]
        return [len(words), len(fixes), *(value for _, value in located),
                *(number for fix in fixes for number in fix)]  # fmt: skip

    def locate(self, word: Any) -> tuple[int | None, int]:
        """What a word is relative to, or None, and its value."""
        if word.buffer is None:
            return None, word.value
        if word.buffer == STATUS:
            return 1, word.value
        buffer = self.program.buffers[word.buffer]
        if buffer.kind == TEMPORARY:
            return 0, word.value + self.plan.offsets[buffer.name]
        place = buffer.index + (len(self.inputs) if buffer.kind == OUTPUT else 0)
        return 2 + place, word.value

    def entry(self) -> Any:
        """The callable that returns the new arrays."""
        return make(
            self.segment.address, self.inputs, self.results, name=self.program.name,
            release_gil=self.long, status=True, tuple_result=True, disjoint=False,
            arena=self.arena, arena_size=self.plan.total, slow=self.slow,
            keep=[self.code, self.segment, self],
        )  # fmt: skip

    def bound(self, arguments: Sequence[Any], places: Sequence[int], results: dict[int, Array],
              bound: dict[int, int], apart: bool = True, keep: Sequence[object] = (),
              name: str = "bound_call", **more: Any) -> Any:  # fmt: skip
        """The entry for callers whose other pointers, of inputs or results, are always the same.

        It makes the results in `results`, by number, and answers with these, or a status, or
        NotImplemented. None if inputs may have to be put back.
        """
        if self.early:
            return None
        return make(
            self.segment.address, arguments, list(results.values()),
            name=name, release_gil=self.long, status=True,
            arena=self.arena, arena_size=self.plan.total,
            keep=[self.code, self.segment, self, *keep],
            places=[*places, *(len(self.inputs) + k for k in results)],
            bound=list(bound.items()), apart=apart, **more,
        )  # fmt: skip

    def with_status(self, call: Any) -> Any:
        """The callable with errors raised, and arguments that share memory copied."""

        def checked(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            before = [arrays[k].copy() for k in self.early]
            made = call(*arrays)
            while type(made) is int:
                if made != SHARED:
                    self.put_back(arrays, before)
                    self.check(made)
                order = self.apart(arrays)
                if order is None:
                    return self.slow(*arrays)
                self.segment.watch(order)
                made = call(*arrays)
            return made

        if self.program.written:
            self.segment.watch(self.spans(np.arange(len(self.sizes))))
        return checked

    def trust(self) -> None:
        """Whoever calls sees to it that no array that is written to shares memory with another."""
        self.trusted = True
        self.segment.table[3] = 0

    def apart(self, arrays: Sequence[np.ndarray]) -> np.ndarray | None:
        """The spans, for run.ll; None if an array that is written to meets another."""
        starts = np.array([a.__array_interface__["data"][0] for a in arrays], np.int64)
        order = np.argsort(starts, kind="stable")
        order = order[self.sizes[order] > 0]
        first, last = starts[order], (starts + self.sizes)[order]
        written = self.writes[order]
        any_end = np.maximum.accumulate(np.concatenate([[0], last[:-1]]))
        write_end = np.maximum.accumulate(np.concatenate([[0], np.where(written, last, 0)[:-1]]))
        if (first < write_end).any() or (written & (first < any_end)).any():
            return None
        return self.spans(order)

    def spans(self, order: np.ndarray) -> np.ndarray:
        """Number and bytes of the arrays that are written to, in this order, and of the others."""
        words: list[int] = []
        for writes in (True, False):
            chosen = [k for k in order.tolist() if self.writes[k] == writes and self.sizes[k]]
            words += [len(chosen), *(w for k in chosen for w in (k, int(self.sizes[k])))]
        return np.array(words, np.int64)

    def with_writes(self) -> Any:
        fresh, targets = self.fresh, [r.target for r in self.program.results]

        def call(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
            made = iter(fresh(*arrays))
            return tuple(next(made) if t is None else arrays[t] for t in targets)

        return call

    # -- arguments that are not as expected ------------------------------------------------

    def slow(self, *arrays: Any) -> tuple[np.ndarray, ...]:
        """Copies what native code cannot take, runs, and copies back what was written."""
        name, program = self.program.name, self.program
        if len(arrays) != len(self.inputs):
            raise TypeError(f"@{name} takes {len(self.inputs)} arrays, got {len(arrays)}")
        for k, (array, expected) in enumerate(zip(arrays, self.inputs)):
            if not isinstance(array, np.ndarray) or array.dtype != expected.dtype or (
                    array.shape != expected.shape):  # fmt: skip
                raise TypeError(f"@{name}: argument {k} must be {program.inputs[k]}, got "
                                f"{getattr(array, 'dtype', type(array).__name__)}"
                                f"{list(getattr(array, 'shape', []))}")  # fmt: skip
            if expected.writeable and not array.flags.writeable:
                raise ValueError(f"@{name}: argument {k} is written to, but is read-only")
        fixed = [self.fitting(k, a, arrays) for k, a in enumerate(arrays)]
        if all(a is b for a, b in zip(fixed, arrays)):
            raise RuntimeError(f"@{name}: arguments fit but were declined")
        made = self.fresh(*fixed)
        for k in sorted(program.written):
            if fixed[k] is not arrays[k]:
                np.copyto(arrays[k], fixed[k])
        return made

    def fitting(self, k: int, array: np.ndarray, arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The array itself, or a copy that native code can take."""
        written = self.program.written
        shares = any(
            j != k and (k in written or j in written) and np.may_share_memory(array, other)
            for j, other in enumerate(arrays)
        )
        plain = type(array) is np.ndarray and array.flags.c_contiguous and array.flags.aligned
        if plain and array.dtype is self.inputs[k].dtype and not shares:
            return array
        copy = np.empty(array.shape, self.inputs[k].dtype)
        np.copyto(copy, array)
        return copy

    def put_back(self, arrays: Sequence[np.ndarray], before: Sequence[np.ndarray]) -> None:
        """Inputs that were written to early get their values from before the call."""
        for k, values in zip(self.early, before):
            np.copyto(arrays[k], values)

    def check(self, status: int) -> None:
        if status == RAISED:
            reraise()
        if status:
            error, message = self.program.errors[status - 1]
            raise error(message)
