"""Long reductions with few results, in two steps: pieces side by side, then the pieces.

The first kernel runs each piece of the reduced loops as a chunk of its own and stores partial
results; the second reduces those and does what follows the reduction. The number of pieces depends
on sizes alone, so the bits do not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..ir.graph import Var
from ..ir.types import TensorType
from .kernel import FOLD, LOAD, PIECE, STORE, Access, Instr, Kernel
from .nest import GRAIN, Nest
from .reader import HALVES
from .vectors import suited

FEW = 8  # chunks below which the reduced loops are cut as well
MOST = 64
CACHED = 1 << 18  # points whose columns can be read one after the other


def in_pieces(kernel: Kernel, nest: Nest) -> tuple[Nest, Nest, list[Var]] | None:
    """Nests of both steps and the partial results between them; None where it does not pay."""
    folds = [i for effects in kernel.passes for i in effects if kernel.instrs[i].kind == FOLD]
    if not folds or len(kernel.passes) > 1 or kernel.together:
        return None
    streaming = nest.form == "column" and kernel.points > CACHED
    if nest.chunks >= FEW and not streaming:
        return None
    if any(kernel.instrs[i].dtype in HALVES for i in folds):
        return None  # partial results are kept in the result's dtype, which would round them
    work = kernel.points * kernel.weight()
    long = nest.loops[nest.outer]
    count = min(MOST, work // (2 * GRAIN), long // 16)
    if count < 2:
        return None
    size = -(-long // count)
    if size > 4096:
        size = -(-size // 2048) * 2048
    count = -(-long // size)
    groups = max(1, FEW // count)
    grain = -(-nest.turns // groups)
    results = nest.loops[: nest.outer]
    partials = [Var(TensorType(kernel.instrs[i].node.outputs[0].dtype,  # type: ignore[union-attr]
                               (count, math.prod(results)))) for i in folds]  # fmt: skip
    first = _first(kernel, folds, partials)
    shape = replace(suited(first), pieces=count, piece=size, grain=grain)
    return shape, suited(second_step(kernel, folds, partials, count)), partials


def positions(kernel: Kernel) -> tuple[int, ...]:
    """Strides of a result's number, loops in order: 0 for the reduced ones."""
    strides, step = [0] * len(kernel.sizes), 1
    for d in reversed(range(len(kernel.sizes))):
        if d not in kernel.inner:
            strides[d] = 0 if kernel.sizes[d] == 1 else step
            step *= kernel.sizes[d]
    return tuple(strides)


def _first(kernel: Kernel, folds: list[int], partials: list[Var]) -> Kernel:
    made = Kernel(kernel.sizes, kernel.inner, list(kernel.instrs), [list(kernel.passes[0])])
    made.nodes, made.sources = kernel.nodes, kernel.sources
    made.instrs.append(Instr(PIECE, "int64", frozenset()))
    piece, stores = len(made.instrs) - 1, []
    strides = positions(kernel)
    outer = frozenset(d for d in range(len(kernel.sizes)) if d not in kernel.inner)
    for i, var in zip(folds, partials):
        access = Access(var, strides, 0, ((var.shape[1], piece),))
        made.instrs.append(Instr(STORE, kernel.instrs[i].dtype, outer, (i, piece), None, access))
        stores.append(len(made.instrs) - 1)
    made.between = [[], stores]
    return made


def second_step(kernel: Kernel, folds: list[int], partials: list[Var], count: int) -> Kernel:
    """The kernel that reduces `count` partial results of each fold and does what follows."""
    sizes = [1 if d in kernel.inner else n for d, n in enumerate(kernel.sizes)] + [count]
    made = Kernel(sizes, frozenset([len(sizes) - 1]), nodes=kernel.nodes)
    strides = positions(kernel)
    outer = frozenset(d for d in range(len(kernel.sizes)) if d not in kernel.inner)
    now: dict[int, int] = {}

    def add(instr: Instr) -> int:
        made.instrs.append(instr)
        return len(made.instrs) - 1

    def visit(i: int) -> int:
        if i not in now:
            instr = kernel.instrs[i]
            now[i] = add(_moved(instr, [None if o is None else visit(o) for o in instr.operands]))
        return now[i]

    for i, var in zip(folds, partials):
        access = Access(var, (*strides, var.shape[1]))
        whole = outer | {len(sizes) - 1}
        load = add(Instr(LOAD, kernel.instrs[i].dtype, whole, (), None, access))
        now[i] = add(replace(kernel.instrs[i], operands=(load,)))
    made.passes = [[now[i] for i in folds]]
    made.between = [[], [visit(i) for effects in kernel.between for i in effects]]
    return made


def _moved(instr: Instr, operands: list[int | None]) -> Instr:
    """The instruction with other operands and one more loop."""
    access, expr = instr.access, instr.expr
    if access is not None:
        rest = operands[1:] if instr.kind == STORE else operands
        dynamic = tuple((s, k) for (s, _), k in zip(access.dynamic, rest))
        access = replace(access, strides=(*access.strides, 0), dynamic=dynamic)  # type: ignore
    if expr is not None:
        expr = expr._replace(coefs=(*expr.coefs, 0))
    return replace(instr, operands=tuple(operands), access=access, expr=expr)
