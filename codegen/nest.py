"""Loop nests: a kernel's loops in the order they will run, joined where memory allows.

Three forms. "map": no reductions. "row": the innermost loop is reduced, so results are scalars
that live in registers. "column": the innermost loop is not reduced; it runs over a block of
results that are accumulated side by side in a scratch array, one row of input after the other.

Work is cut into chunks by sizes alone, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .kernel import COORDINATE, STORE, Instr, Kernel

COLUMNS = 64  # results that a turn computes in column form: a vector or a few of them
GRAIN = 1 << 14  # cheap instructions per chunk
# Cheap instructions that one thread does as soon as two, who have to tell each other: 2 to 5 us;
# see Target.chunk_flops for products.
ALONE = 1 << 17
MOST_CHUNKS = 256
TILE = 16  # of transposing loops: a cache line of floats
SHORT_ROW, MANY = 17, 8  # shorter rows than this are reduced side by side, if so many


@dataclass(frozen=True)
class Nest:
    """`loops` are sizes from the outside in, the first `outer` of them not reduced.

    In column form the last of the outer loops is the one over columns. `strides[k]` are those of
    instruction k for these loops, `varies[k]` the loops it varies with. The first `shared` loops
    are cut into chunks of `grain` turns.
    """

    kernel: Kernel
    form: str
    loops: tuple[int, ...]
    outer: int
    strides: dict[int, tuple[int, ...]]
    varies: tuple[frozenset[int], ...]
    shared: int
    grain: int
    turns: int
    tiled: bool = False  # are the last two loops cut into tiles?
    pieces: int = 1  # that the first reduced loop is cut into, each a chunk of its own
    piece: int = 0  # turns of that loop in a piece

    @property
    def chunks(self) -> int:
        if self.pieces > 1:
            return -(-self.turns // self.grain) * self.pieces
        return -(-self.turns // self.grain) if self.turns else 0


def arrange(kernel: Kernel, columns: bool = True) -> Nest:
    """Orders and joins the loops of a kernel; `columns` allows the column form."""
    used = [d for d, n in enumerate(kernel.sizes) if n != 1]
    outer = [d for d in used if d not in kernel.inner]
    inner = [d for d in used if d in kernel.inner]
    coefs = {k: (i.access.strides if i.access else i.expr.coefs)  # type: ignore[union-attr]
             for k, i in enumerate(kernel.instrs) if i.access or i.kind == COORDINATE}  # fmt: skip
    form, tiled = "map", False
    if kernel.free is None:
        form, outer, inner, tiled = _ordered(kernel, outer, inner, coefs, columns)
    free = kernel.free or 0
    first = _join(kernel, [d for d in outer if d < free], coefs)
    rest = _join(kernel, [d for d in outer if d >= free], coefs)
    groups = first + rest + _join(kernel, inner, coefs)
    count = len(first + rest)
    loops = tuple(math.prod(kernel.sizes[d] for d in g) for g in groups)
    strides = {k: tuple(c[g[-1]] for g in groups) for k, c in coefs.items()}
    where = {d: k for k, g in enumerate(groups) for d in g}
    varies = tuple(frozenset(where[d] for d in i.loops if d in where) for i in kernel.instrs)
    if kernel.free is None:
        tiled = tiled and count > 1 and min(loops[-2:]) >= TILE
        shared, turns, grain = _cut(kernel, form, loops, count, tiled)
    else:
        shared = min(len(first), max(1, count - 1))  # the innermost stays whole
        turns = math.prod(loops[:shared])
        grain = _grain(kernel, turns)
    return Nest(kernel, form, loops, count, strides, varies, shared, grain, turns, tiled)


def _ordered(kernel: Kernel, outer: list[int], inner: list[int],
             coefs: dict[int, tuple[int, ...]], columns: bool,
             ) -> tuple[str, list[int], list[int], bool]:  # fmt: skip
    """The form, the loops in their order, and whether they are cut into tiles.

    Loops that were cut for a node that did not join after all count as one again.
    """
    above, below = _join(kernel, outer, coefs), _join(kernel, inner, coefs)
    groups, count = above + below, len(above)
    if len(groups) < len(outer) + len(inner):
        kernel = _with_loops(kernel, groups, count)
        outer, inner = list(range(count)), list(range(count, len(groups)))
    else:
        groups = [[d] for d in range(len(kernel.sizes))]
    form, outer, inner = _order(kernel, outer, inner, columns)
    outer, tiled = _across(kernel, outer) if form == "map" else (outer, False)
    return form, [d for k in outer for d in groups[k]], [d for k in inner for d in groups[k]], tiled


def _with_loops(kernel: Kernel, groups: list[list[int]], outer: int) -> Kernel:
    """The kernel with one loop for each group of neighbours."""
    where = {d: k for k, g in enumerate(groups) for d in g}

    def seen(instr: Instr) -> Instr:
        access = instr.access
        if access is not None:
            access = replace(access, strides=tuple(access.strides[g[-1]] for g in groups))
        loops = frozenset(where[d] for d in instr.loops if d in where)
        return replace(instr, loops=loops, access=access)

    sizes = [math.prod(kernel.sizes[d] for d in g) for g in groups]
    return Kernel(sizes, frozenset(range(outer, len(groups))), [seen(i) for i in kernel.instrs])


def _order(kernel: Kernel, outer: list[int], inner: list[int], columns: bool,
           ) -> tuple[str, list[int], list[int]]:  # fmt: skip
    """The form, and the loops with the one to vectorise last."""
    score = dict.fromkeys([*outer, *inner], 0.0)
    for instr in kernel.instrs:
        if instr.access is None or (inner and not instr.loops & kernel.inner):
            continue
        elements = math.prod(kernel.sizes[d] for d in score if instr.access.strides[d])
        share = elements / max(1, kernel.points)  # what is small stays in cache in any order
        for d in score:
            if abs(instr.access.strides[d]) == 1:
                score[d] += share * (1.5 if instr.kind == STORE else 1.0)

    def last(dims: list[int]) -> list[int]:
        if not dims:
            return dims
        best = max(dims, key=lambda d: (score[d], d))
        return [d for d in dims if d != best] + [best]

    if not inner:
        return "map", last(outer), inner
    outer, inner = last(outer), last(inner)
    if not outer or not columns:
        return "row", outer, inner
    short = kernel.sizes[inner[-1]] < SHORT_ROW and kernel.sizes[outer[-1]] >= MANY
    sideways = short or (score[outer[-1]] > score[inner[-1]] and kernel.sizes[outer[-1]] >= 4)
    return ("column" if sideways else "row"), outer, inner


def _across(kernel: Kernel, dims: list[int]) -> tuple[list[int], bool]:
    """If some accesses run along the last loop and some along another, that one before the last."""
    if len(dims) < 2:
        return dims, False
    accesses = kernel.accesses()
    crossed = [a for a in accesses if abs(a.strides[dims[-1]]) > 1]
    for d in reversed(dims[:-1]):
        if any(abs(a.strides[d]) == 1 for a in crossed):
            return [e for e in dims[:-1] if e != d] + [d, dims[-1]], True
    return dims, False


def _join(kernel: Kernel, dims: list[int], coefs: dict[int, tuple[int, ...]]) -> list[list[int]]:
    """Neighbouring loops that one loop can stand for."""
    groups: list[list[int]] = []
    for d in dims:
        size = kernel.sizes[d]
        if groups and all(c[groups[-1][-1]] == c[d] * size for c in coefs.values()):
            groups[-1].append(d)
        else:
            groups.append([d])
    return groups


def _grain(kernel: Kernel, turns: int) -> int:
    """Turns per chunk: enough work to be worth a thread, and not too many chunks."""
    if kernel.together:
        return kernel.together
    if kernel.points * kernel.weight() < ALONE:
        return max(1, turns)
    work = kernel.points * kernel.weight() / max(1, turns)
    return max(1, math.ceil(GRAIN / max(1.0, work)), -(-turns // MOST_CHUNKS))


def _cut(kernel: Kernel, form: str, loops: tuple[int, ...], outer: int, tiled: bool,
         ) -> tuple[int, int, int]:  # fmt: skip
    """(loops that are cut, their turns, turns per chunk)."""
    sizes = list(loops[:outer])
    if tiled:
        turns = math.prod(sizes[:-2]) * -(-sizes[-2] // TILE) * -(-sizes[-1] // TILE)
        return outer, turns, _grain(kernel, turns)
    if form == "column":
        sizes[-1] = -(-sizes[-1] // COLUMNS)
    elif form == "map" and outer > 1:
        outer -= 1  # the innermost stays whole
    shared, turns = 0, 1
    while shared < outer and turns < 4 * MOST_CHUNKS:
        turns *= sizes[shared]
        shared += 1
    if form == "column" and shared < outer:
        turns, shared = turns * math.prod(sizes[shared:]), outer
    grain = _grain(kernel, turns)
    if form == "map" and len(loops) == 1:
        grain = -(-grain // 1024) * 1024
    return shared, turns, grain
