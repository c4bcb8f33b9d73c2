"""What a compiled function shows of itself beyond its dumps: the report page, events, folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .ir.events import log
from .ir.graph import Graph


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
    failure: Failure | None = None

    def newest(self) -> Any:
        """The trace made last, or None."""
        found = [t for traces in self.traces.values() for t in traces]
        return found[-1] if found else None

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

        show(self.dump(stage))  # type: ignore[attr-defined]

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
        """Why no trace serves a call."""
        found = self.traces.get(key)
        if found is None:
            return f"{self.name}: a new kind of call"
        reasons = [trace.applies(leaves) or "a branch came out as never before" for trace in found]
        return f"{self.name}: none of {len(found)} traces fits: {reasons[-1]}"

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
