"""Dumps beyond one stage's text: passes as diffs, colour on terminals, everything into a folder."""

from __future__ import annotations

import difflib
import itertools
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from .report_data import Names, stable_lines

MANIFEST_VERSION = 1
SUFFIX = {"trace": "ir", "forward": "ir", "backward": "ir", "passes": "diff", "kernels": "txt",
          "llvm": "ll", "llvm-opt": "ll", "asm": "s", "listing": "s"}  # fmt: skip
_numbers = itertools.count()


def passes_text(trace: Any) -> str:
    """The graph after each pass that changed it, as unified diffs; value names stay the same."""
    parts = []
    for k, segment in enumerate(trace.segments()):
        function = segment.function
        for stage, steps in function.passes.items():
            names = Names()
            before = stable_lines(function.starts[stage], names)
            label = f"{function.name}/{stage}" + (f"/{k}" if k else "")
            for step in steps:
                after = stable_lines(step.graph, names)
                parts += difflib.unified_diff(before, after, label, f"{label} after {step.name}",
                                              n=1, lineterm="")  # fmt: skip
                if step.error:
                    parts.append(f"# {step.name} failed: {step.error}")
                before = after
    return "\n".join(parts) + "\n"


# --- colour --------------------------------------------------------------------------------------

PAINT = [
    (re.compile(r"(?<== )(reduce )?([a-z]\w*)(?![\w.\[])"), "35;1"),
    (re.compile(r"\^[\w.]+"), "34"),
    (re.compile(r"@\S+:\d+"), "2"),
    (re.compile(r"\b[a-z]\w*\[[\d,]*\]"), "36"),
]


def coloured(text: str) -> str:
    """Text for a terminal: ops, types, origins and places; added and removed lines of a diff."""
    return "\n".join(map(coloured_line, text.split("\n")))


def coloured_line(line: str) -> str:
    if line.startswith("+"):
        return f"\x1b[32m{line}\x1b[0m"
    if line.startswith("-"):
        return f"\x1b[31m{line}\x1b[0m"
    if line.startswith(("@@", "#", ";")):
        return f"\x1b[2m{line}\x1b[0m"
    for pattern, code in PAINT:
        line = pattern.sub(lambda m, code=code: f"\x1b[{code}m{m[0]}\x1b[0m", line)
    return line


def show(text: str, stream: Any = None) -> None:
    """Prints, with colour on a terminal only; NO_COLOR is honoured."""
    stream = sys.stdout if stream is None else stream
    if stream.isatty() and not os.environ.get("NO_COLOR"):
        text = coloured(text)
    print(text, end="" if text.endswith("\n") else "\n", file=stream)


# --- a folder ------------------------------------------------------------------------------------


def dump_if_asked(function: Any) -> None:
    """Writes all stages where `WENGERT_DUMP` says."""
    folder = os.environ.get("WENGERT_DUMP")
    if folder:
        write_all(function, folder)


def write_all(function: Any, folder: str) -> Path:
    """Every stage of the newest trace, and a manifest; returns the new folder."""
    name = re.sub(r"\W+", "_", function.name).strip("_") or "function"
    home = Path(folder) / f"{name}-{os.getpid()}-{next(_numbers)}"
    home.mkdir(parents=True, exist_ok=True)
    failure, trace = function.failure, function.newest()
    manifest: dict[str, Any] = {
        "version": MANIFEST_VERSION, "name": function.name,
        "status": "compiled" if trace is not None else "eager",
        "reason": failure.reason if trace is None and failure is not None else "",
        "explain": function.explain(), "files": {}, "segments": [],
    }  # fmt: skip
    if trace is not None:
        for stage in function.stages:
            write_stage(home, stage, function, trace, manifest)
        manifest["segments"] = [segment_facts(s, trace) for s in trace.segments()]
    elif failure is not None and failure.graph is not None:
        put(home, "trace.ir", failure.graph.print(), "trace", manifest)
    (home / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return home


def write_stage(home: Path, stage: str, function: Any, trace: Any, manifest: Any) -> None:
    """One file per stage; graphs of several segments go into a file each, so that each parses."""
    segments = trace.segments()
    if stage not in ("forward", "backward") or len(segments) == 1:
        if stage != "backward" or segments[0].wanted(trace.history):
            put(home, f"{stage}.{SUFFIX[stage]}", function.dump(stage), stage, manifest)
        return
    for k, segment in enumerate(segments):
        wanted = segment.wanted(trace.history)
        if stage == "forward" or (wanted and segment.function.differentiable):
            text = segment.function.text(stage, wanted)
            put(home, f"{stage}.{k}.{SUFFIX[stage]}", text, stage, manifest)


def put(home: Path, name: str, text: str, stage: str, manifest: Any) -> None:
    (home / name).write_text(text)
    manifest["files"].setdefault(stage, []).append(name)


def segment_facts(segment: Any, trace: Any) -> dict[str, Any]:
    """What a tool may want to know without reading the texts."""
    found: dict[str, Any] = {"ops": len(segment.function.trace.nodes), "units": []}
    executors = trace.ready(segment)
    for stage, executor in zip(("forward", "backward"), executors):
        unit: dict[str, Any] = {"stage": stage, "graph": executor.graph.name, "kernels": []}
        if executor.native is not None:
            unit["arena"] = executor.native.runnable.plan.total
            unit["kernels"] = [
                {"name": k.name, "kind": k.kind, "nodes": list(k.nodes), "bytes": k.bytes,
                 "flops": k.flops} for k in executor.native.kernels]  # fmt: skip
        found["units"].append(unit)
    return found
