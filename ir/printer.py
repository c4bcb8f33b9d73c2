"""The text form of a graph; `parser.py` reads it back. The grammar is in docs/ir.md."""

from __future__ import annotations

import math
from typing import Any

from .graph import ARGUMENT, RESULT, Graph, Node, Var
from .types import DType


def print_graph(graph: Graph, *, places: bool = True) -> str:
    """One instruction per line; values are numbered in order of definition."""
    names = number(graph)
    inner = [value for node in graph.nodes for _, value in node.attrs if isinstance(value, Graph)]
    lines = [f"# {note}" for note in graph.notes]
    lines.append(f"graph @{graph.name}({print_inputs(graph, names)}) {{")
    lines += [f"  {print_node(node, names, places=places)}" for node in graph.nodes]
    lines.append(f"  return {', '.join(print_output(o, names) for o in graph.outputs)}".rstrip())
    lines.append("}")
    for nested in inner:
        lines += ["", print_graph(nested, places=places).rstrip()]
    return "\n".join(lines) + "\n"


def number(graph: Graph) -> dict[Var, str]:
    return {var: f"%{k}" for k, var in enumerate(graph.vars())}


def print_inputs(graph: Graph, names: dict[Var, str]) -> str:
    parts = []
    for item in graph.inputs:
        kind = "" if item.kind == ARGUMENT else f" {item.kind}"
        label = f' "{escape(item.name)}"' if item.name else ""
        parts.append(f"{names[item.var]}: {item.var.type}{kind}{label}")
    return ", ".join(parts)


def print_output(output: Any, names: dict[Var, str]) -> str:
    kind = "" if output.kind == RESULT else f" {output.kind}"
    target = "" if output.target is None else f"={output.target}"
    return f"{names[output.var]}{kind}{target}"


def print_node(node: Node, names: dict[Var, str], *, places: bool = True) -> str:
    results = ", ".join(f"{names[v]}: {v.type}" for v in node.outputs)
    operands = ", ".join("none" if v is None else names[v] for v in node.inputs)
    text = f"{results} = {node.op.name}" if results else node.op.name
    if operands:
        text += f" {operands}"
    if node.attrs:
        text += " {" + ", ".join(f"{k}={print_value(v)}" for k, v in node.attrs) + "}"
    if node.origin is not None:
        text += f" ^{node.origin.op}.{node.origin.index}"
    if places and node.place is not None:
        text += f" @{node.place}"
    return text


def print_value(value: Any) -> str:
    """An attribute: numbers, strings, bools, None, tuples, dtypes and graphs."""
    if isinstance(value, Graph):
        return f"@{value.name}"
    if isinstance(value, DType):
        return value.short
    if isinstance(value, tuple):
        inner = ", ".join(map(print_value, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, str):
        return f'"{escape(value)}"'
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


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
