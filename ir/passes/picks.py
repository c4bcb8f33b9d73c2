"""Picking few elements of a computed value: the elements are computed, not the value.

Equations (exact, also for NaN, infinities and -0.0), with an index much smaller than the value:

    gather(f(a, b), i)      == f(gather(a, i), gather(b, i))        f pointwise
    gather(expand(x), i)    == expand(x)                            x has size 1 along the dimension
    gather(expand(x), i)    == view(gather(view(x), view(i)))       x varies along it alone
    gather(full(c), i)      == full(c)
    sum(scatter(0, i, x))   == x + 0.0                              one index per line

Cross entropy is what they are for: without them its log-probabilities are stored to read one per
row, and its gradient sums rows that hold one number each.
"""

from __future__ import annotations

from typing import Any

from ..builder import Symbol
from ..graph import Graph, Node, Var
from ..op import TABLE
from .rewrite import rebuild
from .simplify import uniform

MUCH_SMALLER = 8
MAX_NODES, MAX_GATHERS = 6, 2  # of one picked expression: beyond that it is better stored


def run(graph: Graph) -> Graph:
    producers = graph.producers()

    def rule(node: Node, operands: list[Any]) -> Any:
        if node.op.name == "gather":
            return Pick(node, producers).rewritten(operands)
        return sum_of_scatter(node, operands, producers)

    return rebuild(graph, rule, about=lambda node: node.op.name in ("gather", "sum"))


class Pick:
    """A gather, to be moved up through the ops that compute what it reads."""

    def __init__(self, node: Node, producers: dict[Var, Node]):
        self.node, self.producers = node, producers
        self.dim: int = node.attributes["dim"]
        self.nodes = self.gathers = 0

    def rewritten(self, operands: list[Any]) -> Any:
        source, index = self.node.inputs
        assert source is not None and index is not None
        if index.type.numel * MUCH_SMALLER > source.type.numel:
            return None
        rest = [(n, m) for d, (n, m) in enumerate(zip(source.shape, index.shape)) if d != self.dim]
        if any(n != m for n, m in rest) or not self.possible(source) or not self.nodes:
            return None
        if not self.gathers:  # nobody would look at the index
            return None
        return self.picked(source, operands[1])

    def possible(self, var: Var) -> bool:
        """Counts what the picked expression takes, as far as that is little."""
        node = self.producers.get(var)
        if node is not None and self.is_pointwise(node):
            self.nodes += 1
            return self.nodes <= MAX_NODES and all(map(self.possible, node.present()))
        if not self.is_uniform_along(node):
            self.gathers += 1
        return self.gathers <= MAX_GATHERS

    def is_pointwise(self, node: Node) -> bool:
        shape = node.outputs[0].shape
        return node.op.kind == "pointwise" and all(
            v is not None and v.shape == shape for v in node.inputs)  # fmt: skip

    def is_uniform_along(self, node: Node | None) -> bool:
        """Is every element along the dimension the same?"""
        if node is None or node.op.name not in ("expand", "full"):
            return False
        return node.op.name == "full" or self.size_along(node) == 1

    def size_along(self, expanded: Node) -> int:
        """The size along the dimension of what is expanded."""
        (source,) = expanded.inputs
        assert source is not None
        dim = self.dim - len(expanded.outputs[0].shape) + len(source.shape)
        return 1 if dim < 0 else source.shape[dim]

    def varies_along_alone(self, node: Node | None) -> bool:
        """Is it one line along the dimension, repeated?"""
        if node is None or node.op.name != "expand":
            return False
        size = self.size_along(node)
        return size == node.inputs[0].type.numel == node.outputs[0].shape[self.dim]  # type: ignore

    def picked(self, var: Var, index: Any) -> Any:
        node = self.producers.get(var)
        size = tuple(index.shape)
        if node is not None and self.is_pointwise(node):
            operands = [self.picked(v, index) for v in node.present()]
            return TABLE[node.op.name](*operands, **node.attributes)
        if self.is_uniform_along(node):
            assert node is not None
            if node.op.name == "full":
                return TABLE["full"](**{**node.attributes, "size": size})
            return TABLE["expand"](Symbol(node.inputs[0]), size=size)  # type: ignore[arg-type]
        if self.varies_along_alone(node):
            assert node is not None
            line, places = flat(Symbol(node.inputs[0])), flat(index)  # type: ignore[arg-type]
            return TABLE["view"](TABLE["gather"](line, places, dim=0), size=size)
        return TABLE["gather"](Symbol(var), index, dim=self.dim)


def flat(value: Any) -> Any:
    """A value in one dimension."""
    return value if value.dim() == 1 else TABLE["view"](value, size=(value.numel(),))


def sum_of_scatter(node: Node, operands: list[Any], producers: dict[Var, Node]) -> Any:
    """The sum along the lines of a scatter of one number per line into zeros."""
    source = node.inputs[0]
    scatter = producers.get(source) if source is not None else None
    attrs = node.attributes
    if scatter is None or scatter.op.name != "scatter" or not attrs.get("keepdim"):
        return None
    base, index, values = scatter.inputs
    assert base is not None and index is not None and values is not None
    dim = scatter.attributes["dim"]
    if tuple(attrs["dim"]) != (dim,) or uniform(Symbol(base), producers) != 0:
        return None
    if not index.shape == values.shape == node.outputs[0].shape or (
            values.dtype is not node.outputs[0].dtype):  # fmt: skip
        return None
    zero = TABLE["full"](size=values.shape, fill_value=0.0, dtype=values.dtype)
    return TABLE["add"](Symbol(values), zero)
