"""`profile()`: what eager ops and compiled kernels cost, by op, by kernel and by source line.

Note [Profiling]
    While the block runs, the profiler is the bottom interpreter of this thread: it hands each op
    to eager execution and takes the time. It must be the bottom, not one above it, or compiled
    functions would think that they are being recorded. Compiled graphs are called through a
    wrapper that reads the times which native code takes of its own kernels.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import executor as executors
from .ir.bind import state
from .ir.places import line_of, user_place
from .ir.types import TensorType
from .report_data import kernel_title, with_folded
from .tracer.tensor import Tensor

OP, BACKWARD, KERNEL, GRAPH = "op", "backward", "kernel", "graph"


@dataclass(frozen=True)
class Event:
    """Something that took time: `start` and `duration` in nanoseconds."""

    name: str
    kind: str  # op, backward (an op of a derivative), kernel or graph (a compiled one, as a whole)
    start: int
    duration: int
    places: tuple[tuple[str, int], ...] = ()  # the source lines it belongs to
    detail: str = ""
    bytes: int = 0  # read and written, and arithmetic done, where that is known
    flops: int = 0


@dataclass(frozen=True)
class Row:
    """A line of a table: how often, how long in all."""

    name: str
    kind: str
    count: int
    total: int
    bytes: int = 0
    flops: int = 0


@dataclass
class Profile:
    """What was measured; `print(profile)` shows the tables.

    >>> with wengert.profile() as p:
    ...     step(x, y)
    >>> print(p)
    >>> p.chrome("trace.json")    # for chrome://tracing or ui.perfetto.dev
    """

    events: list[Event] = field(default_factory=list)

    def by_op(self) -> list[Row]:
        """Ops and kernels, the costliest first."""
        return self._rows((e, e.name, e.duration) for e in self.events if e.kind != GRAPH)

    def by_kernel(self) -> list[Row]:
        """Compiled kernels, the costliest first."""
        return self._rows((e, e.name, e.duration) for e in self.events if e.kind == KERNEL)

    def by_line(self) -> list[Row]:
        """Source lines; the time of a fused kernel is shared among the lines it computes."""
        return self._rows(
            (e, f"{file}:{line}", e.duration // len(e.places))
            for e in self.events if e.kind != GRAPH for file, line in e.places
        )  # fmt: skip

    def _rows(self, parts: Any) -> list[Row]:
        sums: dict[tuple[str, str], list[int]] = {}
        for event, name, duration in parts:
            entry = sums.setdefault((name, event.kind), [0, 0, 0, 0])
            for k, value in enumerate((1, duration, event.bytes, event.flops)):
                entry[k] += value
        rows = [Row(name, kind, *entry) for (name, kind), entry in sums.items()]
        return sorted(rows, key=lambda row: -row.total)

    @property
    def total(self) -> int:
        """Nanoseconds in ops and kernels."""
        return sum(e.duration for e in self.events if e.kind != GRAPH)

    def table(self, by: str = "op", most: int = 30) -> str:
        """A table of the costliest; `by` is "op", "kernel" or "line"."""
        rows = {"op": self.by_op, "kernel": self.by_kernel, "line": self.by_line}[by]()
        width = max([len(by), *(len(r.name) for r in rows[:most])])
        total = max(1, self.total)
        rates = by == "kernel"
        lines = [f"{by:{width}}  {'kind':8}  {'count':>6}  {'total':>10}  {'mean':>10}  share"
                 + ("   GB/s  GFLOP/s" if rates else "")]  # fmt: skip
        for row in rows[:most]:
            ns = max(1, row.total)
            lines.append(
                f"{row.name:{width}}  {row.kind:8}  {row.count:6}  {duration(row.total):>10}  "
                f"{duration(row.total / row.count):>10}  {100 * row.total / total:4.1f}%"
                + (f"  {row.bytes / ns:5.1f}  {row.flops / ns:7.1f}" if rates else "")
            )
        if len(rows) > most:
            lines.append(f"and {len(rows) - most} more")
        return "\n".join(lines) + "\n"

    def chrome(self, path: Any) -> str:
        """Writes Chrome's trace format: a flame chart of ops, graphs and kernels."""
        process, thread = os.getpid(), threading.get_native_id()
        events = [
            {"name": e.name, "cat": e.kind, "ph": "X", "ts": e.start / 1e3,
             "dur": e.duration / 1e3, "pid": process, "tid": thread,
             "args": {"detail": e.detail, "places": [f"{f}:{n}" for f, n in e.places]}}
            for e in self.events
        ]  # fmt: skip
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
        return str(path)

    def __str__(self) -> str:
        tables = ["op", "kernel", "line"] if self.by_kernel() else ["op", "line"]
        return "\n".join(map(self.table, tables))


def duration(ns: float) -> str:
    """A time for people."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.2f} {unit}"
    return f"{ns:.0f} ns"


class profile:
    """Measures the ops and compiled kernels that run in the block, in this thread."""

    def __init__(self) -> None:
        self.result = Profile()
        self.deriving = False
        self.kernels: dict[Any, list[tuple[str, Any]]] = {}  # of a program: label and facts

    def __enter__(self) -> Profile:
        self.before = dict(vars(state))
        self.eager = state.bottom
        if state.top is state.bottom:  # else ops go to a recorder, which needs them as they are
            state.bottom = state.top = self
        executors.watch(self.graph_called)
        return self.result

    def __exit__(self, *error: Any) -> None:
        executors.watch(None)
        for name in ("top", "bottom"):
            if name in self.before:
                setattr(state, name, self.before[name])
            else:
                delattr(state, name)

    # --- eager ops ---

    def __call__(self, op: Any, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
        place = user_place()
        start = time.perf_counter_ns()
        output = self.eager(op, inputs, attrs)
        taken = time.perf_counter_ns() - start
        places = () if place is None else ((place[0].co_filename, line_of(place)),)
        types = [str(TensorType(x.dtype, x._array.shape)) for x in inputs if isinstance(x, Tensor)]
        kind = BACKWARD if self.deriving else OP
        self.result.events.append(Event(op.name, kind, start, taken, places, ", ".join(types)))
        return output

    def pulling(self, node: Any) -> None:
        """Backward comes to a node, or to its end."""
        self.deriving = node is not None

    # --- compiled graphs ---

    def graph_called(self, executor: Any, start: int, taken: int, times: Any) -> None:
        """A compiled graph ran; `times` are those of its kernels, in order."""
        events, graph = self.result.events, executor.graph
        events.append(Event(graph.name, GRAPH, start, taken))
        if times is None:
            events.append(Event(f"{graph.name} by the interpreter", KERNEL, start, taken,
                                places_of(graph, range(len(graph.nodes)))))  # fmt: skip
            return
        at = start
        hosts = [k for k, ns in enumerate(times) if ns is None]
        rest = max(0, taken - sum(ns for ns in times if ns is not None))
        for (label, info), ns in zip(self.kernels_of(executor), times):
            ns = rest // len(hosts) if ns is None else ns
            events.append(Event(label, KERNEL, at, ns, places_of(graph, info.nodes),
                                f"{info.kind} {info.name}", info.bytes, info.flops))  # fmt: skip
            at += ns

    def kernels_of(self, executor: Any) -> list[tuple[str, Any]]:
        """A label, and what is known, of each step."""
        program, graph = executor.native.program, executor.graph
        if id(program) not in self.kernels:
            infos = with_folded([program.kernels[step.kernel] for step in program.steps], graph)
            self.kernels[id(program)] = [
                (f"{graph.name}/{k} {kernel_title(info, graph)}", info)
                for k, info in enumerate(infos)
            ]
        return self.kernels[id(program)]


def places_of(graph: Any, nodes: Any) -> tuple[tuple[str, int], ...]:
    found = [graph.nodes[n].place for n in nodes]
    return tuple(dict.fromkeys((p.file, p.line) for p in found if p is not None))
