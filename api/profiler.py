"""`torch.profiler`: what ops cost, under torch's names. `wengert.profile` shows more."""

from __future__ import annotations

import contextlib
import enum
import time
from collections.abc import Callable
from typing import Any

from .profiling import GRAPH, Event, Profile
from .profiling import profile as _measuring

__all__ = ["ProfilerAction", "ProfilerActivity", "profile", "record_function", "schedule",
           "supported_activities", "tensorboard_trace_handler"]  # fmt: skip

USER = "user"  # the kind of events that `record_function` names
_open: list[Profile] = []  # profiles that are measuring, outermost first


class ProfilerActivity(enum.Enum):
    """What may be observed; here it is always the CPU."""

    CPU = 0
    CUDA = 1
    XPU = 2


class ProfilerAction(enum.Enum):
    """What a schedule asks for at a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Only the CPU."""
    return {ProfilerActivity.CPU}


class record_function(contextlib.ContextDecorator):
    """record_function(name): the block, or the decorated function, is an event of that name."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name

    def __enter__(self) -> record_function:
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *error: Any) -> None:
        if _open:
            taken = time.perf_counter_ns() - self.start
            _open[-1].events.append(Event(self.name, USER, self.start, taken))


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0,
             skip_first_wait: int = 0) -> Callable[[int], ProfilerAction]:  # fmt: skip
    """schedule(*, wait, warmup, active, repeat=0, skip_first=0): the action of each step."""

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        length = wait + warmup + active
        if step < 0 or (repeat and step // length >= repeat):
            return ProfilerAction.NONE
        place = step % length - wait
        if place < 0:
            return ProfilerAction.NONE
        if place < warmup:
            return ProfilerAction.WARMUP
        last = place == warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


class FunctionEvent:
    """One call, or the sum of all calls of a name; times in microseconds."""

    def __init__(self, key: str, count: int, nanoseconds: int) -> None:
        self.key = self.name = key
        self.count = count
        self.cpu_time_total = self.self_cpu_time_total = nanoseconds / 1e3

    @property
    def cpu_time(self) -> float:
        """The mean of the calls."""
        return self.cpu_time_total / max(1, self.count)

    def __repr__(self) -> str:
        return (f"<FunctionEventAvg key={self.key} cpu_time={self.cpu_time:.3f}us "
                f"count={self.count}>")  # fmt: skip


class EventList(list):  # type: ignore[type-arg]
    """Events, with the table that torch prints."""

    def table(self, sort_by: str | None = None, row_limit: int = 100, **_: Any) -> str:
        """table(sort_by=None, row_limit=100): `sort_by` names an attribute of the events."""
        rows = sorted(self, key=lambda e: -getattr(e, sort_by)) if sort_by else list(self)
        total = sum(e.cpu_time_total for e in self) or 1.0
        width = max([20, *(len(e.key) for e in rows[:row_limit])])
        line = "  ".join(["-" * width, *["-" * 12] * 4])
        heads = ("CPU total %", "CPU total", "CPU time avg", "# of Calls")
        lines = [line, f"{'Name':>{width}}  " + "  ".join(f"{h:>12}" for h in heads), line]
        for e in rows[:row_limit]:
            cells = (f"{100 * e.cpu_time_total / total:.2f}%", f"{e.cpu_time_total:.3f}us",
                     f"{e.cpu_time:.3f}us", str(e.count))  # fmt: skip
            lines.append(f"{e.key:>{width}}  " + "  ".join(f"{c:>12}" for c in cells))
        return "\n".join([*lines, line, f"Self CPU time total: {total:.3f}us", ""])

    def key_averages(self, *_: Any, **__: Any) -> EventList:
        """Calls of one name as one event."""
        sums: dict[str, FunctionEvent] = {}
        for event in self:
            entry = sums.setdefault(event.key, FunctionEvent(event.key, 0, 0))
            entry.count += event.count
            entry.cpu_time_total += event.cpu_time_total
            entry.self_cpu_time_total = entry.cpu_time_total
        return EventList(sums.values())


class profile:
    """profile(*, activities=None, schedule=None, on_trace_ready=None, record_shapes=False, ...)."""

    def __init__(self, *, activities: Any = None, schedule: Any = None, on_trace_ready: Any = None,
                 record_shapes: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_flops: bool = False, with_modules: bool = False,
                 **_: Any) -> None:  # fmt: skip
        self.schedule, self.on_trace_ready = schedule, on_trace_ready
        self.step_num = 0
        self.measured = Profile()
        self._running: Any = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def _action(self) -> ProfilerAction:
        if self.schedule is None:
            return ProfilerAction.RECORD
        return self.schedule(self.step_num)

    def start(self) -> None:
        """Begins to measure, if this step is to be."""
        if self._action() in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._running = _measuring()
            _open.append(self._running.__enter__())

    def stop(self) -> None:
        """Ends, and hands the trace on."""
        if self._pause() and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _pause(self) -> bool:
        if self._running is None:
            return False
        self._running.__exit__(None, None, None)
        self.measured.events += _open.pop().events
        self._running = None
        return True

    def step(self) -> None:
        """The next step of the schedule begins."""
        saved = self._action() is ProfilerAction.RECORD_AND_SAVE
        self._pause()
        self.step_num += 1
        if saved and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        if saved:
            self.measured = Profile()
        self.start()

    def events(self) -> EventList:
        """Every call, in order; ops are named as torch names them."""
        return EventList(
            FunctionEvent(e.name if e.kind == USER else f"aten::{e.name}", 1, e.duration)
            for e in self.measured.events if e.kind != GRAPH
        )  # fmt: skip

    def key_averages(self, group_by_input_shape: bool = False, **_: Any) -> EventList:
        """One event per name."""
        return self.events().key_averages()

    def export_chrome_trace(self, path: Any) -> None:
        """Writes a trace for chrome://tracing."""
        self.measured.chrome(path)


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None,
                              use_gzip: bool = False) -> Callable[[profile], None]:  # fmt: skip
    """A handler that writes each trace to a file in `dir_name`."""
    import os

    def handle(profiler: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{time.time_ns()}.pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, name))

    return handle
