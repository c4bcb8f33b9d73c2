"""When the memory of values is read last, and so whose memory may be taken for another value.

Views show the memory of what they are views of: it is read whenever one of them is. Values are
computed in the order of nodes; what is an input, a view, or an output twice is copied at the end.
"""

from __future__ import annotations

from collections import Counter

from .graph import WRITE, Graph, Output, Var
from .op import View


class Lifetimes:
    """Answers for one graph which marks `over` and `donated` are legal."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.root: dict[Var, Var] = {}  # of views: the value whose memory they show
        self.whole: set[Var] = set()  # values that have memory of their own, or show all of it
        self.made: dict[Var, int] = {}  # which node computes a value
        self.last: dict[Var, int] = {}  # which node reads its memory last
        for index, node in enumerate(graph.nodes):
            if isinstance(node.op.lower, View):
                source = node.inputs[0]
                assert source is not None
                self.root.update(dict.fromkeys(node.outputs, self.memory(source)))
                if node.op.name == "view" and source in self.whole:
                    self.whole.update(node.outputs)
                continue
            self.last.update((self.memory(var), index) for var in node.present())
            if node.op.kind != "creation":
                self.made.update(dict.fromkeys(node.outputs, index))
                self.whole.update(node.outputs)
        self.leaving = Counter(self.memory(output.var) for output in graph.outputs)

    def memory(self, var: Var) -> Var:
        """The value whose memory `var` shows."""
        return self.root.get(var, var)

    def may_overwrite(self, index: int, position: int) -> bool:
        """May the result of a node take the memory of an operand?

        Only elementwise ops: they read an element just before they write it.
        """
        node = self.graph.nodes[index]
        var = node.inputs[position]
        if node.op.kind != "pointwise" or len(node.outputs) != 1 or var is None:
            return False
        if var not in self.whole or var.type != node.outputs[0].type:
            return False
        memory = self.memory(var)
        return self.last[memory] == index and memory not in self.leaving

    def may_donate(self, output: Output) -> bool:
        """May a write-back take the memory of its target before the end of the graph?"""
        if output.kind != WRITE or output.target is None:
            return False
        target = self.graph.inputs[output.target].var
        if target in self.leaving:
            return False
        end = len(self.graph.nodes)
        done = end if self.leaving[output.var] > 1 else self.made.get(output.var, end)
        return self.last.get(target, -1) <= done
