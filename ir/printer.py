"""The text form of a graph; `parser.py` reads it back. The grammar is in docs/ir.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from .formulas import Formula
from .graph import ARGUMENT, RESULT, Graph, Node, Output, Place, Var
from .types import DType

# characters that would end a file's name in the text, or begin another token
UNSAFE_IN_FILE = re.compile(r'[\s"\\@{}(),]|^$')
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}

Titles = dict[int, str]  # id of a graph -> the name it prints under


def print_graph(graph: Graph, *, places: bool = True) -> str:
    """One instruction per line; values are numbered in order of definition.

    Graphs held by attributes follow, each once, under names that differ.
    """
    found = list(reached(graph))
    titles: Titles = {}
    for each in found:
        titles[id(each)] = free_name(each.name, set(titles.values()))
    return "\n".join(print_one(each, titles, places) for each in found)


def reached(graph: Graph) -> Iterator[Graph]:
    """The graph and all graphs inside it, outer ones first, each once."""
    seen: set[int] = set()
    waiting = [graph]
    for current in waiting:
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting += [v for node in current.nodes for _, v in node.attrs if isinstance(v, Graph)]


def free_name(name: str, taken: set[str]) -> str:
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def print_one(graph: Graph, titles: Titles, places: bool) -> str:
    names = number(graph)
    notes = [line.rstrip() for note in graph.notes for line in note.splitlines()]
    lines = [f"# {line}" for line in notes if line]
    lines.append(f"graph @{titles[id(graph)]}({print_inputs(graph, names)}) {{")
    lines += [f"  {print_node(node, names, places=places, titles=titles)}" for node in graph.nodes]
    lines.append(f"  return {', '.join(print_output(o, names) for o in graph.outputs)}".rstrip())
    lines.append("}")
    return "\n".join(lines) + "\n"


def number(graph: Graph) -> dict[Var, str]:
    return {var: f"%{k}" for k, var in enumerate(graph.vars())}


def print_inputs(graph: Graph, names: dict[Var, str]) -> str:
    parts = []
    for item in graph.inputs:
        kind = "" if item.kind == ARGUMENT else f" {item.kind}"
        label = f" {quote(item.name)}" if item.name else ""
        parts.append(f"{names[item.var]}: {item.var.type}{kind}{label}")
    return ", ".join(parts)


def print_output(output: Output, names: dict[Var, str]) -> str:
    kind = "" if output.kind == RESULT else f" {output.kind}"
    target = "" if output.target is None else f"={output.target}"
    donated = " donated" if output.donated else ""
    return f"{names[output.var]}{kind}{target}{donated}"


def print_node(
    node: Node, names: dict[Var, str], *, places: bool = True, titles: Titles | None = None
) -> str:
    results = ", ".join(f"{names[v]}: {v.type}" for v in node.outputs)
    operands = ", ".join("none" if v is None else names[v] for v in node.inputs)
    text = f"{results} = {node.op.name}" if results else node.op.name
    if operands:
        text += f" {operands}"
    if node.attrs:
        pairs = (f"{k}={print_value(v, titles)}" for k, v in node.attrs)
        text += " {" + ", ".join(pairs) + "}"
    if node.over:
        text += " over " + ", ".join(names[node.inputs[k]] for k in node.over)  # type: ignore[index]
    if node.origin is not None:
        text += f" ^{node.origin.op}.{node.origin.index}"
    if places and node.place is not None:
        text += f" @{print_place(node.place)}"
    return text


def print_place(place: Place) -> str:
    file = quote(place.file) if UNSAFE_IN_FILE.search(place.file) else place.file
    return f"{file}:{place.line}"


def print_value(value: Any, titles: Titles | None = None) -> str:
    """An attribute: numbers, strings, bools, None, tuples, dtypes and graphs."""
    if isinstance(value, Graph):
        return f"@{(titles or {}).get(id(value), value.name)}"
    if isinstance(value, DType):
        return value.short
    if isinstance(value, Formula):
        return f"`{value}`"
    if isinstance(value, tuple):
        inner = ", ".join(print_value(v, titles) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return print_float(value)
    if isinstance(value, complex):
        return f"complex({print_float(value.real)}, {print_float(value.imag)})"
    if isinstance(value, int):
        return str(int(value))
    raise TypeError(f"attribute {value!r} of {type(value).__name__} has no text form")


def print_float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return repr(float(value))


def quote(text: str) -> str:
    return '"' + "".join(ESCAPES.get(c, c) for c in text) + '"'
