"""Sums over rows, made by the kernel that has the rows in registers.

A kernel in row form and one that reduces the same space the other way, as the gradients of a layer
norm's input and weight do: the second need not read all again. Each chunk of rows adds up what it
has seen, column by column, in a line of its own; then the lines are reduced (Note [Tallies]).

Note [Tallies]
    Which rows share a line depends on sizes alone, and within a chunk one row comes after the
    other, so the bits do not depend on the number of threads. A line is added to at most `ROWS`
    times, so sums stay about as exact as pairwise ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from ..ir.graph import Var
from ..ir.types import TensorType
from .classify import MAP
from .cluster import Cluster
from .kernel import FOLD, LOAD, PIECE, STORE, TALLY, Access, Instr, Kernel
from .pieces import CACHED, positions, second_step
from .reader import HALVES
from .schedule import Scheduler
from .tail import loaded
from .vectors import can_vectorise, suited

ROWS = 64  # that are added up in one line
LINES = 64  # at least, to have chunks for all threads
LEAST = CACHED  # points: what is in cache is read again sooner than tallied


def merge(plan: Scheduler, kernels: dict[Cluster, Kernel], kept: Iterable[Var]) -> None:
    """Lets row kernels tally for the column kernels after them."""
    hosts: list[Cluster] = []
    for cluster in plan.clusters:
        kernel = kernels.get(cluster)
        if kernel is None or cluster.kind != MAP or kernel.points < LEAST:
            continue
        for host in hosts:
            found = tallied(plan, host, kernels[host], kernel)
            if found is not None:
                kernels[host], kernels[cluster] = found
                break
        else:
            if is_host(kernel):
                hosts.append(cluster)
    for host in hosts:
        if kernels[host].together:
            drop_unread(plan, kernels, host, set(kept))


def is_host(kernel: Kernel) -> bool:
    """Has it one loop over rows, and vectors along one loop over columns?"""
    if not kernel.inner or kernel.free is not None:
        return False
    nest = suited(kernel)
    alone = nest.outer == nest.shared == 1 and len(nest.loops) == 2
    return nest.form == "row" and alone and nest.loops[0] >= 2 * LINES and can_vectorise(nest)


def tallied(plan: Scheduler, at: Cluster, host: Kernel, guest: Kernel,
            ) -> tuple[Kernel, Kernel] | None:  # fmt: skip
    """The host that tallies for the guest, and what is left of the guest; None if it can't."""
    across = frozenset(d for d, n in enumerate(host.sizes) if n != 1 and d not in host.inner)
    over = frozenset(d for d in guest.inner if guest.sizes[d] != 1)
    if guest.sizes != host.sizes or over != across or len(guest.passes) > 1 or guest.free:
        return None
    folds = [i for i in guest.passes[0] if guest.instrs[i].kind == FOLD]
    if len(folds) < len(guest.passes[0]) or any(guest.between[0]):
        return None
    if any(guest.instrs[i].dtype in HALVES for i in folds):
        return None  # as pieces are, lines are kept in the result's dtype
    made = copied(host)
    values = Absorption(plan, at, made, guest).values(folds)
    if values is None:
        return None
    rows = math.prod(host.sizes[d] for d in across)
    made.together = host.together or min(ROWS, -(-rows // LINES))
    count = -(-rows // made.together)
    columns = math.prod(guest.sizes[d] for d in range(len(guest.sizes)) if d not in guest.inner)
    lines = [Var(TensorType(guest.instrs[i].node.outputs[0].dtype, (count, columns)))  # type: ignore
             for i in folds]  # fmt: skip
    add_tallies(made, guest, folds, values, lines)
    return made, second_step(guest, folds, lines, count)


def copied(kernel: Kernel) -> Kernel:
    return replace(kernel, instrs=list(kernel.instrs), passes=[list(p) for p in kernel.passes],
                   between=[list(b) for b in kernel.between])  # fmt: skip


class Absorption:
    """Instructions of a guest as the host's."""

    def __init__(self, plan: Scheduler, at: Cluster, host: Kernel, guest: Kernel):
        self.plan, self.at, self.host, self.guest = plan, at, host, guest
        self.stored = {i.access: i.operands[0] for i in host.instrs if i.kind == STORE}
        self.now: dict[int, int] = {}
        self.shared = 0  # loads that the host has the values of

    def values(self, folds: list[int]) -> list[int] | None:
        """What the folds reduce; None where the host can't have it, or has none of it."""
        wanted = [o for i in folds for o in self.guest.instrs[i].operands if o is not None]
        needed = set(wanted)
        for i in reversed(range(len(self.guest.instrs))):
            if i in needed:
                needed.update(o for o in self.guest.instrs[i].operands if o is not None)
        for i in sorted(needed):
            at = self.take(self.guest.instrs[i])
            if at is None:
                return None
            self.now[i] = at
        return [self.now[i] for i in wanted] if self.shared else None

    def take(self, instr: Instr) -> int | None:
        """Where the host has the instruction's value, from now on if not yet."""
        if instr.kind == LOAD:
            if instr.access in self.stored:
                self.shared += 1
                return self.stored[instr.access]
            if instr.access.dynamic or not self.plan.precedes(instr.access.var, self.at):  # type: ignore
                return None
            self.shared += instr in self.host.instrs
        elif instr.kind in (FOLD, STORE) or instr.limit:
            return None
        operands = tuple(None if o is None else self.now[o] for o in instr.operands)
        moved = replace(instr, operands=operands)
        if moved not in self.host.instrs:
            self.host.instrs.append(moved)
        return self.host.instrs.index(moved)


def add_tallies(host: Kernel, guest: Kernel, folds: list[int], values: list[int],
                lines: list[Var]) -> None:  # fmt: skip
    """Adds to the host's passes: when all that a value needs is reduced, its line is added to."""
    if not any(i.kind == PIECE for i in host.instrs):
        host.instrs.append(Instr(PIECE, "int64", frozenset()))
    piece = next(k for k, i in enumerate(host.instrs) if i.kind == PIECE)
    everywhere = frozenset(range(len(host.sizes)))
    for fold, value, line in zip(folds, values, lines):
        access = Access(line, positions(guest), 0, ((line.shape[1], piece),))
        node = guest.instrs[fold].node
        host.instrs.append(Instr(TALLY, guest.instrs[fold].dtype, everywhere, (value, piece), node,
                                 access))  # fmt: skip
        if has_fold_of(host, value, len(host.passes) - 1):
            host.passes.append([])
            host.between.append([])
        host.passes[-1].append(len(host.instrs) - 1)
    host.nodes = tuple(sorted({*host.nodes, *guest.nodes}))


def has_fold_of(kernel: Kernel, value: int, t: int) -> bool:
    """Does the value depend on a reduction of pass `t`?"""
    waiting, seen = [value], set()
    while waiting:
        i = waiting.pop()
        if i in seen:
            continue
        seen.add(i)
        if kernel.instrs[i].kind == FOLD and i in kernel.passes[t]:
            return True
        waiting += [o for o in kernel.instrs[i].operands if o is not None]
    return False


def drop_unread(plan: Scheduler, kernels: dict[Cluster, Kernel], host: Cluster, kept: set[Var],
                ) -> None:  # fmt: skip
    """Stores that only guests would have read are not made."""
    read = kept.union(*(loaded(plan, kernels, c) for c in plan.clusters))
    gone = {k for k, i in enumerate(kernels[host].instrs)
            if i.kind == STORE and i.access.var not in read}  # type: ignore  # fmt: skip
    kernels[host] = without(kernels[host], gone)


def without(kernel: Kernel, gone: set[int]) -> Kernel:
    """The kernel less some stores; what follows them gets other numbers."""
    left = [k for k in range(len(kernel.instrs)) if k not in gone]
    now = {old: new for new, old in enumerate(left)}

    def moved(instr: Instr) -> Instr:
        access = instr.access
        if access is not None:
            access = replace(access, dynamic=tuple((s, now[k]) for s, k in access.dynamic))
        operands = tuple(None if o is None else now[o] for o in instr.operands)
        return replace(instr, operands=operands, access=access)

    def listed(effects: list[int]) -> list[int]:
        return [now[i] for i in effects if i not in gone]

    return replace(kernel, instrs=[moved(kernel.instrs[k]) for k in left],
                   passes=[listed(e) for e in kernel.passes],
                   between=[listed(e) for e in kernel.between])  # fmt: skip
