"""Drops nodes whose results nobody reads."""

from __future__ import annotations

from ..graph import Graph, Var


def run(graph: Graph) -> Graph:
    needed: set[Var] = {output.var for output in graph.outputs}
    kept = []
    for node in reversed(graph.nodes):
        if any(v in needed for v in node.outputs):
            needed.update(node.present())
            kept.append(node)
    if len(kept) == len(graph.nodes):
        return graph
    return graph.replace(nodes=tuple(reversed(kept)))
