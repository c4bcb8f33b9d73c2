"""The graph as the scheduler sees it: nodes in ops that have kernels, views and constants folded.

`Sources` answers where a value comes from: through which views, at which position, read by which
rule. It knows nothing of clusters.
"""

from __future__ import annotations

from ..ir.graph import Graph, Node, Output, Var
from ..ir.op import TABLE
from . import indirect
from .affine import Expr, Strided, Unfoldable, delinear, plus, scaled, through
from .classify import FREE, GATHER, HOST, MAP, UPDATE, VIEW, kind_of
from .expand import expand, turned
from .pairs import OnPairs, Pairs


class Sources:
    """`nodes` in order; what makes each Var, the node's kind and its number in the graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.producer: dict[Var, Node] = {}
        self.number: dict[Node | Var, int] = {}
        self.kinds: dict[Node, str] = {}
        self.outputs: list[tuple[Output, Var]] = []
        self.inside: dict[Var, tuple[Var, Strided]] = {}  # values stored as a part of another
        self.same: dict[Var, Var] = {}
        self.pairs = Pairs(self.same)
        self.nodes = self.expanded()
        self.nodes += self.own_outputs()

    def expanded(self) -> list[Node]:
        """The graph's nodes in ops that have kernels; expansions that agree are made once."""
        nodes: list[Node] = []
        first: dict[object, Node] = {}

        def add(made: Node, position: int) -> None:
            made = self.renamed(made)
            key = made.op, made.inputs, made.attrs
            if made.op.random or first.setdefault(key, made) is made:
                self.number.update(dict.fromkeys(made.outputs, position))
                nodes.append(made)
            else:
                self.same.update(zip(made.outputs, first[key].outputs))

        for position, node in enumerate(self.graph.nodes):
            for real in self.pairs.real(self.renamed(node)):
                on_host = isinstance(real.op.lower, OnPairs)  # with types that no other op has
                for made in [real] if on_host else expand(real):
                    add(made, position)
        for output in self.graph.outputs:
            for made in self.pairs.joined(output.var):
                add(made, -1)
        nodes = turned(nodes, {self.stored(o.var) for o in self.graph.outputs})
        for node in nodes:
            self.enter(node, self.number.get(node.outputs[0], -1))
        return nodes

    def renamed(self, node: Node) -> Node:
        inputs = tuple(v if v is None else self.same.get(v, v) for v in node.inputs)
        if inputs == node.inputs:
            return node
        return Node(node.op, inputs, node.outputs, node.attrs, node.place, node.origin)

    def stored(self, var: Var) -> Var:
        """The value that is brought to memory for one of the graph's."""
        memory = self.pairs.memory(var)
        return self.same.get(memory, memory)

    def enter(self, node: Node, number: int = -1) -> Node:
        kind = kind_of(node)
        self.kinds[node] = HOST if kind == MAP and self.may_fail(node) else kind
        self.number[node] = number
        for var in node.outputs:
            self.producer[var] = node
        return node

    def unread(self) -> set[Var]:
        """What nodes give that run for what they look at alone: nobody reads it."""
        read = {v for node in self.graph.nodes for v in node.present()}
        read.update(output.var for output in self.graph.outputs)
        return {self.base(self.stored(node.outputs[0]))[0] for node in self.graph.nodes
                if node.outputs and read.isdisjoint(node.outputs)}  # fmt: skip

    def own_outputs(self) -> list[Node]:
        """Every output gets a value of its own: inputs, views and repeated ones are copied."""
        copies, taken = [], set()
        for output in self.graph.outputs:
            var = source = self.stored(output.var)
            node = self.producer.get(var)
            if node is None or var in taken or self.kinds[node] in (VIEW, FREE):
                var = Var(source.type)
                number = -1 if node is None else self.number[node]
                copies.append(self.enter(Node(TABLE["clone"], (source,), (var,)), number))
            taken.add(var)
            self.outputs.append((output, var))
        return copies

    def may_fail(self, node: Node) -> bool:
        """Integer division by a value that may be 0, which raises: that is left to the host."""
        if node.op.raises is None or not node.op.raises(node):
            return False
        maker = self.producer.get(self.base(node.inputs[1])[0])  # type: ignore[arg-type]
        attrs = maker.attributes if maker is not None and self.kinds[maker] == FREE else {}
        return not attrs.get("fill_value", attrs.get("value", 0))

    # -- where values come from ------------------------------------------------------------

    def base(self, var: Var) -> tuple[Var, list[Node]]:
        """The value that `var` is a view of, and the views, last first."""
        chain = []
        while (node := self.producer.get(var)) is not None and self.kinds[node] == VIEW:
            chain.append(node)
            var = node.inputs[0]  # type: ignore[assignment]
        return var, chain

    def source(self, var: Var, e: Expr, sizes: list[int]) -> tuple[Var, Expr]:
        """The value that `var` is a view of, and the position there."""
        base, chain = self.base(var)
        for node in chain:
            e = through(node, e, sizes)
        return base, e

    def is_free(self, var: Var) -> bool:
        node = self.producer.get(var)
        return node is not None and self.kinds[node] == FREE

    def coordinate(self, var: Var, e: Expr, sizes: list[int]) -> Expr:
        """The number that a coordinate op gives at position e; e itself for other constants."""
        node = self.producer[var]
        if node.op.name != "coordinate":
            return e
        attrs = node.attributes
        result = Expr((0,) * len(sizes), attrs["offset"])
        try:
            for part, step in zip(delinear(e, attrs["size"], sizes), attrs["strides"]):
                result = plus(result, scaled(part, step))
        except Unfoldable as error:
            error.node = node
            raise
        return result

    def reads(self, node: Node, e: Expr, sizes: list[int]) -> list[tuple[Var, Expr]]:
        """What a node reads, and where, for a point of its space."""
        if self.kinds[node] == GATHER:
            return indirect.reads(node, e, sizes)
        if self.kinds[node] == UPDATE:
            return indirect.update_reads(node, e, sizes)
        return [(v, e) for v in node.present()]

    def stored_at(self, var: Var, e: Expr, sizes: list[int]) -> tuple[Var, Expr]:
        """Where a member is stored: at its own position, or in a region of another value."""
        if var not in self.inside:
            return var, e
        whole, region = self.inside[var]
        at = Expr((0,) * len(sizes), region.offset)
        for part, step in zip(delinear(e, region.shape, sizes), region.strides):
            at = plus(at, scaled(part, step))
        return whole, at
