"""What a compiled function shows of itself: dumps, explanations, the report page, events."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .arguments import leaf_names
from .ir.events import log
from .ir.graph import Graph
from .kinds import difference

MAX_SHOWN = 8  # traces taken at sizes of a symbolic one, in explain()
MAX_KINDS = 128  # of calls: shapes, dtypes, values that specialise
FAULT = "internal fault"


@dataclass(frozen=True)
class Failure:
    """Why a call was not compiled, and what was known by then."""

    reason: str
    graph: Graph | None = None  # the ops that were recorded
    trace: Any = None  # as far as it was compiled
    error: BaseException | None = None


class Inspected:
    """The inspection methods of a compiled function."""

    name: str
    traces: dict[Any, list[Any]]
    refusals: dict[Any, str]
    dynamic: Any
    body: Any
    dropped: Any
    events: list[str]
    casting: Mapping[Any, Any] = MappingProxyType({})  # by dtype; see Note [Calls inside autocast]
    failure: Failure | None = None

    def all_traces(self, whole: bool = False) -> list[Any]:
        """Its traces, and then those of pieces of its body, but for `whole`, and of calls inside
        autocast."""
        own = [trace for traces in self.traces.values() for trace in traces]
        others = (*(() if whole else self.body.pieces.functions), *self.casting.values())
        return own + [t for function in others for t in function.all_traces(whole)]

    def newest(self) -> Any:
        """The trace made last, or None."""
        found = self.all_traces()
        return found[-1] if found else None

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages `dump` knows."""
        return ("trace", "forward", "backward", "passes", "kernels", "llvm", "llvm-opt", "asm",
                "listing")  # fmt: skip

    def latest(self, whole: bool = False) -> Any:
        found = self.all_traces(whole)
        if not found:
            why = next(iter(self.refusals.values()), "call it first")
            raise RuntimeError(f"{self.name} has no compiled trace: {why}")
        return found[-1]

    def dump(self, stage: str = "trace") -> str:
        """The text of a stage of the newest trace."""
        if stage not in self.stages:
            raise ValueError(f"unknown stage {stage!r}; stages: {', '.join(self.stages)}")
        trace = self.latest()
        if stage == "trace":
            return trace.graphs[-1].print()
        if stage in ("passes", "listing"):
            return self.special_text(stage, trace)
        return "\n".join(s.function.text(stage, s.wanted(trace.history)) for s in trace.segments())

    def graph(self, stage: str = "trace") -> Any:
        """The graph of a stage: trace, forward, backward, or symbolic: that for all sizes."""
        if stage == "symbolic":
            return self.dynamic.graph()
        trace = self.latest()
        if stage == "trace":
            return trace.graphs[-1]
        segment = trace.segments()[-1]
        return segment.function.stage_graph(stage, segment.wanted(trace.history))

    def explain(self) -> str:
        """What was compiled, what runs eagerly and which line is why."""
        lines = [f"{self.name}:"]
        traces = [trace for traces in self.traces.values() for trace in traces]
        plain, taken = [t for t in traces if not t.sizes], [t for t in traces if t.sizes]
        for trace in plain + taken[-MAX_SHOWN:]:
            lines += trace.describe()
        lines += self.dynamic.describe()
        lines += self.dropped.describe(MAX_KINDS)
        for reason in dict.fromkeys(self.refusals.values()):
            how = "runs its Python body at each call"
            if reason.startswith(FAULT):
                how = "ran eagerly"
            elif self.body.pieces.functions:
                how = "leaves a statement to Python at each call"
            lines.append(f"  {self.name} {how}: {self.with_code(reason)}")
        if self.body.calls:
            lines += self.body.describe()
        lines += [f"  {event}" for event in self.events]
        if len(lines) == 1 and not self.casting:
            lines.append("  not called yet")
        inside = [function.explain() for function in self.casting.values()]
        return "\n".join((lines if len(lines) > 1 else []) + inside)

    def report(self, path: str) -> str:
        """Writes one HTML page with all stages side by side; returns its path.

        It is written even when nothing could be compiled, and then says why.

        >>> step.report("step.html")
        """
        from .report import write_report

        return write_report(self, path)

    def export(self, folder: str) -> str:
        """Writes a shared library, objects, LLVM text, a C header and a manifest; see
        `load_exported`.

        >>> model.export("model")
        """
        from .exporting import export

        return export(self, folder)

    def show(self, stage: str = "trace") -> None:
        """Prints a stage, with colour on a terminal."""
        from .dumps import show

        show(self.dump(stage))

    def special_text(self, stage: str, trace: Any) -> str:
        """Stages that are told from others: passes as diffs, assembly by source line."""
        if stage == "passes":
            from .dumps import passes_text

            return passes_text(trace)
        from .executor import native_wanted

        if not native_wanted():
            return f"# {self.name} runs in the reference interpreter: there is no assembly\n"
        from .listing import listing

        return listing(trace)

    def with_code(self, reason: str) -> str:
        """A reason with the code that `wengert explain` knows."""
        from .codes import code_of

        code = code_of(reason)
        return reason if code is None else f"{reason} [{code.code}]"

    # --- events ---

    def why_recorded(self, key: Any, leaves: list[Any]) -> str:
        """Why no trace serves a call; nothing to say of the first."""
        found = self.traces.get(key)
        if found is not None:
            return found[-1].applies(leaves) or "a branch came out as never before"
        if not self.traces:
            return ""
        return difference(self.traces, key, leaf_names(self.function, key[0], leaves))

    def tell(self, recording: Any) -> None:
        """What became of a recording, to those who asked for events or dumps."""
        ops = len(recording.recorder.builder.nodes)
        why = recording.problems[0] if recording.problems else ""
        done = f"runs eagerly: {why}" if why else "compiled"
        log("compile", lambda: f"{self.name}: recorded {ops} ops, {done}")
        if not why:
            log("kernels", lambda: f"{self.name}: {kernel_summary(self.newest())}")
        if os.environ.get("WENGERT_DUMP"):
            from .dumps import dump_if_asked

            dump_if_asked(self)


def kernel_summary(trace: Any) -> str:
    """The kernels of a trace in a line."""
    parts = []
    for segment in trace.segments():
        executors = trace.ready(segment)
        for stage, executor in zip(("forward", "backward"), executors):
            if executor.native is None:
                parts.append(f"{stage} by the interpreter")
                continue
            kinds = [k.kind for k in executor.native.kernels]
            hosts = executor.native.host_calls
            parts.append(f"{stage} {len(kinds)} steps ({', '.join(kinds)})"
                         + (f", in Python: {', '.join(hosts)}" if hosts else ""))  # fmt: skip
    return "; ".join(parts)
