"""Borders of rows, written by the kernel that writes the rows.

A value with a border is joined from its inside and slabs of a constant (expand.padded). The slabs
before and after each row are a few elements in the lines that the inside has just written, so
kernels of their own would go through all of the memory twice more. They become stores at the end of
each row: padding 8 x 64 images of 56 x 56 takes 0.3 of the time, 1% of the convolution after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..ir.graph import Var
from .affine import Strided
from .classify import JOIN, MAP
from .cluster import Cluster
from .kernel import APPLY, CONSTANT, STORE, Access, Instr, Kernel
from .nest import Nest
from .schedule import Scheduler
from .vectors import suited

WIDEST = 4  # elements of a border: each is a store


def merge(plan: Scheduler, kernels: dict[Cluster, Kernel], tails: Iterable[Cluster]) -> None:
    """Lets kernels write the borders of their rows; `tails` are written by products."""
    taken = set(tails)
    wholes: dict[Var, dict[Var, Strided]] = {}
    for var, (whole, region) in plan.inside.items():
        if plan.home[var] in kernels:
            wholes.setdefault(whole, {})[var] = region
    for whole, parts in wholes.items():
        if plan.home[whole].kind == JOIN:
            merge_parts(plan, kernels, whole, parts, taken)


def merge_parts(plan: Scheduler, kernels: dict[Cluster, Kernel], whole: Var,
                parts: dict[Var, Strided], taken: set[Cluster]) -> None:  # fmt: skip
    borders = {}
    for var in parts:
        constant = stored_constant(kernels[plan.home[var]])
        if constant is not None:
            borders[var] = constant
    for inside, rows in parts.items():
        host = plan.home[inside]
        if inside in borders or host in taken or host.kind != MAP or not runs_of(rows):
            continue
        for var in [v for v in borders if beside(rows, parts[v])]:
            home = plan.home[var]
            joined = with_border(kernels[host], kernels[home], borders[var], whole, rows,
                                 parts[var])  # fmt: skip
            if joined is not None:
                kernels[host] = joined
                del kernels[home], borders[var]


def runs_of(region: Strided) -> bool:
    """Has it several rows, each of which lies in one piece and is longer than any border?"""
    return len(region.shape) > 1 and region.strides[-1] == 1 and region.shape[-1] > WIDEST


def beside(rows: Strided, border: Strided) -> bool:
    """Do elements of the border stand right before or behind each row?"""
    if border.shape[:-1] != rows.shape[:-1] or border.strides != rows.strides:
        return False
    first = border.offset - rows.offset
    return border.shape[-1] <= WIDEST and first in (-border.shape[-1], rows.shape[-1])


def with_border(host: Kernel, guest: Kernel, constant: list[Instr], whole: Var, rows: Strided,
                border: Strided) -> Kernel | None:  # fmt: skip
    """The kernel of the rows with the border's stores after each of them, if it has such rows."""
    found = row_store(host, whole, rows)
    if found is None:
        return None
    store, along, nest = found
    access = store.access
    assert access is not None
    instrs, first = list(host.instrs), len(host.instrs)
    instrs += [replace(i, operands=tuple(o + first for o in i.operands if o is not None))
               for i in constant]  # fmt: skip
    value, stores = len(instrs) - 1, []
    strides = tuple(0 if d == along else s for d, s in enumerate(access.strides))
    for k in range(border.shape[-1]):
        at = Access(access.var, strides, border.offset + k)
        stores.append(len(instrs))
        instrs.append(Instr(STORE, store.dtype, store.loops - {along}, (value,), None, at))
    between = [*host.between[:-1], [*host.between[-1], *stores]]
    made = replace(host, instrs=instrs, between=between, nodes=merged(host.nodes, guest.nodes),
                   sources=merged(host.sources, guest.sources))  # fmt: skip
    return made if suited(made).loops == nest.loops else None


def merged(a: tuple, b: tuple) -> tuple:
    return tuple(dict.fromkeys((*a, *b)))


def row_store(kernel: Kernel, whole: Var, rows: Strided) -> tuple[Instr, int, Nest] | None:
    """The store of the rows, the loop along them, if that is the innermost one, and all loops."""
    if kernel.inner or kernel.free is not None or kernel.together or not kernel.points:
        return None
    nest = suited(kernel)
    if nest.form != "map" or nest.tiled or len(nest.loops) < 2:
        return None
    for k, instr in enumerate(kernel.instrs):
        if instr.kind == STORE and instr.access is not None and instr.access.var is whole:
            along = loop_along(nest, k, rows)
            if along is not None and instr.access.offset == rows.offset:
                return instr, along, nest
    return None


def loop_along(nest: Nest, at: int, rows: Strided) -> int | None:
    kernel = nest.kernel
    access = kernel.instrs[at].access
    assert access is not None
    loops = {d: s for d, s in enumerate(access.strides) if kernel.sizes[d] > 1}
    found = [d for d, s in loops.items() if s == 1 and kernel.sizes[d] == rows.shape[-1]]
    others = [s for d, s in loops.items() if d not in found]
    plain = not access.dynamic and all(s > 1 for s in others)
    last = nest.loops[-1] == rows.shape[-1] and nest.strides[at][-1] == 1
    return found[0] if len(found) == 1 and plain and last else None


def stored_constant(kernel: Kernel) -> list[Instr] | None:
    """The instructions of what a kernel stores everywhere, if that is all it does."""
    *made, last = kernel.instrs
    plain = all(i.kind in (CONSTANT, APPLY) and not i.loops and None not in i.operands
                for i in made)  # fmt: skip
    return made if made and plain and last.kind == STORE and last.operands == (len(made) - 1,) \
        else None  # fmt: skip
