"""`fn.dump("listing")`: assembly with the source line and op of each stretch above it."""

from __future__ import annotations

import linecache
from typing import Any

from . import report_native as native_data
from .report_data import kernel_lines


def listing(trace: Any) -> str:
    """All kernels of a trace; a stretch of assembly follows the Python line it is for."""
    parts = []
    for segment in trace.segments():
        executors = trace.ready(segment)
        for stage, executor in zip(("forward", "backward"), executors):
            if executor.native is None:
                parts.append(f"# {executor.graph.name} runs in the reference interpreter")
                continue
            parts += unit_lines(stage, executor.native)
    return "\n".join(parts) + "\n"


def unit_lines(stage: str, native: Any) -> list[str]:
    program, graph = native.program, native.graph
    modules = {m["name"]: m for m in native_data.modules_of([native])}
    lines = []
    for k, step in enumerate(program.steps):
        info = program.kernels[step.kernel]
        lines.append(f"# {stage}, step {k}: {info.kind} {info.name}")
        module = modules.get(getattr(step, "symbol", ""))
        whole = [graph.nodes[n] for n in info.nodes]
        if module is None or all(mark is None for _, mark in module["asm"]):
            lines += list(dict.fromkeys(header(node) for node in whole))
        nodes = {}
        for _, numbers, _, instruction in kernel_lines(info, graph, lambda k, node: []):
            if instruction is not None and numbers:
                nodes[instruction] = graph.nodes[numbers[0]]
        if module is not None:
            lines += stretches(module["asm"], nodes)
    return lines


def stretches(assembly: list[list[Any]], nodes: dict[int, Any]) -> list[str]:
    """Assembly lines, with a header wherever another op begins."""
    lines, last = [], None
    for text, mark in assembly:
        node = nodes.get(mark)
        if node is not None and node is not last:
            lines.append(header(node))
        if node is not None or not text.startswith("\t"):
            last = node
        lines.append(text)
    return lines


def header(node: Any) -> str:
    """`# tanh, train.py:12: h = torch.tanh(x)`; a derivative says of what."""
    of = f", derivative of {node.origin.op}" if node.origin is not None else ""
    if node.place is None:
        return f"# {node.op.name}{of}"
    source = linecache.getline(node.place.file, node.place.line).strip()
    file = node.place.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"# {node.op.name}{of}, {file}:{node.place.line}: {source}"
