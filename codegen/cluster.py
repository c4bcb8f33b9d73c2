"""Clusters: nodes that share loops, and the order among them.

A cluster has one iteration space, `sizes`; the loops in `inner` are those its reductions run over.
Its members are values of the whole space, or of the outer loops only (reduction results and what
is made of them). `maps` gives each member's position for a point of the space; `stage` counts the
reductions a member waits for: members of the whole space with stage 1 and more need another pass
over the data, which is worth it only while a row stays in cache.

Who comes after whom is kept as bit sets: `mask` is the cluster's own bit (or bits, after a merge),
`above` those of all clusters it depends on, directly or not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ..ir.graph import Node, Var
from .affine import Expr
from .affine import split as split_expr

MAX_ROW = 1 << 16  # elements of a row that is read in several passes
ALONE = 1 << 15  # elements that one thread may as well do alone
SECTION = 1024  # clusters that may still change; see Note [Sections]


@dataclass(eq=False)
class Cluster:
    """One kernel to be; an opaque one is a single template or host call."""

    serial: int
    kind: str
    sizes: list[int] = field(default_factory=list)
    inner: frozenset[int] | None = None
    members: list[Node] = field(default_factory=list)
    maps: dict[Var, Expr] = field(default_factory=dict)
    spaces: dict[Node, Expr] = field(default_factory=dict)  # of a reduction's operand
    stage: dict[Var, int] = field(default_factory=dict)
    weight: int = 0
    free: int = 0  # of an update: leading loops whose turns never meet
    deps: set[Cluster] = field(default_factory=set)
    mask: int = 0
    above: int = 0
    position: int = -1  # in the final order

    @property
    def open(self) -> bool:
        """May nodes still join it? Not if it was merged into another, or its section is over."""
        return self.mask != 0

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
            moved = {d + (d > dim) for d in self.inner}
            self.inner = frozenset(moved | ({dim + 1} if dim in self.inner else set()))

    def several_passes(self) -> bool:
        """Is it fine to read a row again?"""
        row = self.points // max(1, self.rows)
        return row <= MAX_ROW and (self.rows >= 8 or self.points <= ALONE)

    def follows(self, other: Cluster) -> bool:
        """Does it depend on the other, directly or not?"""
        return bool(self.above & other.mask)


# Note [Sections]
# A node may join a cluster only if that closes no circle, so each cluster knows all that it comes
# after, as bits. In a graph of 100,000 nodes that would be a gigabyte, and merging would take
# time with the square of their number. So after SECTION clusters all of them are closed: they no
# longer change, what follows can't come before them, and bits are counted from 0 again.


class Order:
    """All clusters, and what depends on what."""

    def __init__(self) -> None:
        self.closed: list[Cluster] = []
        self.section: list[Cluster] = []  # the open ones
        self.count = 0
        self.base = 0  # of the section's bits
        self.followed = 0  # bits of the clusters that others come after

    def new(self, kind: str, sizes: Iterable[int] = (), free: int = 0) -> Cluster:
        """A cluster that is not in the order yet."""
        self.count += 1
        serial = self.count - 1
        return Cluster(serial, kind, list(sizes), free=free, mask=1 << (serial - self.base))

    def add(self, cluster: Cluster) -> Cluster:
        self.section.append(cluster)
        return cluster

    @property
    def is_full(self) -> bool:
        """Is the section long enough? See Note [Sections]."""
        return len(self.section) >= SECTION

    def close(self) -> None:
        """Ends the section."""
        for cluster in self.section:
            cluster.mask = cluster.above = 0
        self.closed += self.section
        self.section, self.base, self.followed = [], self.count, 0

    def depend(self, cluster: Cluster, other: Cluster) -> None:
        """`cluster` comes after `other`, and so does all that comes after `cluster`."""
        if other is cluster or other in cluster.deps:
            return
        cluster.deps.add(other)
        self.put_above(cluster, other.above | other.mask)

    def put_above(self, cluster: Cluster, above: int) -> None:
        if not above & ~cluster.above:
            return
        cluster.above |= above
        self.followed |= above
        if cluster.mask & self.followed:  # most often nothing comes after it yet
            for c in self.section:
                if c.above & cluster.mask:
                    c.above |= cluster.above

    def replace(self, a: Cluster, b: Cluster, merged: Cluster) -> None:
        """`merged` stands for a and b from now on."""
        self.section = [merged if c is a else c for c in self.section if c is not b]
        a.mask = b.mask = 0
        for c in self.section:
            if a in c.deps or b in c.deps:
                c.deps -= {a, b}
                c.deps.add(merged)
            if c.above & merged.mask:
                c.above |= merged.above | merged.mask

    def sort(self, made_of_nothing: Callable[[Cluster], bool]) -> list[Cluster]:
        """The clusters, each after those it depends on, else as they were made.

        What is made of nothing is made when it is needed: until then it would only take memory.
        """
        clusters = self.closed + self.section
        waiting = {c: len(c.deps) for c in clusters}
        readers: dict[Cluster, list[Cluster]] = {}
        for c in clusters:
            for d in c.deps:
                readers.setdefault(d, []).append(c)
        ready = [(c.serial, c) for c, n in waiting.items() if not n]
        heapq.heapify(ready)
        result: list[Cluster] = []
        while ready:
            _, c = heapq.heappop(ready)
            result.append(c)
            for reader in readers.get(c, ()):
                waiting[reader] -= 1
                if not waiting[reader]:
                    heapq.heappush(ready, (reader.serial, reader))
        assert len(result) == len(clusters), "clusters depend on each other in a circle"
        result = late(result, readers, made_of_nothing)
        for position, c in enumerate(result):
            c.position = position
        return result


def late(clusters: list[Cluster], readers: dict[Cluster, list[Cluster]],
         made_of_nothing: Callable[[Cluster], bool]) -> list[Cluster]:  # fmt: skip
    """The same order, but for those made of nothing: each is right before its first reader."""
    place = {c: (k, 1) for k, c in enumerate(clusters)}
    for c in readers:
        if made_of_nothing(c):
            place[c] = min(place[r][0] for r in readers[c]), 0
    return sorted(clusters, key=lambda c: place[c])
