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
    forward,
    natural,
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
    native_types,
)
from .cluster import Cluster
from .fitting import Fitting

SIBLINGS = 4


class Scheduler(Fitting):
    """Runs once over a graph; afterwards `clusters` are in order and `home` says who makes what."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.given = {item.var for item in graph.inputs}
        self.viewers: dict[Var, list[Cluster]] = {}  # templates and host calls that read a view
        self.last_draw: Cluster | None = None
        for node in self.nodes:
            if self.order.is_full:
                self.gather()
                self.order.close()
            self.place(node)
        self.gather()
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
