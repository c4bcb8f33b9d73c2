"""What a report shows, as plain data: graphs, kernels, passes and memory, tied together by op.

An op is a node of the recorded trace; `ops` lists them all. Every line of every pane names the ops
it belongs to, and lines of optimised graphs and of their kernels name nodes of that graph as well,
so a page can light the exact node where it is known and the whole op elsewhere.
"""

from __future__ import annotations

import difflib
import linecache
import re
import textwrap
from typing import Any

from .ir.graph import SAVED, Graph, Node
from .ir.printer import number, print_node, print_output
from .ir.program import HostCall

VERSION = 2
MOST_NAMES = 5  # of ops in a kernel's title
MOST_RULE_LINES = 14
Line = list[Any]  # text, node numbers, op numbers


def graph_lines(graph: Graph, ops: Any) -> list[Line]:
    """The printed graph, each instruction with its number; `ops` tells the ops of a node."""
    text = graph.print().splitlines()
    start = len(graph.notes) + 1
    lines: list[Line] = [[line, [], []] for line in text]
    for k, node in enumerate(graph.nodes):
        lines[start + k][1:] = [[k], ops(k, node)]
    return lines


class Segments:
    """The segments of a trace, and the number of each recorded op in the whole report."""

    def __init__(self, segments: list[Any]):
        self.segments = segments
        self.first: list[int] = []
        self.ops: list[dict[str, Any]] = []
        self.rules: dict[str, Any] = {}
        for k, segment in enumerate(segments):
            self.first.append(len(self.ops))
            names = number(segment.function.trace)
            for index, node in enumerate(segment.function.trace.nodes):
                self.ops.append(self.describe(k, segment, index, node, names))

    def describe(self, k: int, segment: Any, index: int, node: Node, names: Any) -> dict[str, Any]:
        origin = None
        if node.origin is not None:
            at = node.origin.index - segment.first  # recorded origins count from the trace's start
            origin = self.first[k] + at if at >= 0 else None
        return {
            "op": node.op.name, "name": ", ".join(names[v] for v in node.outputs), "origin": origin,
            "type": ", ".join(str(v.type) for v in node.outputs), "index": index,
            "place": None if node.place is None else [node.place.file, node.place.line],
        }  # fmt: skip

    def of(self, k: int) -> Any:
        """The ops of a node of a graph made from segment `k`."""

        def ops(_: int, node: Node) -> list[int]:
            if node.place is None or node.place.node < 0:
                return []
            return [self.first[k] + node.place.node]

        return ops

    def of_trace(self, k: int) -> Any:
        return lambda index, node: [self.first[k] + index]


def rules_of(node: Node) -> list[list[str]]:
    """(input, parameters, source, place) of each rule; its parameters are what is saved."""
    found = []
    for position, rule in sorted(node.op.rules.items()):
        code = getattr(rule.function, "__code__", None)
        if code is None:
            continue
        parameters = ", ".join(code.co_varnames[: code.co_argcount])
        place = "/".join(code.co_filename.replace("\\", "/").split("/")[-3:])
        found.append([node.op.input_name(position), parameters, source_of(code),
                      f"{place}:{code.co_firstlineno}"])  # fmt: skip
    return found


def source_of(code: Any) -> str:
    """The lines of a function."""
    first = code.co_firstlineno
    last = max((line or first for _, _, line in code.co_lines()), default=first)
    numbers = range(first, min(last, first + MOST_RULE_LINES) + 1)
    return textwrap.dedent(
        "".join(linecache.getline(code.co_filename, n) for n in numbers)
    ).rstrip()


# --- kernels -------------------------------------------------------------------------------------

INSTRUCTION = re.compile(r"^\s+(?:%(\d+): \w+ = )?(?:reduce )?(\w*)(\[?)([^{@]*)")


def kernel_lines(info: Any, graph: Graph, ops: Any) -> list[Line]:
    """A kernel's text; each line with its instruction's number and the nodes it computes."""
    lines = []
    matcher = Matcher(info, graph)
    for k, text in enumerate(info.text.splitlines()):
        found = INSTRUCTION.match(text)
        instruction = int(found[1]) if found and found[1] else None
        if info.kind == "host" or (k == 0 and not text.startswith(("for", "once"))):
            nodes = matcher.whole(text)
        else:
            nodes = matcher.nodes(text, found, instruction) if found else []
        belong = sorted({op for n in nodes for op in ops(n, graph.nodes[n])})
        lines.append([text, nodes, belong, instruction])
    return lines


def attributes(node: Node) -> str:
    """As kernels print them."""
    return ", ".join(f"{k}={v}" for k, v in node.attrs)


class Matcher:
    """Finds the node of a kernel's line: by op and source line, then by what its operands are.

    An operand in a register is the node of its line; one that is loaded was made by another step.
    """

    def __init__(self, info: Any, graph: Graph):
        self.info, self.graph = info, graph
        self.inside = set(info.nodes)
        self.known: dict[int, list[int]] = {}  # by instruction
        self.makers = {v: k for k, n in enumerate(graph.nodes) for v in n.outputs}

    def whole(self, text: str) -> list[int]:
        """A line that stands for the kernel: a product, a host call."""
        name = text.split(" ")[0]
        named = [n for n in self.info.nodes if self.graph.nodes[n].op.name == name]
        return named or list(self.info.nodes)

    def nodes(self, text: str, found: Any, instruction: int | None) -> list[int]:
        name, bracket = found[2], found[3]
        if bracket or not name or instruction is None:
            return []
        place = text.rpartition("  @")[2] if "  @" in text else None
        nodes = [n for n in self.info.nodes if self.graph.nodes[n].op.name == name
                 and (place is None or str(self.graph.nodes[n].place) == place)]  # fmt: skip
        nodes = [n for n in nodes if attributes(self.graph.nodes[n]) in text] or nodes
        operands = [int(n) for n in re.findall(r"%(\d+)", found[4])]
        fitting = [n for n in nodes if self.fits(n, operands)] or nodes
        self.known[instruction] = fitting
        return fitting

    def fits(self, number: int, operands: list[int]) -> bool:
        """Could these instructions be the operands of a node?"""
        present = list(self.graph.nodes[number].present())
        if len(present) != len(operands):
            return True  # an access by index, or a constant: nothing is known
        for var, operand in zip(present, operands):
            maker = self.maker(var)
            possible = self.known.get(operand)
            if possible is None and maker in self.inside:
                return False
            if possible and maker not in possible:
                return False
        return True

    def maker(self, var: Any) -> int | None:
        """The node that computes a value, looking through views."""
        number = self.makers.get(var)
        while number is not None and self.graph.nodes[number].op.kind == "view":
            number = self.makers.get(next(self.graph.nodes[number].present()))
        return number


def kernel_data(unit: int, native: Any, times: list[float | None], ops: Any) -> list[Any]:
    """A section per step that runs, in order."""
    program, graph, found = native.program, native.graph, []
    infos = with_folded([program.kernels[step.kernel] for step in program.steps], graph)
    for k, (step, info) in enumerate(zip(program.steps, infos)):
        found.append({
            "unit": unit, "number": k, "name": info.name, "kind": info.kind, "ns": times[k],
            "title": kernel_title(info, graph),
            "bytes": info.bytes, "flops": info.flops, "nodes": list(info.nodes),
            "ops": sorted({op for n in info.nodes for op in ops(n, graph.nodes[n])}),
            "chunks": 0 if isinstance(step, HostCall) else step.chunks,
            "reads": [program.buffers[b].name for b in step.reads],
            "writes": [program.buffers[b].name for b in step.writes],
            "symbol": "" if isinstance(step, HostCall) else step.symbol,
            "lines": kernel_lines(info, graph, ops),
        })  # fmt: skip
    return found


def with_folded(infos: list[Any], graph: Graph) -> list[Any]:
    """The kernels, with nodes that have none of their own given to those that read them.

    A product whose result is only transposed, say, is computed under the name of the transpose.
    """
    homes = {n: {k} for k, info in enumerate(infos) for n in info.nodes}
    readers: dict[Any, list[int]] = {}
    for n, node in enumerate(graph.nodes):
        for var in node.present():
            readers.setdefault(var, []).append(n)
    extra: dict[int, list[int]] = {}
    for n in reversed(range(len(graph.nodes))):
        if n in homes or not computes(graph.nodes[n]):
            continue
        near = [homes.get(r, set()) for v in graph.nodes[n].outputs for r in readers.get(v, ())]
        homes[n] = set().union(*near)
        for k in homes[n]:
            extra.setdefault(k, []).append(n)
    return [info._replace(nodes=(*info.nodes, *sorted(extra.get(k, ()))))
            for k, info in enumerate(infos)]  # fmt: skip


def computes(node: Node) -> bool:
    """Is there work in it? Views and constants have none."""
    return node.op.kind != "view" and any(True for _ in node.present())


def kernel_title(info: Any, graph: Graph) -> str:
    """What a kernel computes, in a few words: its ops without views and constants."""
    nodes = [graph.nodes[n] for n in info.nodes]
    names = [n.op.name for n in nodes if computes(n)]
    names = list(dict.fromkeys(names)) or [n.op.name for n in nodes[:1]] or [info.kind]
    return ", ".join(names[:MOST_NAMES]) + (" \u2026" if len(names) > MOST_NAMES else "")


def memory_data(unit: int, native: Any) -> dict[str, Any]:
    plan = native.runnable.plan
    return {
        "unit": unit, "total": plan.total, "live": plan.live_peak,
        "steps": len(native.program.steps), "text": str(plan),
        "buffers": [[b.name, b.size, b.first_use, b.last_use, plan.offsets[b.name]]
                    for b in plan.buffers],
        "others": [[b.kind, b.name, b.nbytes] for b in native.program.buffers
                   if b.kind != "temporary"],
    }  # fmt: skip


def saved_data(forward: Graph, backward: Graph, ops: Any) -> list[list[Any]]:
    """What backward is given: (name in backward, name in forward, type, bytes, ops, readers)."""
    before, after = number(forward), number(backward)
    makers = {v: (k, n) for k, n in enumerate(forward.nodes) for v in n.outputs}
    rows = []
    for item in backward.inputs:
        if item.kind != SAVED:
            continue
        made = makers.get(item.var)
        readers = [k for k, n in enumerate(backward.nodes) if item.var in n.inputs]
        rows.append([after[item.var], before.get(item.var, ""), str(item.var.type),
                     item.var.type.nbytes, ops(*made) if made else [], readers,
                     made[1].op.name if made else "input"])  # fmt: skip
    return rows


# --- passes --------------------------------------------------------------------------------------


class Names(dict):  # type: ignore[type-arg]
    """Numbers for values that stay the same from pass to pass, so that only changes differ."""

    def __missing__(self, var: Any) -> str:
        self[var] = name = f"%{len(self)}"
        return name


def stable_lines(graph: Graph, names: Names, *, places: bool = True) -> list[str]:
    inputs = ", ".join(f"{names[i.var]}: {i.var.type}" for i in graph.inputs)
    for node in graph.nodes:
        for var in node.outputs:
            _ = names[var]
    lines = [f"graph @{graph.name}({inputs}) {{"]
    lines += [f"  {print_node(n, names, places=places)}" for n in graph.nodes]
    lines += [f"  return {', '.join(print_output(o, names) for o in graph.outputs)}", "}"]
    return lines


def pass_data(start: Graph, steps: list[Any], ops: Any) -> list[dict[str, Any]]:
    """The graph before and after each pass that changed it; lines as [mark, text, ops]."""
    names = Names()
    before = lines_with_ops(start, names, ops)
    found = [{"name": "as it was", "lines": [[" ", *line] for line in before], "error": ""}]
    for step in steps:
        after = lines_with_ops(step.graph, names, ops)
        found.append({"name": step.name, "lines": list(marks(before, after)), "error": step.error})
        before = after
    return found


def lines_with_ops(graph: Graph, names: Names, ops: Any) -> list[tuple[str, list[int]]]:
    belong = [[], *(ops(k, node) for k, node in enumerate(graph.nodes)), [], []]
    return list(zip(stable_lines(graph, names), belong))


def marks(before: list[Any], after: list[Any]) -> Any:
    """All lines, each with ' ', '-' or '+' before it."""
    texts = [[line[0] for line in lines] for lines in (before, after)]
    matcher = difflib.SequenceMatcher(None, *texts, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            yield from ([" ", *line] for line in before[a:b])
        else:
            yield from (["-", *line] for line in before[a:b])
            yield from (["+", *line] for line in after[c:d])
