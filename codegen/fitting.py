"""Whether nodes can run in a cluster's loops, and clusters in one."""

from __future__ import annotations

from ..ir.graph import Graph, Node, Var
from .affine import Expr, Split, Unfoldable, delinear, natural, plus, scaled, strides_of
from .classify import COSTLY, MAP, REDUCE, cost
from .cluster import Cluster, Order
from .sources import Sources

MAX_WEIGHT = 400  # of a kernel's body: LLVM's time grows faster than linearly
ABREAST = 4  # single numbers are computed together; see abreast.py


class Fitting(Sources):
    """Clusters in the making: `home` says who makes what, `readers` who reads it."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.order = Order()
        self.home: dict[Var, Cluster] = {}
        self.readers: dict[Var, list[Cluster]] = {}
        self.placed: dict[Node, int] = {}
        self.apart: set[tuple[int, int]] = set()  # clusters that would not merge

    # -- does a node run in a cluster's loops? ---------------------------------------------

    def fits(self, node: Node, cluster: Cluster, e: Expr) -> bool:
        """Adds the node to the cluster if it can run there with its space at `e`."""
        weight = cost(node) if cluster.points > 1 else -(-cost(node) // ABREAST)
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

    def merge(self, a: Cluster, b: Cluster, beside: bool = False) -> bool:
        """One cluster of two over the same space, or `beside`, where b's is that of a's results, if
        all their members can live in it."""
        key = a.serial, b.serial
        if not beside and a.sizes != b.sizes:
            return False
        if key in self.apart or a.weight + b.weight > MAX_WEIGHT:
            return False
        both = a.mask | b.mask
        if any(d.above & both for d in (a.deps | b.deps) - {a, b}):
            return False  # something in between
        merged = self.order.new(MAP, a.sizes)
        merged.mask, merged.above = both, (a.above | b.above) & ~both
        merged.serial = max(a.serial, b.serial)
        origin = {n: c for c in (a, b) for n in c.members}
        spaces = {n: self.space(n, c) for n, c in origin.items()}
        if beside:
            merged.inner, plain, rows = a.inner, natural(b.sizes), natural(a.sizes, a.outer)
            spaces.update((n, rows) for n in b.members if spaces[n] == plain)
        try:
            fit = all(self.fits(n, merged, spaces[n])
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

    def gather(self) -> None:
        """Merges what could not join its readers when it came."""
        self.gather_numbers()
        readers: dict[Cluster, list[Cluster]] = {}
        for cluster in self.order.section:
            for made in cluster.deps:
                readers.setdefault(made, []).append(cluster)
        for b, (a, *others) in readers.items():
            # what has no sums may run in vectors alone, but not beside these: it must be light
            a = self.home[a.members[-1].outputs[0]]  # it may be another by now
            light = b.kind == a.kind == MAP and b.inner is None and b.weight < COSTLY
            if light and not others and a.open and b.open and a.inner and b.points == a.rows:
                self.merge(a, b, beside=True)

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
