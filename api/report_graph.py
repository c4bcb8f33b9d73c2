"""The pictures of a report: graphs with their layout, boxes tied to nodes and ops."""

from __future__ import annotations

from typing import Any

from .drawing import curve, draw_graph
from .ir.graph import Graph

MOST_BOXES = 800  # more than that cannot be read, and makes the page large


def graph_picture(graph: Graph, title: str, ops: Any, unit: int | None = None) -> list[Any]:
    """The picture of a graph, as a list: empty if it is too large."""
    picture = draw_graph(graph)
    if len(picture.items) > MOST_BOXES:
        return []
    layout = picture.layout()
    numbers = {node: k for k, node in enumerate(graph.nodes)}
    boxes = []
    for item in picture.items:
        box = layout.boxes[item.key]
        number = numbers.get(picture.source_of(item.key))
        boxes.append([
            round(box.x - box.width / 2), round(box.y), round(box.width), round(box.height),
            item.kind, list(item.lines), [] if number is None else [number],
            [] if number is None else ops(number, graph.nodes[number]),
        ])  # fmt: skip
    found = {"title": title, "width": round(layout.width), "height": round(layout.height),
             "boxes": boxes, "paths": [curve(path, digits=0) for path in layout.paths]}  # fmt: skip
    return [found if unit is None else {**found, "unit": unit}]
