"""Assembly by op and Python line: `fn.dump("listing")` says it above each stretch, in the order of
launches; `fn.dump("asm")` behind each instruction, by module."""

from __future__ import annotations

import linecache
import re
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
        nodes, rest = ops_of(info, graph)
        if module is None:
            lines += [header(node) for node in rest]
        else:
            lines += stretches(module["asm"], nodes, rest)
    return lines


def ops_of(info: Any, graph: Any) -> tuple[dict[int, Any], list[Any]]:
    """The nodes that a kernel's instructions are for, by instruction; and those of its others,
    where the kernel as a whole is a product, a scan, a sort. Loads are for their first reader."""
    nodes: dict[int, Any] = {}
    rest, at = [], 0
    for text, numbers, _, instruction in kernel_lines(info, graph, lambda k, node: []):
        at = at + 1 if instruction is None else instruction  # stores are not numbered
        named = [int(n) for n in re.findall(r"%(\d+)", text)]
        if instruction is None:
            rest += [graph.nodes[n] for n in numbers]
            nodes.update((at, nodes[n]) for n in named[:1] if n in nodes)
        elif numbers:
            nodes[instruction] = graph.nodes[numbers[0]]
            nodes |= {n: nodes.get(n, nodes[instruction]) for n in named}
    return nodes, rest


def stretches(assembly: list[list[Any]], nodes: dict[int, Any], rest: list[Any]) -> list[str]:
    """Assembly lines, with a header wherever another op begins."""
    lines, last = [], None
    whole = rest[0] if rest else None
    for text, mark in assembly:
        if not text.startswith("\t"):
            last = last if whole else None
        elif (node := nodes.get(mark, whole)) is not None:
            if node is not last:
                lines.append(header(node))
            last = node
        lines.append(text)
    return lines


def header(node: Any) -> str:
    """`# tanh, train.py:12: h = torch.tanh(x)`; a derivative says of what."""
    if node.place is None:
        return f"# {label(node)}"
    return f"# {label(node)}: {linecache.getline(node.place.file, node.place.line).strip()}"


def label(node: Any) -> str:
    """`tanh, train.py:12`"""
    of = f", derivative of {node.origin.op}" if node.origin is not None else ""
    if node.place is None:
        return f"{node.op.name}{of}"
    file = node.place.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{node.op.name}{of}, {file}:{node.place.line}"


# --- one text per module -------------------------------------------------------------------------

MOST_LABELS = 3  # of one instruction, where launches share a module


def assembly(native: Any) -> str:
    """The assembly of all modules; instructions end in the op and Python line they are for."""
    used = users(native)
    parts = []
    for module in native.program.modules:
        data = native_data.module_data(module)
        steps, labels, rest = used[module.symbols[0]]
        numbers = ", ".join(map(str, steps))
        parts.append(f"# {native.graph.name}, step {numbers}: {module.symbols[0]}")
        parts += [commented(text, labels.get(mark, rest)) for text, mark in data["asm"]]
    return "\n".join(parts) + "\n"


def commented(text: str, labels: dict[str, None]) -> str:
    if not labels or not text.startswith("\t") or text.startswith("\t."):
        return text
    shown = "; ".join(list(labels)[:MOST_LABELS])
    more = f" and {len(labels) - MOST_LABELS} more" if len(labels) > MOST_LABELS else ""
    return f"{text.expandtabs():<56}# {shown}{more}"


def users(native: Any) -> dict[str, tuple[list[int], dict[int, dict[str, None]], dict[str, None]]]:
    """By module: the steps that run it, the labels of its instructions, and of its others."""
    program, graph = native.program, native.graph
    modules = {m.symbols[0]: m for m in program.modules}
    found: Any = {name: ([], {}, {}) for name in modules}
    for k, step in enumerate(program.steps):
        module = modules.get(getattr(step, "symbol", ""))
        if module is None:
            continue
        nodes, rest = ops_of(program.kernels[step.kernel], graph)
        for instruction, node in nodes.items():
            found[module.symbols[0]][1].setdefault(instruction, {})[label(node)] = None
        needed = [module.symbols[0]]
        for name in needed:  # it grows: modules import others
            found[name][0].append(k)
            found[name][2].update((label(node), None) for node in rest)
            needed += [n for n in modules[name].imports if n in modules and n not in needed]
    return found
