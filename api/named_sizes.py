"""A graph whose sizes have names as a function of tensors: one native program for each sizes."""

from __future__ import annotations

from typing import Any

from .graph_function import GraphFunction
from .ir.graph import Graph
from .ir.instantiate import instance_for
from .ir.verify import verify


class ForSizes:
    """What `Graph.compile()` gives for a symbolic graph, such as `fn.graph("symbolic")`."""

    def __init__(self, graph: Graph):
        self.graph, self.made = graph, {}  # type: Graph, dict[Any, GraphFunction]

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != len(self.graph.inputs):
            raise TypeError(f"@{self.graph.name} takes {len(self.graph.inputs)} inputs, got "
                            f"{len(inputs)}")  # fmt: skip
        return self.at(*(tuple(x.shape) for x in inputs))(*inputs)

    def at(self, *shapes: tuple[int, ...]) -> GraphFunction:
        """The function for inputs of these shapes."""
        found = self.made.get(shapes)
        if found is None:
            found = self.made[shapes] = GraphFunction(verify(instance_for(self.graph, shapes)))
        return found
