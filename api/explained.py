"""What `torch._dynamo.explain(fn)(*args)` returns: facts of one compiled call, in print."""

from __future__ import annotations

from typing import Any

from .compiling import compile
from .left_to_python import original


class Explained:
    """One call compiled anew. `graphs` are our graphs, `break_reasons` texts with the line."""

    def __init__(self, function: Any, args: Any, kwargs: Any):
        self.compiled = compile(original(function))
        self.result = self.compiled(*args, **kwargs)
        known = getattr(self.compiled, "_compiled", self.compiled)
        traces = [trace for found in known.traces.values() for trace in found]
        self.graphs = [segment.function.trace for trace in traces for segment in trace.segments()]
        self.break_reasons = [*dict.fromkeys(known.refusals.values())]
        if not self.graphs and known.failure is not None and known.failure.graph is not None:
            self.graphs = [known.failure.graph]
        self.ops_per_graph = [[node.op.name for node in graph.nodes] for graph in self.graphs]
        self.graph_count = len(self.graphs)
        self.graph_break_count = max(self.graph_count - 1, len(self.break_reasons), 0)
        self.op_count = sum(map(len, self.ops_per_graph))
        self.text = known.explain()

    def __str__(self) -> str:
        return (f"Graph Count: {self.graph_count}\nGraph Break Count: {self.graph_break_count}\n"
                f"Op Count: {self.op_count}\n{self.text}")  # fmt: skip

    __repr__ = __str__
