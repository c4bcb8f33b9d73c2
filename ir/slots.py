"""Backward from values that somebody else keeps: what eager saves, slot by slot.

A slot is one value that one node saves, as its rules' parameters name it. `saved_tensors_hooks` see
each of them, and may hand back another value for each, so backward takes them all as inputs of
their own, however many of them are the same value.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from .bind import grad_mode
from .builder import Builder
from .graph import ARGUMENT, GRAD_OF, RESULT, SCALAR, WRITE, Graph, Input, Node, Output, Var
from .partition import shown_whole
from .passes import dead_code
from .pull import saved_keys
from .reverse import NodeFrame, add_gradient, computed_from, propagate, wants_gradient


class Slot(NamedTuple):
    """Node `node` saves `var`, its input `key` or output `~key`.

    The value is found by looking through `chain`, views and which of their results, at `root`.
    """

    node: int
    key: int
    var: Var
    root: Var
    chain: tuple[tuple[Node, int], ...]
    needs: bool  # does it have a derivative with respect to what is wanted?


class Slots:
    """The slots of a graph when the inputs in `wanted` need gradients, in eager's order.

    `needing` are the values that have history in eager: grad mode may have been off for others.
    The memory of results that are `unseen` is nobody's.
    """

    def __init__(
        self,
        graph: Graph,
        wanted: Sequence[int],
        results: Sequence[int],
        needing: set[Var],
        unseen: Collection[int] = (),
    ):
        self.graph, self.wanted, self.needing = graph, tuple(wanted), needing
        self.targets = [graph.inputs[k].var for k in wanted]
        self.producers = graph.producers()
        self.inputs = {i.var for i in graph.inputs}
        self.results = [o.var for o in graph.outputs if o.kind == RESULT]
        written = {graph.inputs[o.target].var for o in graph.outputs
                   if o.kind == WRITE and o.target is not None}  # fmt: skip
        shown = {var for k, var in enumerate(self.results) if k not in unseen}
        self.lasting = (self.inputs - written) | shown
        # values of which a result shows all there is, and how they are seen in that
        whole = shown_whole(graph, self.producers, self.lasting)
        self.whole = {var: node for var, node in whole.items() if node.inputs[0] in shown}
        self.numbers = {i.var for i in graph.inputs if i.kind == SCALAR}
        self.slots = self.find()
        # what forward gives beside the results
        self.saved = [*dict.fromkeys(s.root for s in self.slots if s.root not in self.lasting)]
        # gradients arrive at results, and in higher orders at what was saved of values inside
        inside = dict.fromkeys(s.var for s in self.slots if s.needs and s.var not in self.inputs)
        self.seeds = [*(self.results[k] for k in results), *inside]
        self.seed_numbers = {var: len(results) + k for k, var in enumerate(inside)}

    @property
    def last_effect(self) -> int:
        """The last node whose value is written, or that draws random numbers."""
        effects = {o.var for o in self.graph.outputs if o.kind == WRITE}
        return max((k for k, node in enumerate(self.graph.nodes)
                    if not effects.isdisjoint(node.outputs)), default=-1)  # fmt: skip

    def find(self) -> list[Slot]:
        reaching = computed_from(self.graph, set(self.targets))
        found = []
        for index, node in enumerate(self.graph.nodes):
            if self.needing.isdisjoint(node.outputs):
                continue
            needs = [wants_gradient(node, k, reaching) for k in range(len(node.inputs))]
            for key in saved_keys(node.op, needs):
                var = node.outputs[~key] if key < 0 else node.inputs[key]
                if var is not None and not self.is_number(var):
                    found.append(Slot(index, key, var, *self.seen_through(var), var in reaching))
        return found

    def is_number(self, var: Var) -> bool:
        """Is it a Python number? Eager keeps these as they are."""
        node = self.producers.get(var)
        return var in self.numbers or (node is not None and node.op.name == "constant")

    def seen_through(self, var: Var) -> tuple[Var, tuple[tuple[Node, int], ...]]:
        """Memory that is at hand after the call anyway, and the views of it that `var` is."""
        chain: list[tuple[Node, int]] = []
        root = var
        while root not in self.lasting:
            node = self.whole.get(root) or self.producers.get(root)
            if node is None or node.op.kind != "view":
                return var, ()
            chain.append((node, node.outputs.index(root)))
            root = next(node.present())
        return root, tuple(reversed(chain))

    def forward(self) -> Graph:
        """The graph with values inside that are saved as further results."""
        outputs = [o for o in self.graph.outputs if o.kind == RESULT]
        outputs += [Output(var, RESULT) for var in self.saved]
        rest = [o for o in self.graph.outputs if o.kind != RESULT]
        return self.graph.unmarked().replace(outputs=(*outputs, *rest))

    def backward(self, given: Sequence[int], again: bool = False) -> Backward:
        """For the gradients of those of `seeds` numbered in `given`."""
        graph = self.graph.unmarked()
        builder = Builder(f"{graph.name}_backward")
        builder.inputs, builder.nodes = list(graph.inputs), list(graph.nodes)
        grads: dict[Var, Any] = {}
        with builder.building(), grad_mode(again):
            handed = {(s.node, s.key): builder.input(s.var.type) for s in self.slots}
            for number in given:
                var = self.seeds[number]
                add_gradient(grads, var, builder.input(var.type))

            def frame(index: int) -> SlotFrame:
                return SlotFrame(graph.nodes[index], builder, index, handed)

            propagate(graph, builder, grads, set(self.targets), frame)
            left = tuple(k for k, var in enumerate(self.targets)
                         if grads.get(var) is not None)  # fmt: skip
            for k in left:
                builder.output(grads[self.targets[k]], GRAD_OF, self.wanted[k])
        return self.pruned(builder, left, len(given))

    def pruned(self, builder: Builder, left: tuple[int, ...], given: int) -> Backward:
        """Without the inputs that are not read."""
        outputs = tuple(Output(o.var, RESULT) for o in builder.outputs)
        graph = dead_code.run(builder.graph().replace(outputs=outputs))
        read = {v for node in graph.nodes for v in node.present()} | {o.var for o in outputs}
        count, seeds = len(self.graph.inputs), len(builder.inputs) - given
        used = [k for k, i in enumerate(builder.inputs) if k >= seeds or i.var in read]
        inputs = tuple(Input(builder.inputs[k].var, ARGUMENT) for k in used)
        return Backward(
            graph.replace(inputs=inputs),
            tuple(k for k in used if k < count),
            tuple(k - count for k in used if count <= k < seeds),
            left,
        )


class SlotFrame(NodeFrame):
    """A node whose saved values are handed in."""

    def __init__(self, node: Node, builder: Builder, index: int, handed: dict[Any, Any]):
        super().__init__(node, builder)
        self.index, self.handed = index, handed

    def input(self, position: int) -> Any:
        handed = self.handed.get((self.index, position))
        return super().input(position) if handed is None else handed

    def output(self, position: int) -> Any:
        handed = self.handed.get((self.index, ~position))
        return super().output(position) if handed is None else handed


class Backward(NamedTuple):
    """`graph` of inputs and slots by number, then gradients; `left`: which of `wanted` it gives."""

    graph: Graph
    inputs: tuple[int, ...]
    slots: tuple[int, ...]
    left: tuple[int, ...]
