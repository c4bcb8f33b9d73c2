"""Kernels as data: an iteration space, straight-line instructions, and what they leave behind.

A `Kernel` is made from a cluster by `Lowering`: members that somebody else needs become stores,
values from outside become loads, everything between stays in registers. Views and constants are
gone. What depends on which loops is kept per instruction, so that the emitter can place each one
in the outermost loop where it is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from ..ir.graph import Node, Var
from . import indirect
from .affine import Expr, Split, Unfoldable, natural
from .classify import FREE, GATHER, MAP, REDUCE, cost
from .cluster import Cluster
from .schedule import Scheduler

LOAD, APPLY, COORDINATE, CONSTANT, FOLD = "load", "apply", "coordinate", "constant", "fold"
STORE, CHECK, MODIFY, PIECE = "store", "check", "modify", "piece"
LONG = 40  # instructions of a value, roughly: a power in double precision
TALLY = "tally"  # adds to what rows of a chunk have in common; see Note [Tallies]


@dataclass(frozen=True)
class Access:
    """An element of the buffer of `var`: strides per loop, in elements, and run-time indices."""

    var: Var
    strides: tuple[int, ...]
    offset: int = 0
    dynamic: tuple[tuple[int, int], ...] = ()  # (stride, instruction)


@dataclass(frozen=True)
class Instr:
    """One instruction; `loops` are those it varies with."""

    kind: str
    dtype: str
    loops: frozenset[int]
    operands: tuple[int | None, ...] = ()
    node: Node | None = None
    access: Access | None = None
    expr: Expr | None = None
    limit: int = 0  # of an index that is checked
    sure: bool = False  # is it known to be in range? See trusted.py

    @property
    def weight(self) -> int:
        """Cost per point, roughly."""
        return cost(self.node) if self.node is not None else 1


@dataclass(eq=False)
class Kernel:
    """Loops over `sizes`; reductions run over `inner`.

    `passes[t]` are the folds and stores of the t-th pass over the inner loops, `between[t]` the
    stores before it (the last entry: after all). Without reductions there is one pass.
    """

    sizes: list[int]
    inner: frozenset[int]
    instrs: list[Instr] = field(default_factory=list)
    passes: list[list[int]] = field(default_factory=list)
    between: list[list[int]] = field(default_factory=list)
    free: int | None = None  # of an update: how many loops may be shared, the rest keep their order
    nodes: tuple[int, ...] = ()
    sources: tuple[Node, ...] = ()
    together: int = 0  # rows of a chunk, where they tally; see Note [Tallies]
    checks: dict[int, tuple[Var, Expr]] = field(default_factory=dict)  # what instructions check

    def accesses(self) -> list[Access]:
        return [i.access for i in self.instrs if i.access is not None]

    @property
    def points(self) -> int:
        return math.prod(self.sizes)

    def weight(self) -> int:
        """Cost per point, roughly."""
        return sum(i.weight for i in self.instrs)


class Lowering:
    """Makes the kernel of one cluster; adds what it loads to `needed`."""

    def __init__(self, plan: Scheduler, cluster: Cluster, needed: set[Var]):
        self.plan, self.cluster, self.needed = plan, cluster, needed
        self.kernel = Kernel(list(cluster.sizes), cluster.inner or frozenset())
        self.known: dict[tuple[Var, Expr], int] = {}
        self.loads: set[Var] = set()
        self.checked: dict[Any, int] = {}
        self.index_of: dict[Any, int] = {}

    def run(self) -> Kernel | None:
        """The kernel, or None if nobody needs anything of the cluster."""
        cluster, kernel = self.cluster, self.kernel
        roots = [n for n in cluster.members if n.outputs[0] in self.needed]
        if not roots:
            return None
        effects: list[tuple[int, bool, int]] = []  # (stage, whole space?, instruction)
        for node in roots:
            (var,) = node.outputs
            e = cluster.maps[var]
            value = self.value(var, e)
            whole = cluster.inner is None or bool(e.depends_on() & cluster.inner)
            effects.append((cluster.stage[var], whole, self.store(var, e, value)))
        for at, instr in enumerate(kernel.instrs):
            if instr.kind == FOLD:
                (var,) = instr.node.outputs  # type: ignore[union-attr]
                effects.append((cluster.stage[var] - 1, True, at))
        self.finish(effects + self.unread_checks(max(effects)[0]), roots)
        return kernel

    def unread_checks(self, stage: int) -> list[tuple[int, bool, int]]:
        """Indices that lead nowhere, into constants and what is expanded, are checked as well."""
        read = {o for instr in self.kernel.instrs for o in instr.operands}
        return [(stage, True, at) for at in self.checked.values() if at not in read]

    def run_update(self) -> Kernel:
        """The kernel of an update: reads its source, adds to (or assigns) what is there."""
        (node,) = self.cluster.members
        (whole,) = node.outputs
        sizes, kernel = self.kernel.sizes, self.kernel
        e = natural(sizes)
        value = self.value(node.inputs[1], e)  # type: ignore[arg-type]
        self.check(node, indirect.update_reads(node, e, sizes)[1:])
        access, indices = self.access(whole, indirect.update_place(node, e, sizes))
        everything = frozenset(range(len(sizes)))
        at = self.add(Instr(MODIFY, whole.dtype.name, everything, (value, *indices), node, access))
        kernel.free = self.cluster.free
        self.finish([(0, True, at), *self.unread_checks(0)], [node])
        return kernel

    def finish(self, effects: list[tuple[int, bool, int]], roots: list[Node]) -> None:
        """Sorts effects into passes, and notes which nodes the kernel stands for."""
        kernel = self.kernel
        count = 1 + max([s for s, whole, _ in effects if whole], default=0)
        kernel.passes = [[i for s, w, i in effects if w and s == t] for t in range(count)]
        kernel.between = [[i for s, w, i in effects if not w and min(s, count) == t]
                          for t in range(count + 1)]  # fmt: skip
        kernel.sources = tuple(i.node for i in kernel.instrs if i.node is not None)
        numbers = {self.plan.number[n] for n in kernel.sources} | {
            self.plan.number[n] for n in roots}  # fmt: skip
        kernel.nodes = tuple(sorted(n for n in numbers if n >= 0))

    def add(self, instr: Instr) -> int:
        self.kernel.instrs.append(instr)
        return len(self.kernel.instrs) - 1

    def loops_of(self, *operands: int | None) -> frozenset[int]:
        return frozenset().union(*(self.kernel.instrs[o].loops for o in operands if o is not None))

    # -- values ----------------------------------------------------------------------------

    def value(self, var: Var, e: Expr) -> int:
        """The instruction that gives `var` at position `e`."""
        wanted = self.plan.source(var, e, self.kernel.sizes)
        waiting, opened = [wanted], set()  # a chain may be longer than Python lets calls nest
        while waiting:
            key = waiting[-1]
            if key not in self.known and key not in opened:
                opened.add(key)
                waiting += reversed(self.operands(*key))
                continue
            waiting.pop()
            if key not in self.known:
                self.known[key] = self.make(*key)
        return self.known[wanted]

    def operands(self, var: Var, e: Expr) -> list[tuple[Var, Expr]]:
        """What must be there before `var` is computed here, where it is by a scalar op."""
        node = self.plan.producer.get(var)
        if node is None or self.plan.kinds[node] in (FREE, REDUCE, GATHER):
            return []
        if self.cluster.maps.get(var) != e and self.must_load(var, e):
            return []
        return [self.plan.source(v, e, self.kernel.sizes) for v in node.inputs if v is not None]

    def make(self, var: Var, e: Expr) -> int:
        node = self.plan.producer.get(var)
        member = self.cluster.maps.get(var) == e
        if node is None:
            return self.load(var, e)
        kind = self.plan.kinds[node]
        if kind == FREE:
            return self.free(node, e)
        if not member and self.must_load(var, e):
            return self.load(var, e)
        if kind == REDUCE:
            operand = self.value(node.inputs[0], self.cluster.spaces[node])  # type: ignore
            # for each turn of the outer loops a total of its own, even of what is the same in all
            loops = frozenset(range(len(self.kernel.sizes))) - self.kernel.inner
            return self.add(Instr(FOLD, var.dtype.name, loops, (operand,), node))
        if kind == GATHER:
            return self.gather(node, e)
        return self.apply(node, e)

    def gather(self, node: Node, e: Expr) -> int:
        """An element found through indices, which are checked on the way."""
        (source, at), *indices = indirect.reads(node, e, self.kernel.sizes)
        self.check(node, indices)
        return self.value(source, at)

    def check(self, node: Node, indices: indirect.Reads) -> None:
        """Loads and checks indices, for accesses that follow."""
        for k, (index, where) in enumerate(indices):
            key = index, where, indirect.bound(node, k)
            if key not in self.checked:
                raw = self.value(index, where)
                instr = Instr(
                    CHECK, "int64", self.kernel.instrs[raw].loops, (raw,), node, limit=key[2]
                )
                self.checked[key] = self.add(instr)
                source = self.plan.source(index, where, self.kernel.sizes)
                self.kernel.checks[self.checked[key]] = source
            self.index_of[index, where] = self.checked[key]

    def apply(self, node: Node, e: Expr) -> int:
        operands = tuple(None if v is None else self.value(v, e) for v in node.inputs)
        dtype = node.outputs[0].dtype.name
        return self.add(Instr(APPLY, dtype, self.loops_of(*operands), operands, node))

    def free(self, node: Node, e: Expr) -> int:
        dtype = node.outputs[0].dtype.name
        if node.op.name in ("iota", "coordinate"):
            e = self.plan.coordinate(node.outputs[0], e, self.kernel.sizes)
            at = self.add(Instr(COORDINATE, "int64", e.depends_on(), self.indices(e), expr=e))
            if node.op.name == "coordinate" and dtype == "int64":
                return at
            return self.add(Instr(APPLY, dtype, self.loops_of(at), (at,), node))
        return self.add(Instr(CONSTANT, dtype, frozenset(), (), node))

    def indices(self, e: Expr) -> tuple[int, ...]:
        """Instructions of the run-time indices of a position."""
        return tuple(self.index_of[key] for _, key in e.dynamic)

    def access(self, var: Var, e: Expr) -> tuple[Access, tuple[int, ...]]:
        indices = self.indices(e)
        dynamic = tuple((f, i) for (f, _), i in zip(e.dynamic, indices))
        return Access(var, e.coefs, e.offset, dynamic), indices

    def load(self, var: Var, e: Expr) -> int:
        if var in self.plan.home:
            self.needed.add(var)
        self.loads.add(var)
        access, indices = self.access(var, e)
        return self.add(Instr(LOAD, var.dtype.name, e.depends_on(), indices, None, access))

    def store(self, var: Var, e: Expr, value: int) -> int:
        var, e = self.plan.stored_at(var, e, self.kernel.sizes)
        access, indices = self.access(var, e)
        loops = e.depends_on() | self.loops_of(value)
        return self.add(Instr(STORE, var.dtype.name, loops, (value, *indices), None, access))

    # -- loading or computing again --------------------------------------------------------

    def must_load(self, var: Var, e: Expr) -> bool:
        """Is a value from outside loaded? Else it is cheap enough to compute again."""
        home = self.plan.home[var]
        if not self.plan.precedes(var, self.cluster):
            return False
        if var in self.needed or home.kind != MAP:
            return True
        try:
            price = self.price(var, e, 3)
        except (Split, Unfoldable):
            return True
        return price is None or price[0] > 6 or len(price[1] - self.loads) > 1

    def price(self, var: Var, e: Expr, depth: int) -> tuple[int, set[Var]] | None:
        """(instructions, large values to load) of computing it here; None if that is too much."""
        var, e = self.plan.source(var, e, self.kernel.sizes)
        node = self.plan.producer.get(var)
        if node is not None and self.plan.kinds[node] == FREE:
            return 0, set()
        if node is None or var in self.needed or (var, e) in self.known:
            small = var.type.numel * 16 <= self.kernel.points
            return 0, set() if small or (var, e) in self.known else {var}
        here = self.cost_here(node, e)
        if self.plan.kinds[node] not in (MAP, GATHER) or not depth or here > 2:
            # a leaf that must be stored in place of `var`
            return (0, {var}) if self.plan.precedes(var, self.cluster) and depth < 3 else None
        total, loads = here, set()
        for operand, at in self.plan.reads(node, e, self.kernel.sizes):
            part = self.price(operand, at, depth - 1)
            if part is None:
                return None
            total, loads = total + part[0], loads | part[1]
        return total, loads

    def cost_here(self, node: Node, e: Expr) -> int:
        """Instructions per point of the kernel; none for what most of its loops do not change.

        But what no loop changes is not compiled into each reader where its code would be long.
        """
        loops = set() if e.dynamic else set(range(len(self.kernel.sizes))) - e.depends_on()
        turns, price = math.prod(self.kernel.sizes[d] for d in loops), cost(node)
        if turns == self.kernel.points:
            return price if price >= LONG else 0
        return 0 if turns >= 16 else price


def describe(kernel: Kernel, name_of: Any) -> str:
    """The kernel as text, one instruction per line; `name_of` names buffers."""
    sizes = ", ".join(f"i{d}<{n}{' reduced' if d in kernel.inner else ''}"
                      for d, n in enumerate(kernel.sizes))  # fmt: skip
    lines = [f"for {sizes}:" if kernel.sizes else "once:"]
    for number, instr in enumerate(kernel.instrs):
        lines.append(f"  {_line(number, instr, name_of)}")
    if len(kernel.passes) > 1:
        for t, effects in enumerate(kernel.passes):
            lines.append(f"  pass {t}: " + ", ".join(f"%{i}" for i in effects))
    return "\n".join(lines)


def _line(number: int, instr: Instr, name_of: Any) -> str:
    if instr.access is not None:
        a = instr.access
        terms = [f"{s}*i{d}" if s != 1 else f"i{d}" for d, s in enumerate(a.strides) if s]
        terms += [f"{s}*%{i}" for s, i in a.dynamic] + ([str(a.offset)] if a.offset else [])
        where = f"{name_of(a.var)}[{' + '.join(terms) or '0'}]"
        if instr.kind == STORE:
            return f"{where} = %{instr.operands[0]}"
        if instr.kind == TALLY:
            return f"{where} = {instr.node.op.name} of all %{instr.operands[0]}"
        if instr.kind == MODIFY:
            return f"{where} {'+=' if instr.node.attributes['add'] else '='} %{instr.operands[0]}"
        return f"%{number}: {a.var.dtype.short} = {where}"
    if instr.kind == PIECE:
        return f"%{number}: i64 = number of the piece"
    if instr.expr is not None:
        terms = [f"{s}*i{d}" for d, s in enumerate(instr.expr.coefs) if s]
        return f"%{number}: i64 = {' + '.join(terms) or '0'}"
    node = instr.node
    assert node is not None
    operands = " ".join("none" if o is None else f"%{o}" for o in instr.operands)
    attrs = ", ".join(f"{k}={v}" for k, v in node.attrs)
    text = f"%{number}: {node.outputs[0].dtype.short} = "
    text += "reduce " if instr.kind == FOLD else ""
    text += f"{node.op.name} {operands}".rstrip() + (f" {{{attrs}}}" if attrs else "")
    return text + (f"  @{node.place}" if node.place else "")
