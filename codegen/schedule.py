"""Fusion: which nodes share a kernel.

Nodes are taken in order. Each joins a cluster that its operands (or other readers of them) are in,
if it can run in that cluster's loops, else it starts one. Clusters keep the order in which they
were made: a node joins one only if all else it reads is made before, so no cycle can arise.

A cluster has one iteration space, `sizes`; the loops in `inner` are those its reductions run over.
Its members are values of the whole space, or of the outer loops only (reduction results and what
is made of them). `maps` gives each member's position for a point of the space; `stage` counts the
reductions a member waits for: members of the whole space with stage 1 and more need another pass
over the data, which is worth it only while a row stays in cache.

Views and constants belong to no cluster: they are folded into whoever reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..ir.graph import Graph, Node, Output, Var
from ..ir.op import TABLE
from . import indirect
from .affine import (
    Expr,
    Split,
    Strided,
    Unfoldable,
    delinear,
    forward,
    natural,
    plus,
    scaled,
    strides_of,
    through,
)
from .affine import split as split_expr
from .classify import (
    FREE,
    GATHER,
    HOST,
    JOIN,
    MAP,
    REDUCE,
    TEMPLATE,
    UPDATE,
    VIEW,
    cost,
    kind_of,
)
from .expand import expand, turned

MAX_WEIGHT = 400  # of a kernel's body: LLVM's time grows faster than linearly
MAX_ROW = 1 << 16  # elements of a row that is read in several passes
ALONE = 1 << 15  # elements that one thread may as well do alone
SIBLINGS = 4


@dataclass(eq=False)
class Cluster:
    """Nodes that share loops; an opaque one is a single template or host call."""

    position: int
    kind: str
    sizes: list[int] = field(default_factory=list)
    inner: frozenset[int] | None = None
    members: list[Node] = field(default_factory=list)
    maps: dict[Var, Expr] = field(default_factory=dict)
    spaces: dict[Node, Expr] = field(default_factory=dict)  # of a reduction's operand
    stage: dict[Var, int] = field(default_factory=dict)
    weight: int = 0
    free: int = 0  # of an update: leading loops whose turns never meet

    @property
    def outer(self) -> list[int]:
        return [d for d in range(len(self.sizes)) if d not in (self.inner or ())]

    @property
    def points(self) -> int:
        return math.prod(self.sizes)

    @property
    def rows(self) -> int:
        return math.prod(self.sizes[d] for d in self.outer)

    def split(self, dim: int, inner: int) -> None:
        """Makes two loops of one."""
        self.sizes[dim : dim + 1] = [self.sizes[dim] // inner, inner]
        self.maps = {v: split_expr(e, dim, inner) for v, e in self.maps.items()}
        self.spaces = {n: split_expr(e, dim, inner) for n, e in self.spaces.items()}
        self.free += dim < self.free
        if self.inner is not None:
            moved = {d + (d > dim) for d in self.inner} | (
                {dim + 1} if dim in self.inner else set()
            )
            self.inner = frozenset(moved)

    def several_passes(self) -> bool:
        """Is it fine to read a row again?"""
        row = self.points // max(1, self.rows)
        return row <= MAX_ROW and (self.rows >= 8 or self.points <= ALONE)


class Scheduler:
    """Runs once over a graph; afterwards `clusters`, `home`, `producer` and `outputs` are set."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.producer: dict[Var, Node] = {}
        self.number: dict[Node | Var, int] = {}
        self.kinds: dict[Node, str] = {}
        self.home: dict[Var, Cluster] = {}
        self.readers: dict[Var, list[Cluster]] = {}
        self.clusters: list[Cluster] = []
        self.outputs: list[tuple[Output, Var]] = []
        self.inside: dict[Var, tuple[Var, Strided]] = {}  # values stored as a part of another
        self.same: dict[Var, Var] = {}
        nodes = self.expanded()
        copies = self.own_outputs()
        for node in (*nodes, *copies):
            self.place(node)

    def expanded(self) -> list[Node]:
        """The graph's nodes in ops that have kernels; expansions that agree are made once."""
        nodes: list[Node] = []
        first: dict[object, Node] = {}
        for position, node in enumerate(self.graph.nodes):
            for made in expand(node):
                made = self.renamed(made)
                key = made.op, made.inputs, made.attrs
                if made.op.random or first.setdefault(key, made) is made:
                    self.number.update(dict.fromkeys(made.outputs, position))
                    nodes.append(made)
                else:
                    self.same.update(zip(made.outputs, first[key].outputs))
        nodes = turned(nodes, {self.same.get(o.var, o.var) for o in self.graph.outputs})
        for node in nodes:
            self.enter(node, self.number.get(node.outputs[0], -1))
        return nodes

    def renamed(self, node: Node) -> Node:
        inputs = tuple(v if v is None else self.same.get(v, v) for v in node.inputs)
        if inputs == node.inputs:
            return node
        return Node(node.op, inputs, node.outputs, node.attrs, node.place, node.origin)

    def enter(self, node: Node, number: int = -1) -> None:
        self.kinds[node] = kind_of(node)
        self.number[node] = number
        for var in node.outputs:
            self.producer[var] = node

    def own_outputs(self) -> list[Node]:
        """Every output gets a value of its own: inputs, views and repeated ones are copied."""
        copies, taken = [], set()
        for output in self.graph.outputs:
            var = source = self.same.get(output.var, output.var)
            node = self.producer.get(var)
            if node is None or var in taken or self.kinds[node] in (VIEW, FREE):
                var = Var(source.type)
                made = Node(TABLE["clone"], (source,), (var,))
                self.enter(made, -1 if node is None else self.number[node])
                copies.append(made)
            taken.add(var)
            self.outputs.append((output, var))
        return copies

    # -- operands --------------------------------------------------------------------------

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

    def position(self, var: Var) -> int:
        """Of the cluster that makes it; -1 for inputs and constants."""
        home = self.home.get(var)
        return -1 if home is None else home.position

    # -- placing nodes ---------------------------------------------------------------------

    def place(self, node: Node) -> None:
        kind = self.kinds[node]
        if kind in (VIEW, FREE):
            return
        if kind in (TEMPLATE, HOST):
            self.place_opaque(node, kind)
        elif kind == JOIN:
            self.place_join(node)
        elif kind == UPDATE:
            self.place_update(node)
        elif not any(self.join(node, cluster) for cluster in self.candidates(node)):
            self.start(node)

    def place_opaque(self, node: Node, kind: str) -> None:
        for var in node.present():
            self.make_loadable(var)
        cluster = self.new_cluster(kind)
        cluster.members.append(node)
        for var in node.outputs:
            self.home[var] = cluster

    def place_join(self, node: Node) -> None:
        """Each part is stored by a cluster of its own choice; the whole is there after the last."""
        (whole,) = node.outputs
        attrs = node.attributes
        for var, (offset, strides) in zip(node.inputs, attrs["regions"]):
            assert var is not None
            self.store_inside(var, whole, Strided(var.shape, strides, offset), node)
        cluster = self.new_cluster(JOIN)
        cluster.members.append(node)
        self.home[whole] = cluster

    def store_inside(self, var: Var, whole: Var, region: Strided, node: Node) -> None:
        part = Var(var.type)
        copy = Node(TABLE["clone"], (var,), (part,), (), node.place)
        self.enter(copy, self.number[node])
        self.inside[part] = whole, region
        self.place(copy)
        cluster = self.home[part]
        while True:
            try:
                self.stored_at(part, cluster.maps[part], cluster.sizes)
                return
            except Split as cut:
                cluster.split(cut.dim, cut.inner)
            except Unfoldable:
                cluster.members.remove(copy)
                del cluster.maps[part], cluster.stage[part]
                self.start(copy)
                cluster = self.home[part]

    def stored_at(self, var: Var, e: Expr, sizes: list[int]) -> tuple[Var, Expr]:
        """Where a member is stored: at its own position, or in a region of another value."""
        if var not in self.inside:
            return var, e
        whole, region = self.inside[var]
        at = Expr((0,) * len(sizes), region.offset)
        for part, step in zip(delinear(e, region.shape, sizes), region.strides):
            at = plus(at, scaled(part, step))
        return whole, at

    def place_update(self, node: Node) -> None:
        """The base is stored where the result will be; then a kernel of its own adds to it."""
        base, src = node.inputs[:2]
        (whole,) = node.outputs
        assert base is not None and src is not None
        own = Strided(base.shape, strides_of(base.shape), 0)
        self.store_inside(base, whole, own, node)
        while True:
            cluster = Cluster(
                len(self.clusters), UPDATE, list(src.shape), free=node.attributes["free"]
            )
            try:
                while True:
                    try:
                        for var, at in self.reads(node, natural(cluster.sizes), cluster.sizes):
                            self.source(var, at, cluster.sizes)
                        break
                    except Split as cut:
                        cluster.split(cut.dim, cut.inner)
                break
            except Unfoldable as error:
                self.store_view(error.node)
        cluster.members.append(node)
        self.clusters.append(cluster)
        self.home[whole] = cluster

    def make_loadable(self, var: Var) -> None:
        """Sees to it that `var` is a strided part of a stored value."""
        while True:
            base, _ = self.base(var)
            if self.is_free(base):
                self.store_view(self.producer[base])
            try:
                self.source(var, natural(var.shape), list(var.shape))
                return
            except (Split, Unfoldable) as error:
                if isinstance(error, Split):
                    self.store_view(self.producer[var])
                else:
                    self.store_view(error.node)

    def store_view(self, node: Node) -> None:
        """Turns a view or constant into a value of its own, copied from a twin of the node."""
        (var,) = node.outputs
        twin = Var(var.type)
        self.enter(Node(node.op, node.inputs, (twin,), node.attrs, node.place), self.number[node])
        copy = Node(TABLE["clone"], (twin,), (var,), (), node.place)
        self.enter(copy, self.number[node])
        if self.kinds[copy] == HOST:
            self.place_opaque(copy, HOST)
        else:
            self.start(copy)

    def new_cluster(self, kind: str) -> Cluster:
        cluster = Cluster(len(self.clusters), kind)
        self.clusters.append(cluster)
        return cluster

    def candidates(self, node: Node) -> list[Cluster]:
        """Clusters the node may join: made no earlier than all it reads, the latest first."""
        bases = [self.base(v)[0] for v in node.present()]
        earliest = max((self.position(b) for b in bases), default=-1)
        found = {self.home[b] for b in bases if self.position(b) == earliest and b in self.home}
        size = max((v.type.numel for v in node.present()), default=0)
        if size >= 64:
            for b in bases:
                if b.type.numel * 4 >= size:
                    found.update(self.readers.get(b, [])[-SIBLINGS:])
        usable = [c for c in found if c.kind == MAP and c.position >= earliest]
        return sorted(usable, key=lambda c: -c.position)

    def start(self, node: Node) -> None:
        """A new cluster for a node; stores what cannot be folded into its loops first."""
        reducing = self.kinds[node] == REDUCE
        shape = node.inputs[0].shape if reducing else node.outputs[0].shape  # type: ignore
        while True:
            cluster = Cluster(len(self.clusters), MAP, list(shape))
            try:
                while True:
                    try:
                        joined = self.fits(node, cluster, natural(cluster.sizes))
                        break
                    except Split as cut:
                        cluster.split(cut.dim, cut.inner)
            except Unfoldable as error:
                self.store_view(error.node)
                continue
            assert joined, node
            self.clusters.append(cluster)
            return

    def join(self, node: Node, cluster: Cluster) -> bool:
        for _ in range(8):
            try:
                return any(self.fits(node, cluster, e) for e in self.guesses(node, cluster))
            except Split as cut:
                cluster.split(cut.dim, cut.inner)
            except Unfoldable:
                return False
        return False

    def guesses(self, node: Node, cluster: Cluster) -> Iterator[Expr]:
        """Positions the node's space may have in the cluster's loops."""
        seen = set()
        value = node.inputs[0] if self.kinds[node] == REDUCE else node.outputs[0]
        for var in node.present():
            base, chain = self.base(var)
            e = cluster.maps.get(base)
            for view in reversed(chain):
                e = None if e is None else forward(view, e, cluster.sizes)
            if e is not None and e not in seen and var.shape == value.shape:  # type: ignore
                seen.add(e)
                yield e
        numel = value.type.numel  # type: ignore[union-attr]
        if numel == cluster.points and (e := natural(cluster.sizes)) not in seen:
            yield e
        if cluster.inner and numel == cluster.rows:
            e = natural(cluster.sizes, cluster.outer)
            if e not in seen:
                yield e

    # -- does a node run in a cluster's loops? ---------------------------------------------

    def fits(self, node: Node, cluster: Cluster, e: Expr) -> bool:
        """Adds the node to the cluster if it can run there with its space at `e`."""
        weight = cost(node)
        if cluster.members and cluster.weight + weight > MAX_WEIGHT:
            return False
        reducing = self.kinds[node] == REDUCE
        value = node.inputs[0] if reducing else node.outputs[0]
        inner = cluster.inner
        if reducing:
            found = self.reduced_loops(node, cluster, e)
            if found is None or (inner is not None and inner != found):
                return False
            inner = found
        whole = e.depends_on() & (inner or frozenset()) or inner is None
        if not whole and value.type.numel != cluster.rows:  # type: ignore[union-attr]
            return False
        if whole and value.type.numel != cluster.points:  # type: ignore[union-attr]
            return False
        read = self.read(node, cluster, e)
        if read is None:
            return False
        stage, bases = read
        if whole and stage and not cluster.several_passes():
            return False
        self.commit(node, cluster, e, inner, stage, bases)
        cluster.weight += weight
        return True

    def read(self, node: Node, cluster: Cluster, e: Expr) -> tuple[int, list[Var]] | None:
        """The stage of the operands and those from outside; None if some are out of reach."""
        stage, outside = 0, []
        for var, where in self.reads(node, e, cluster.sizes):
            base, at = self.source(var, where, cluster.sizes)
            if base in cluster.maps:
                if cluster.maps[base] != at:
                    return None
                stage = max(stage, cluster.stage[base])
            elif self.is_free(base):
                self.coordinate(base, at, cluster.sizes)
            else:
                if self.position(base) >= cluster.position:
                    return None
                outside.append(base)
        return stage, outside

    def reads(self, node: Node, e: Expr, sizes: list[int]) -> list[tuple[Var, Expr]]:
        """What a node reads, and where, for a point of its space."""
        if self.kinds[node] == GATHER:
            return indirect.reads(node, e, sizes)
        if self.kinds[node] == UPDATE:
            return indirect.update_reads(node, e, sizes)
        return [(v, e) for v in node.present()]

    def reduced_loops(self, node: Node, cluster: Cluster, e: Expr) -> frozenset[int] | None:
        """The loops that run over the reduced dimensions, if they run over nothing else."""
        source = node.inputs[0]
        reduced, kept = set(), set()
        for d, part in enumerate(delinear(e, source.shape, cluster.sizes)):  # type: ignore
            (reduced if d in node.attributes["dim"] else kept).update(part.depends_on())
        reduced |= {d for d, n in enumerate(cluster.sizes) if n == 0}
        return None if reduced & kept else frozenset(reduced)

    def commit(self, node: Node, cluster: Cluster, e: Expr, inner: frozenset[int] | None,
               stage: int, bases: list[Var]) -> None:  # fmt: skip
        (var,) = node.outputs
        if self.kinds[node] == REDUCE:
            source = node.inputs[0].shape  # type: ignore[union-attr]
            parts = delinear(e, source, cluster.sizes)
            at = Expr((0,) * len(cluster.sizes))
            for d, step in enumerate(strides_of(var.shape)):
                if d not in node.attributes["dim"]:
                    at = plus(at, scaled(parts[d], step))
            cluster.spaces[node] = e
            e, stage = at, stage + 1
        cluster.inner = inner
        cluster.members.append(node)
        cluster.maps[var], cluster.stage[var] = e, stage
        self.home[var] = cluster
        for base in bases:
            listed = self.readers.setdefault(base, [])
            if not listed or listed[-1] is not cluster:
                listed.append(cluster)
