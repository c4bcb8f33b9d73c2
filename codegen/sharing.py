"""Where kernels write in place: where the graph's marks allow it and the kernel's loops do.

A mark (`over`, `donated`: ir/lifetimes.py) says that the graph reads a value no more. Fusion may
have moved reads to later kernels, and a kernel may read other elements than it writes: then the
mark is not used.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Var
from . import tail as tails
from .classify import JOIN, MAP, UPDATE
from .cluster import Cluster
from .kernel import LOAD, STORE, Kernel
from .schedule import Scheduler
from .tail import Tail


class Sharing:
    """Answers whether a value may be computed into the memory of another."""

    def __init__(self, plan: Scheduler, kernels: dict[Cluster, Kernel],
                 tails: dict[Cluster, Tail]):  # fmt: skip
        self.plan, self.kernels, self.tails = plan, kernels, tails
        self.over = {node.outputs[0]: [node.inputs[k] for k in node.over]
                     for node in plan.graph.nodes if node.over}  # fmt: skip
        self.last_read: dict[Var, int] = {}
        for cluster in plan.clusters:
            self.last_read.update(dict.fromkeys(self.read(cluster), cluster.position))

    def read(self, cluster: Cluster) -> set[Var]:
        """What a step reads; a tail's step reads what its product does."""
        found = tails.loaded(self.plan, self.kernels, cluster)
        if cluster in self.tails:
            found |= self.factors(cluster)
        return found

    def factors(self, cluster: Cluster) -> set[Var]:
        return {self.plan.base(v)[0] for v in self.tails[cluster].product.present()}

    def stored(self, cluster: Cluster) -> list[Var]:
        """What a cluster's kernel stores, each in memory of its own."""
        kernel = self.kernels.get(cluster)
        if kernel is None or cluster.kind != MAP:
            return []
        stores = [i.access.var for i in kernel.instrs if i.kind == STORE]  # type: ignore
        return [var for var in stores if self.plan.home.get(var) is cluster]

    def overwritten(self, var: Var) -> Iterator[Var]:
        """Values that `var` may take the memory of, through marks of values never stored.

        Not of a tail: the best kernel for its product may store sums before the tail reads.
        """
        if self.plan.home[var] in self.tails:
            return
        waiting, seen = [var], {var}
        loads = self.read(self.plan.home[var])
        while waiting:
            for operand in self.over.get(waiting.pop(), ()):
                base = self.plan.base(self.plan.same.get(operand, operand))[0]  # type: ignore
                if base in seen:
                    continue
                seen.add(base)
                if base not in loads:
                    waiting.append(base)
                elif base.type.nbytes == var.type.nbytes and self.fits(var, base):
                    yield base

    def fits(self, var: Var, target: Var) -> bool:
        """Can the step that makes `var` write it to the memory of `target`?"""
        home = self.plan.home[var]
        if home.kind in (JOIN, UPDATE):
            return False  # made in several steps
        if home in self.tails and (not self.tails[home].once or target in self.factors(home)):
            return False  # partial sums are kept there, or it is still read
        if self.last_read.get(target, -1) > home.position:
            return False
        if home.kind != MAP:
            return self.last_read.get(target, -1) < home.position
        return reads_before(self.kernels[home], var, target)


def reads_before(kernel: Kernel, var: Var, target: Var) -> bool:
    """Is each element of `target` read only where, and before, that of `var` is stored?"""
    (at,) = (k for k, i in enumerate(kernel.instrs) if i.kind == STORE and i.access.var is var)  # type: ignore
    store = kernel.instrs[at].access
    assert store is not None
    for k, instr in enumerate(kernel.instrs):
        if instr.kind == LOAD and instr.access.var is target:  # type: ignore[union-attr]
            a = instr.access
            if k > at or (a.strides, a.offset, a.dynamic) != (store.strides, store.offset, ()):  # type: ignore
                return False
    return at in kernel.passes[-1] + kernel.between[-1]
