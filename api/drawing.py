"""`draw(value)`: the autograd graph of a tensor, or a graph of the IR, as SVG or DOT."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from .ir.graph import RESULT, Graph
from .ir.printer import number, print_value
from .placement import Box, Layout, arrange
from .tracer.tape import AccumulateGrad, describe_place
from .tracer.tensor import Tensor

LETTER, LINE = 6.7, 14.0
STYLE = """
.wengert { font: 11px ui-monospace, Menlo, Consolas, monospace; }
.wengert rect { stroke: #5b6675; fill: #eef3fa; rx: 5px; }
.wengert .leaf rect { fill: #dff2df; }
.wengert .derivative rect { fill: #fdebd3; }
.wengert .result rect { fill: #f3e3f7; }
.wengert text { fill: #1d2530; } .wengert .dim { fill: #6d7683; }
.wengert path { fill: none; stroke: #8b95a3; } .wengert marker path { fill: #8b95a3; }
@media (prefers-color-scheme: dark) {
.wengert rect { fill: #25303f; stroke: #7c8896; } .wengert .leaf rect { fill: #22402a; }
.wengert .derivative rect { fill: #4a3820; } .wengert .result rect { fill: #40294a; }
.wengert text { fill: #e4e8ee; } .wengert .dim { fill: #9aa5b3; } }
"""


@dataclass(frozen=True)
class Item:
    """A box of the picture: lines of text, the first one large, and a kind for its colour."""

    key: Any
    lines: tuple[str, ...]
    kind: str = "op"
    tip: str = ""


class Picture:
    """A drawn graph; shows itself in notebooks.

    >>> wengert.draw(loss).save("loss.svg")
    """

    def __init__(self, items: list[Item], edges: list[tuple[Any, Any, str]], title: str):
        self.title, self.sources = title, {item.key for item in items}
        self.items, self.edges = beside_readers(items, edges)

    def source_of(self, key: Any) -> Any:
        """What a box is of: several may be of one weight."""
        return key if key in self.sources else key[0]

    def layout(self) -> Layout:
        """Where boxes and edges are."""
        boxes = [Box(i.key, 14 + LETTER * max(map(len, i.lines)), 8 + LINE * len(i.lines))
                 for i in self.items]  # fmt: skip
        return arrange(boxes, [(start, end) for start, end, _ in self.edges])

    @property
    def svg(self) -> str:
        """The picture as a self-contained SVG text."""
        layout = self.layout()
        size = f'width="{layout.width:.0f}" height="{layout.height:.0f}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="wengert" {size} '
            f'viewBox="0 0 {layout.width:.0f} {layout.height:.0f}" role="img" '
            f'aria-label="{escape(self.title)}">',
            f"<title>{escape(self.title)}</title><style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        ]
        parts += [edge_svg(path) for path in layout.paths]
        parts += [item_svg(item, layout) for item in self.items]
        return "\n".join([*parts, "</svg>\n"])

    def _repr_svg_(self) -> str:
        return self.svg

    @property
    def dot(self) -> str:
        """The graph in the DOT language of Graphviz."""
        names = {item.key: f"n{k}" for k, item in enumerate(self.items)}
        lines = [f"digraph {quoted(self.title)} {{", "  node [shape=box, fontname=monospace];"]
        for item in self.items:
            lines.append(f"  {names[item.key]} [label={quoted(chr(10).join(item.lines))}, "
                         f"class={quoted(item.kind)}];")  # fmt: skip
        for start, end, label in self.edges:
            note = f" [label={quoted(label)}]" if label else ""
            lines.append(f"  {names[start]} -> {names[end]}{note};")
        return "\n".join([*lines, "}\n"])

    def save(self, path: Any) -> str:
        """Writes the picture: DOT where the name ends in .dot or .gv, else SVG."""
        path = Path(path)
        path.write_text(self.dot if path.suffix in (".dot", ".gv") else self.svg)
        return str(path)

    def __repr__(self) -> str:
        return f"<picture of {self.title}: {len(self.items)} boxes, {len(self.edges)} edges>"


def beside_readers(items: list[Item], edges: list[tuple[Any, Any, str]]) -> tuple[
        list[Item], list[tuple[Any, Any, str]]]:  # fmt: skip
    """Draws what is made from nothing, a weight or a constant, beside each of its readers.

    Else edges from the top would run through the whole picture, one for every layer.
    """
    made = {end for _, end, _ in edges}
    copies: dict[Any, list[Any]] = {item.key: [] for item in items if item.key not in made}
    moved = []
    for start, end, label in edges:
        if start in copies:
            copy = (start, len(copies[start]))
            copies[start].append(copy)
            start = copy
        moved.append((start, end, label))
    drawn: list[Item] = []
    for item in items:
        drawn += [replace(item, key=copy) for copy in copies.get(item.key, ())] or [item]
    return drawn, moved


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def item_svg(item: Item, layout: Layout) -> str:
    box = layout.boxes[item.key]
    left = box.x - box.width / 2
    rows = "".join(
        f'<text x="{left + 7:.1f}" y="{box.y + 14 + LINE * k:.1f}"'
        f"{'' if k == 0 else ' class=' + chr(34) + 'dim' + chr(34)}>{escape(line)}</text>"
        for k, line in enumerate(item.lines)
    )
    tip = f"<title>{escape(item.tip)}</title>" if item.tip else ""
    return (f'<g class="{item.kind}">{tip}<rect x="{left:.1f}" y="{box.y:.1f}" '
            f'width="{box.width:.1f}" height="{box.height:.1f}"/>{rows}</g>')  # fmt: skip


def edge_svg(path: list[tuple[float, float]]) -> str:
    return f'<path d="{curve(path)}" marker-end="url(#tip)"/>'


def curve(path: list[tuple[float, float]], digits: int = 1) -> str:
    """A smooth line through the points, upright at each of them."""
    x, y = path[0]
    text = f"M{x:.{digits}f} {y:.{digits}f}"
    for nx, ny in path[1:]:
        points = (x, (y + ny) / 2, nx, (y + ny) / 2, nx, ny)
        text += "C" + " ".join(f"{value:.{digits}f}" for value in points)
        x, y = nx, ny
    return text


# --- what is drawn -------------------------------------------------------------------------------


def draw(value: Any) -> Picture:
    """A picture of the autograd graph of tensors, or of a graph of the IR.

    >>> wengert.draw(loss)                      # grad_fn, next_functions, leaves
    >>> wengert.draw(step.graph("backward"))    # a graph of a compiled function
    """
    if hasattr(value, "graph") and callable(value.graph):  # a compiled function
        value = value.graph("trace")
    if isinstance(value, Graph):
        return draw_graph(value)
    tensors = list(value) if isinstance(value, list | tuple) else [value]
    if not tensors or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError("draw() takes a tensor, several of them, a graph or a compiled function, "
                        f"not {type(value).__name__}")  # fmt: skip
    return draw_history(tensors)


def short(place: str) -> str:
    return place.replace("\\", "/").rsplit("/", 1)[-1]


def draw_graph(graph: Graph) -> Picture:
    """Inputs at the top, results at the bottom."""
    names = number(graph)
    items, edges = [], []
    for item in graph.inputs:
        label = f"{names[item.var]} {item.name}".rstrip()
        items.append(Item(item.var, (label, f"{item.var.type} {item.kind}"), "leaf"))
    home = {item.var: item.var for item in graph.inputs}
    for node in graph.nodes:
        title = f"{', '.join(names[v] for v in node.outputs)} {node.op.name}"
        attrs = ", ".join(f"{k}={print_value(v)}" for k, v in node.attrs)
        lines = [title, ", ".join(str(v.type) for v in node.outputs)]
        if node.origin is not None:
            lines.append(f"of {node.origin.op}.{node.origin.index}")
        if node.place is not None:
            lines.append(short(str(node.place)))
        kind = "op" if node.origin is None else "derivative"
        items.append(Item(node, tuple(lines), kind, f"{title} {{{attrs}}} {node.place or ''}"))
        edges += [(home[v], node, names[v]) for v in dict.fromkeys(node.present())]
        home.update((v, node) for v in node.outputs)
    for output in graph.outputs:
        target = "" if output.target is None else f" {output.target}"
        label = "result" if output.kind == RESULT else f"{output.kind}{target}"
        items.append(Item(output, (label, names[output.var]), "result"))
        edges.append((home[output.var], output, names[output.var]))
    return Picture(items, edges, f"@{graph.name}")


def draw_history(tensors: list[Tensor]) -> Picture:
    """Leaves at the top, the tensors at the bottom: the way values flowed."""
    items: list[Item] = []
    edges: list[tuple[Any, Any, str]] = []
    seen: set[Any] = set()
    for tensor in tensors:
        for node in in_order(tensor.grad_fn, seen):
            items.append(node_item(node))
            for position, (source, _) in enumerate(node.next_functions):
                if source is not None:
                    edges.append((source, node, str(position)))
    for k, tensor in enumerate(tensors):
        key = ("result", k)
        items.append(Item(key, ("result" if len(tensors) == 1 else f"result {k}",
                                f"{tensor.type_}"), "result"))  # fmt: skip
        if tensor.grad_fn is not None:
            edges.append((tensor.grad_fn, key, ""))
    return Picture(items, edges, "autograd graph")


def in_order(root: Any, seen: set[Any]) -> list[Any]:
    """Nodes behind `root` that are new, those that others need first; without recursion."""
    found: list[Any] = []
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        if node is None or (not done and node in seen):
            continue
        if done:
            found.append(node)
            continue
        seen.add(node)
        stack.append((node, True))
        stack += [(source, False) for source, _ in node.next_functions if source not in seen]
    return found


def node_item(node: Any) -> Item:
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        return Item(node, ("leaf", str(leaf.type_)), "leaf", "AccumulateGrad")
    lines = [node.name(), ", ".join(map(str, node.output_types()))]
    if node.place is not None:
        lines.append(short(describe_place(node.place)))
    saved = ", ".join(n for n in dir(node) if n.startswith("_saved_"))
    return Item(node, tuple(filter(None, lines)), "op", f"saved: {saved}" if saved else "")
