"""What a compiled function shows of itself beyond its dumps: the report page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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
