"""`fn.report(path)`: one page with all stages side by side, written even when compiling failed.

The page is a template in codegen/templates; what it shows is made here as plain data. Texts are
long, so they go into the page compressed.
"""

from __future__ import annotations

import inspect
import json
import linecache
from pathlib import Path
from typing import Any

from . import report_data as data
from .executor import native_wanted
from .ir.graph import Graph
from .report_graph import graph_picture
from .report_pack import packed
from .sources import Fact, Identities

PLAIN = ("version", "name", "status", "reason", "explain", "guards", "machine", "open")
CONTEXT = 2  # lines shown around a source line that an op came from


def write_report(function: Any, path: str) -> str:
    """Writes the page; returns its path."""
    from .codegen.render import render

    shown = collect(function)
    plain = {key: shown.pop(key) for key in PLAIN}
    text = render("report.html.j2", report=dict(
        title=plain["name"], data=embed(plain), packed=packed(shown),
    ))  # fmt: skip
    Path(path).write_text(text, encoding="utf-8")
    return str(path)


def embed(value: Any) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def collect(function: Any) -> dict[str, Any]:
    """All that the page shows of a compiled function."""
    shown: dict[str, Any] = {
        "version": data.VERSION, "name": function.name, "status": "compiled", "reason": "",
        "open": [], "explain": function.explain(), "guards": [], "ops": [], "units": [],
        "source": [], "trace": [], "forward": [], "backward": [], "kernels": [], "passes": [],
        "memory": [], "saved": [], "modules": [], "pictures": [], "rules": {},
        "machine": machine(),
    }  # fmt: skip
    trace = function.newest()
    failure = function.failure
    if trace is None and failure is not None:
        trace = failure.trace
        shown.update(status="failed" if failure.error else "eager", reason=failure.reason)
    if trace is not None:
        add_trace(shown, trace)
    elif failure is not None and failure.graph is not None:
        add_recorded(shown, failure.graph)
    if shown["status"] == "compiled" and trace is None:
        reasons = list(function.refusals.values())
        shown.update(
            status="eager", reason=reasons[0] if reasons else "no call of it has been compiled yet"
        )
    shown["source"] = source_data(shown, function.function)
    shown["open"] = panes_to_open(shown)
    return shown


def machine() -> str:
    """Who made the code."""
    if not native_wanted():
        return "reference interpreter"
    from .runtime import jit

    here = jit.host()
    return f"{here.cpu}, LLVM {here.llvm}"


def panes_to_open(shown: dict[str, Any]) -> list[str]:
    if shown["status"] == "failed" and shown["passes"]:
        return ["source", "passes", "guards"]
    if shown["status"] != "compiled":
        return ["source", "trace", "guards"]
    return ["source", "trace", "backward" if shown["backward"] else "forward", "kernels"]


# --- a trace -------------------------------------------------------------------------------------


def add_trace(shown: dict[str, Any], trace: Any) -> None:
    segments = trace.segments()
    numbers = data.Segments(segments)
    shown["ops"] = numbers.ops
    shown["rules"] = rules([s.function.trace for s in segments])
    shown["guards"] = guard_lines(trace)
    natives = []
    for k, segment in enumerate(segments):
        title = segment_title(k, segment, segments)
        shown["trace"].append({
            "title": title, "lines": data.graph_lines(segment.function.trace, numbers.of_trace(k)),
        })  # fmt: skip
        shown["pictures"] += graph_picture(segment.function.trace, f"{title or 'trace'}",
                                           numbers.of_trace(k))  # fmt: skip
        for stage, steps in segment.function.passes.items():
            shown["passes"].append(
                {
                    "title": f"{title or 'all'}: {stage}",
                    "segment": k,
                    "steps": data.pass_data(start_of(segment, stage), steps, numbers.of(k)),
                }
            )
        natives += add_units(shown, trace, k, segment, numbers.of(k), title)
    if natives:
        add_native(shown, natives)


def rules(graphs: list[Graph]) -> dict[str, Any]:
    """The derivative rules of all ops in sight, by name."""
    return {n.op.name: data.rules_of(n) for graph in graphs for n in graph.nodes if n.op.rules}


def start_of(segment: Any, stage: str) -> Graph:
    """The graph that a list of passes began with."""
    function = segment.function
    return function.starts.get(stage, function.trace)


def segment_title(k: int, segment: Any, segments: list[Any]) -> str:
    """Where in the tree of paths a segment is; nothing to say if there is one only."""
    if len(segments) == 1:
        return ""
    for j, parent in enumerate(segments):
        for outcome, child in parent.children.items():
            if child is segment:
                place = Path(str(parent.place)).name
                return f"segment {k}: after segment {j} came out {outcome} ({place})"
    return f"segment {k}: the beginning"


def add_units(shown: dict[str, Any], trace: Any, k: int, segment: Any, ops: Any,
              title: str) -> list[Any]:  # fmt: skip
    """The compiled forms of a segment: its graphs, and their native programs."""
    function, wanted = segment.function, segment.wanted(trace.history)
    natives = []
    executors = function.ready(wanted)
    for stage, executor in zip(("forward", "backward"), executors):
        unit = len(shown["units"])
        shown["units"].append({"stage": stage, "segment": k, "name": executor.graph.name})
        lines = data.graph_lines(executor.graph, ops)
        shown[stage].append({"title": title, "unit": unit, "lines": lines})
        shown["pictures"] += graph_picture(executor.graph, f"{stage} {title}".strip(), ops, unit)
        if executor.native is not None:
            natives.append((unit, executor.native, ops))
    if len(executors) == 2:
        rows = data.saved_data(executors[0].graph, executors[1].graph, ops)
        units = [len(shown["units"]) - 2, len(shown["units"]) - 1]
        shown["saved"].append({"units": units, "title": title, "rows": rows})
    return natives


def add_native(shown: dict[str, Any], natives: list[Any]) -> None:
    from . import report_native as native_data

    shown["modules"] = native_data.modules_of([native for _, native, _ in natives])
    modules = {m["name"]: m for m in shown["modules"]}
    for unit, native, ops in natives:
        times = native_data.measure(native)
        kernels = data.kernel_data(unit, native, times, ops)
        for kernel in kernels:
            kernel["note"] = native_data.vector_note(kernel, modules.get(kernel["symbol"]))
        shown["kernels"] += kernels
        shown["memory"].append(data.memory_data(unit, native))


def add_recorded(shown: dict[str, Any], graph: Graph) -> None:
    """Ops that were recorded before the recording was given up."""
    from .ir.printer import number

    names = number(graph)
    shown["rules"] = rules([graph])
    for index, node in enumerate(graph.nodes):
        shown["ops"].append({
            "op": node.op.name, "name": ", ".join(names[v] for v in node.outputs), "index": index,
            "type": ", ".join(str(v.type) for v in node.outputs),
            "origin": None if node.origin is None else node.origin.index,
            "place": None if node.place is None else [node.place.file, node.place.line],
        })  # fmt: skip
    shown["trace"].append(
        {"title": "recorded, then given up", "lines": data.graph_lines(graph, lambda k, node: [k])}
    )


def guard_lines(trace: Any) -> list[str]:
    """What a call must find unchanged to be replayed."""
    environment = trace.environment
    root = trace.root
    lines = [f"{item.var.type} {item.kind} {item.name}".rstrip()
             + (", requires grad" if flag else "")
             for item, flag in zip(root.function.trace.inputs, root.flags)]  # fmt: skip
    lines += [line for guard in environment.guards for line in guard.describe()]
    lines += [f"{type(module).__name__}.training == {module.training}"
              for module in environment.modules]  # fmt: skip
    lines += [f"a .grad is {'None' if none else 'a tensor'}" for _, none in trace.grad_guards]
    lines += [f"{read.name} of a tensor is {other!r}" if isinstance(read, Fact | Identities)
              else f"a number {how.__name__} {other!r} is {outcome}"
              for read, how, other, outcome in trace.comparisons]  # fmt: skip
    return lines


# --- source --------------------------------------------------------------------------------------


def source_data(shown: dict[str, Any], function: Any) -> list[dict[str, Any]]:
    """The user's lines that ops came from, the function's own first: [number, text, ops, ns]."""
    wanted: dict[str, set[int]] = {}
    ops: dict[tuple[str, int], list[int]] = {}
    for k, op in enumerate(shown["ops"]):
        if op["place"] is not None:
            file, line = op["place"]
            ops.setdefault((file, line), []).append(k)
    body = function_lines(function)
    if body is not None:
        wanted[body[0]] = set(body[1])
    for file, line in ops:
        if line not in wanted.setdefault(file, set()):
            wanted[file].update(range(line - CONTEXT, line + CONTEXT + 1))
    heat = heat_of(shown)
    found = []
    for file, numbers in wanted.items():
        last = len(linecache.getlines(file))
        lines = [
            [
                n,
                linecache.getline(file, n).rstrip("\n"),
                ops.get((file, n), []),
                round(heat.get((file, n), 0)),
            ]
            for n in sorted(numbers)
            if 0 < n <= last
        ]
        found.append({"file": file, "lines": lines})
    return found


def function_lines(function: Any) -> tuple[str, range] | None:
    inner = inspect.unwrap(function)
    if not inspect.isroutine(inner):
        inner = getattr(type(inner), "forward", inner)
    try:
        lines, first = inspect.getsourcelines(inner)
        return str(inspect.getsourcefile(inner)), range(first, first + len(lines))
    except (OSError, TypeError):
        return None


def heat_of(shown: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Nanoseconds by source line: a kernel's time, shared among the ops that it computes."""
    heat: dict[tuple[str, int], float] = {}
    for kernel in shown["kernels"]:
        places = [shown["ops"][k]["place"] for k in kernel["ops"]]
        places = [tuple(p) for p in places if p is not None]
        for place in places:
            heat[place] = heat.get(place, 0.0) + (kernel["ns"] or 0.0) / len(places)
    return heat
