"""Fusion: which nodes share a kernel.

Nodes are taken in order. Each joins a cluster that its operands (or other readers of them) are in,
if it can run in that cluster's loops, else it starts one; clusters that a node has brought next to
each other are merged where they can be. A node joins only where that closes no circle.

Views and constants belong to no cluster: they are folded into whoever reads them.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Graph, Node, Var
from ..ir.op import TABLE
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
)
from .classify import (
    CONTIGUOUS,
    FREE,
    HOST,
    JOIN,
    MAP,
    REDUCE,
    TEMPLATE,
    UPDATE,
    VIEW,
    cost,
    native_types,
)
from .cluster import Cluster, Order
from .sources import Sources

MAX_WEIGHT = 400  # of a kernel's body: LLVM's time grows faster than linearly
SIBLINGS = 4


class Scheduler(Sources):
    """Runs once over a graph; afterwards `clusters` are in order and `home` says who makes what."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.order = Order()
        self.given = {item.var for item in graph.inputs}
        self.home: dict[Var, Cluster] = {}
        self.readers: dict[Var, list[Cluster]] = {}
        self.viewers: dict[Var, list[Cluster]] = {}  # templates and host calls that read a view
        self.placed: dict[Node, int] = {}
        self.apart: set[tuple[int, int]] = set()  # clusters that would not merge
        self.last_draw: Cluster | None = None
        for node in self.nodes:
            if self.order.is_full:
                self.gather_numbers()
                self.order.close()
            self.place(node)
        self.gather_numbers()
        self.clusters = self.order.sort(self.is_made_of_nothing)

    def precedes(self, var: Var, cluster: Cluster) -> bool:
        """Is `var` made before the cluster runs?"""
        home = self.home.get(var)
        return home is None or home.position < cluster.position

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
        elif any(self.join(node, cluster) for cluster in self.candidates(node)):
            self.draw_near(node)
        else:
            self.start(node)
            self.draw_near(node)

    def is_made_of_nothing(self, cluster: Cluster) -> bool:
        """Is it a constant, or made of positions alone?"""
        return not cluster.deps and not any(
            node.op.random or any(self.base(var)[0] in self.given for var in node.present())
            for node in cluster.members
        )

    def place_opaque(self, node: Node, kind: str) -> None:
        contiguous = kind == TEMPLATE and node.op.lower.name in CONTIGUOUS
        for var in node.present():
            self.make_loadable(var, contiguous)
        cluster = self.order.add(self.order.new(kind))
        cluster.members.append(node)
        for var in node.present():
            base, chain = self.base(var)
            self.after(cluster, base)
            for view in chain:
                self.viewers.setdefault(view.outputs[0], []).append(cluster)
        if node.op.random:  # draws keep their order
            if self.last_draw is not None:
                self.order.depend(cluster, self.last_draw)
            self.last_draw = cluster
        for var in node.outputs:
            self.home[var] = cluster

    def after(self, cluster: Cluster, var: Var) -> None:
        home = self.home.get(var)
        if home is not None:
            self.order.depend(cluster, home)

    def place_join(self, node: Node) -> None:
        """Each part is stored by a cluster of its own choice; the whole is there after the last."""
        (whole,) = node.outputs
        parts = []
        for var, (offset, strides) in zip(node.inputs, node.attributes["regions"]):
            assert var is not None
            region = Strided(var.shape, strides, offset)
            parts.append(self.store_inside(var, whole, region, node))
        cluster = self.order.add(self.order.new(JOIN))
        cluster.members.append(node)
        for part in parts:
            self.after(cluster, part)
        self.home[whole] = cluster

    def store_inside(self, var: Var, whole: Var, region: Strided, node: Node) -> Var:
        part = Var(var.type)
        copy = self.enter(Node(TABLE["clone"], (var,), (part,), (), node.place), self.number[node])
        self.inside[part] = whole, region
        self.place(copy)
        while True:
            cluster = self.home[part]
            try:
                self.stored_at(part, cluster.maps[part], cluster.sizes)
                return part
            except Split as cut:
                cluster.split(cut.dim, cut.inner)
            except Unfoldable:
                cluster.members.remove(copy)
                del cluster.maps[part], cluster.stage[part]
                self.start(copy)

    def place_update(self, node: Node) -> None:
        """The base is stored where the result will be; then a kernel of its own adds to it."""
        base, src = node.inputs[:2]
        (whole,) = node.outputs
        assert base is not None and src is not None
        part = self.store_inside(base, whole, Strided(base.shape, strides_of(base.shape), 0), node)
        cluster = self.order.new(UPDATE, src.shape, node.attributes["free"])
        while not self.readable(node, cluster):
            cluster = self.order.new(UPDATE, src.shape, node.attributes["free"])
        cluster.members.append(node)
        self.order.add(cluster)
        self.after(cluster, part)
        for var in node.inputs[1:]:
            self.after(cluster, self.base(var)[0])  # type: ignore[arg-type]
        self.home[whole] = cluster

    def readable(self, node: Node, cluster: Cluster) -> bool:
        """Cuts loops until all operands are; False if one had to be stored first."""
        while True:
            try:
                for var, at in self.reads(node, natural(cluster.sizes), cluster.sizes):
                    self.source(var, at, cluster.sizes)
                return True
            except Split as cut:
                cluster.split(cut.dim, cut.inner)
            except Unfoldable as error:
                self.store_view(error.node)
                return False

    def make_loadable(self, var: Var, contiguous: bool = False) -> None:
        """Sees to it that `var` is a strided (or contiguous) part of a stored value."""
        while True:
            base, _ = self.base(var)
            if self.is_free(base):
                self.store_view(self.producer[base])
            try:
                _, e = self.source(var, natural(var.shape), list(var.shape))
                if contiguous and e.coefs != natural(var.shape).coefs:
                    self.store_view(self.producer[var])
                return
            except Split:
                self.store_view(self.producer[var])
            except Unfoldable as error:
                self.store_view(error.node)

    def store_view(self, node: Node) -> None:
        """Turns a view or constant into a value of its own, copied from a twin of the node.

        Types without native code are copied by the host, which takes the view itself.
        """
        (var,) = node.outputs
        if not native_types(node):
            self.kinds[node] = HOST
            self.place_opaque(node, HOST)
        else:
            twin, number = Var(var.type), self.number[node]
            self.enter(Node(node.op, node.inputs, (twin,), node.attrs, node.place), number)
            self.start(self.enter(Node(TABLE["clone"], (twin,), (var,), (), node.place), number))
        for reader in self.viewers.pop(var, ()):  # what they find in its place is the copy
            if not reader.open:
                self.home[var].mask = 0  # nothing may join it that comes after the reader
            self.order.depend(reader, self.home[var])

    def candidates(self, node: Node) -> list[Cluster]:
        """Clusters the node may join: its operands' and their other readers'.

        The largest first, so that what is made of a reduction's results stays with it; then the
        latest.
        """
        bases = [self.base(v)[0] for v in node.present()]
        found = {self.home[b] for b in bases if b in self.home}
        size = max((v.type.numel for v in node.present()), default=0)
        if size >= 64:
            for b in bases:
                if b.type.numel * 4 >= size:
                    found.update(self.readers.get(b, [])[-SIBLINGS:])
        usable = [c for c in found if c.kind == MAP and c.open]
        return sorted(usable, key=lambda c: (-c.points, -c.serial))

    def start(self, node: Node) -> None:
        """A new cluster for a node; stores what cannot be folded into its loops first."""
        reducing = self.kinds[node] == REDUCE
        shape = node.inputs[0].shape if reducing else node.outputs[0].shape  # type: ignore
        while True:
            cluster = self.order.new(MAP, shape)
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
            self.order.add(cluster)
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
                home = self.home.get(base)
                if home is not None and (home is cluster or home.follows(cluster)):
                    return None
                outside.append(base)
        return stage, outside

    def reduced_loops(self, node: Node, cluster: Cluster, e: Expr) -> frozenset[int] | None:
        """The loops that run over the reduced dimensions, if they run over nothing else."""
        source = node.inputs[0]
        reduced, kept = set(), set()
        for d, part in enumerate(delinear(e, source.shape, cluster.sizes)):  # type: ignore
            (reduced if d in node.attributes["dim"] else kept).update(part.depends_on())
        return None if reduced & kept else frozenset(reduced)

    def commit(self, node: Node, cluster: Cluster, e: Expr, inner: frozenset[int] | None,
               stage: int, bases: list[Var]) -> None:  # fmt: skip
        (var,) = node.outputs
        if self.kinds[node] == REDUCE:
            parts = delinear(e, node.inputs[0].shape, cluster.sizes)  # type: ignore[union-attr]
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
        self.placed.setdefault(node, len(self.placed))
        for base in bases:
            self.after(cluster, base)
            listed = self.readers.setdefault(base, [])
            if not listed or listed[-1] is not cluster:
                listed.append(cluster)

    # -- merging ---------------------------------------------------------------------------

    def draw_near(self, node: Node) -> None:
        """Merges the node's cluster with those it reads from."""
        for var in node.present():
            other = self.home.get(self.base(var)[0])
            cluster = self.home[node.outputs[0]]
            if other is not None and other is not cluster and other.kind == MAP and other.open:
                self.merge(cluster, other)

    def merge(self, a: Cluster, b: Cluster) -> bool:
        """One cluster of two over the same space, if all their members can live in it."""
        key = a.serial, b.serial
        if a.sizes != b.sizes or key in self.apart or a.weight + b.weight > MAX_WEIGHT:
            return False
        both = a.mask | b.mask
        if any(d.above & both for d in (a.deps | b.deps) - {a, b}):
            return False  # something in between
        merged = self.order.new(MAP, a.sizes)
        merged.mask, merged.above = both, (a.above | b.above) & ~both
        merged.serial = max(a.serial, b.serial)
        origin = {n: c for c in (a, b) for n in c.members}
        try:
            fit = all(self.fits(n, merged, self.space(n, origin[n]))
                      for n in sorted(origin, key=self.placed.__getitem__))  # fmt: skip
        except (Split, Unfoldable):
            fit = False
        if not fit:
            self.apart.add(key)
            self.home.update((n.outputs[0], c) for n, c in origin.items())
            merged.mask = 0
            return False
        self.order.replace(a, b, merged)
        return True

    def gather_numbers(self) -> None:
        """Merges clusters of single numbers that nothing is between, as optimizers have for each
        parameter: a launch takes longer than they do, and they can be computed side by side."""
        last: Cluster | None = None
        for cluster in list(self.order.section):
            if cluster.kind != MAP or cluster.points != 1 or cluster.inner:
                continue
            (*_, node) = cluster.members
            if last is None or not self.merge(last, cluster):
                last = cluster
            else:
                last = self.home[node.outputs[0]]

    def space(self, node: Node, cluster: Cluster) -> Expr:
        return cluster.spaces[node] if node in cluster.spaces else cluster.maps[node.outputs[0]]
