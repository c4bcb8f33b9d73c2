"""A graph with symbolic sizes, and the graphs of plain sizes it stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .dims import as_formulas, at_sizes
from .formulas import Formula
from .graph import Attrs, Graph, Input, Node, Output, Var, freeze


class NoInstance(Exception):
    """The graph has no instance of these sizes, though its guards hold."""


def with_formulas(graph: Graph) -> Graph:
    """A recorded graph with formulas in place of Dims, on the same Vars."""
    for var in graph.vars():
        var.type = as_formulas(var.type)
    nodes = tuple(replace(n, attrs=mapped(n.attrs, as_formulas, with_formulas))
                  for n in graph.nodes)  # fmt: skip
    return graph.replace(nodes=nodes)


def mapped(attrs: Attrs, value: Callable[[Any], Any], graph: Callable[[Graph], Graph]) -> Attrs:
    """Attributes with `value` of each, or `graph` where it is a graph."""
    return tuple((k, graph(v) if isinstance(v, Graph) else value(v)) for k, v in attrs)


def instantiate(graph: Graph, sizes: Mapping[str, int]) -> tuple[Graph, dict[Var, Var]]:
    """The graph of plain sizes, checked by inference; and what became of each Var."""
    news = {item.var: Var(at_sizes(item.var.type, sizes)) for item in graph.inputs}
    nodes = tuple(instance(node, sizes, news) for node in graph.nodes)
    inputs = tuple(Input(news[i.var], i.kind, i.name) for i in graph.inputs)
    outputs = tuple(Output(news[o.var], o.kind, o.target) for o in graph.outputs)
    return Graph(graph.name, inputs, nodes, outputs, graph.notes), news


def instance(node: Node, sizes: Mapping[str, int], news: dict[Var, Var]) -> Node:
    """One node of the instance; its outputs join `news`."""
    plain = mapped(node.attrs, lambda v: at_sizes(v, sizes), lambda g: instantiate(g, sizes)[0])
    attrs = freeze(dict(plain), node.op)
    inputs = tuple(None if v is None else news[v] for v in node.inputs)
    expected = tuple(at_sizes(v.type, sizes) for v in node.outputs)
    found = inferred(node, inputs, attrs)
    if found != expected:
        raise NoInstance(f"{node.op.name} gives {found}, not {expected}")
    outputs = tuple(map(Var, expected))
    news.update(zip(node.outputs, outputs))
    return replace(node, inputs=inputs, outputs=outputs, attrs=attrs)


def inferred(node: Node, inputs: Any, attrs: Any) -> Any:
    try:
        return node.op.infer_types([None if v is None else v.type for v in inputs], dict(attrs))
    except Exception as error:
        raise NoInstance(f"{node.op.name}: {error}") from error


def is_symbolic(graph: Graph) -> bool:
    """Are there inputs whose sizes have names?"""
    return any(isinstance(size, Formula) for item in graph.inputs for size in item.var.type.shape)


def sizes_of(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    """The sizes that inputs of these shapes give to names; TypeError where they contradict."""
    sizes: dict[str, int] = {}
    for item, shape in zip(graph.inputs, shapes):
        for size, known in zip(shape, item.var.type.shape):
            if isinstance(known, Formula) and len(known.names()) == 1 and (
                    str(known) in known.names()):  # fmt: skip
                sizes.setdefault(str(known), size)
    for item in graph.inputs:
        unknown = {n for s in item.var.type.shape if isinstance(s, Formula) for n in s.names()}
        if unknown - sizes.keys():
            raise TypeError(f"@{graph.name}: the size {min(unknown - sizes.keys())} of "
                            f"{item.var.type} is not the size of an input")  # fmt: skip
    return sizes


def instance_for(graph: Graph, shapes: Sequence[tuple[int, ...]]) -> Graph:
    """The graph of plain sizes for inputs of these shapes; the graph itself where it is plain."""
    if not is_symbolic(graph):
        return graph
    try:
        return instantiate(graph, sizes_of(graph, shapes))[0]
    except NoInstance as error:
        raise TypeError(f"@{graph.name} can't take inputs of these sizes: {error}") from error
