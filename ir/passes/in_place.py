"""Marks whose memory may be taken: of operands that die, and of inputs that are written back.

The last pass, since marks say who reads what no more: `over` on nodes, `donated` on write-backs
(see `lifetimes.py`). Codegen writes in place where marks allow it and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace

from ..graph import Graph, Node
from ..lifetimes import Lifetimes


def run(graph: Graph) -> Graph:
    lifetimes = Lifetimes(graph)
    nodes = tuple([marked(node, overwritten(node, index, lifetimes))
                   for index, node in enumerate(graph.nodes)])  # fmt: skip
    outputs = tuple(replace(o, donated=lifetimes.may_donate(o)) for o in graph.outputs)
    result = graph.replace(nodes=nodes, outputs=outputs)
    return graph if result.nodes == graph.nodes and same_outputs(graph, result) else result


def overwritten(node: Node, index: int, lifetimes: Lifetimes) -> tuple[int, ...]:
    """Positions of the operands whose memory the node's result may take, each value once."""
    inputs = node.inputs
    return tuple([k for k, var in enumerate(inputs)
                  if inputs.index(var) == k and lifetimes.may_overwrite(index, k)])  # fmt: skip


def marked(node: Node, over: tuple[int, ...]) -> Node:
    return node if node.over == over else node.taking(over)


def same_outputs(a: Graph, b: Graph) -> bool:
    return [o.donated for o in a.outputs] == [o.donated for o in b.outputs]
