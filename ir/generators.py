"""Graphs for who runs them beside their generators: draws in place of states.

In a graph the state of a generator is a value: 5 KB that each draw takes and gives. A generator
that lives beside the program keeps its state itself, and no draw copies it: each state is taken
once, so the one after a draw may replace the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .graph import RANDOM, Graph, Node, Var, freeze
from .ops.drawing import draw, sample


def bound(graph: Graph, generators: Sequence[Any]) -> Graph:
    """The graph without states: it draws from `generators`, one for each input that is a state.

    Node for node it is the same graph.
    """
    states = [item.var for item in graph.inputs if item.kind == RANDOM]
    holders: dict[Var, Any] = dict(zip(states, generators))
    nodes = tuple(drawing(node, holders) if node.op is sample else node for node in graph.nodes)
    inputs = tuple(item for item in graph.inputs if item.kind != RANDOM)
    places = {item.var: k for k, item in enumerate(inputs)}
    outputs = tuple(
        o if o.target is None else replace(o, target=places[graph.inputs[o.target].var])
        for o in graph.outputs if o.var not in holders
    )  # fmt: skip
    return Graph(graph.name, inputs, nodes, outputs, graph.notes)


def drawing(node: Node, holders: dict[Var, Any]) -> Node:
    """A draw from the generator that holds the state; it holds the next one, too."""
    state, *operands = node.inputs
    result, following = node.outputs
    generator = holders[following] = holders[state]  # type: ignore[index]
    attrs = freeze({**dict(node.attrs), "generator": generator}, draw)
    return Node(draw, tuple(operands), (result,), attrs, node.place, node.origin)
