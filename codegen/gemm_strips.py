"""Rows of A times strips of B's columns, for CPUs whose caches have room; A is read in place.

A strip has the columns of a tile and goes through all of k by blocks, which stay in L1 for all
rows of A; so do the strip's sums, and these rows of A stay in L2 from strip to strip. B is read in
place. Where its rows meet in the cache, for tens of rows of A, or where k is what is contiguous
(the weight of a linear layer), each block becomes a panel on the stack: that takes a few percent.

Chunks are cells of a grid: some rows by some columns.

Invariant: an element of C sums its products by blocks of k, in order, whatever the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ..ir.cached import cached_property
from .gemm_base import ELEMENT, SIZE, Matmul
from .gemm_blocked import LINE, SLOW, Blocked, BlockedTile, even_tile, meet
from .gemm_core import Core, turn_symbol
from .gemm_direct import tile_name
from .gemm_tile import Tile, lanes_below
from .target import Target

DEPTH = 160  # rows of B in a block, at most: of three vectors each they take two thirds of L1
# Rows of A from which on a block of B is copied to a panel, if its rows meet in the cache: in some
# sets, or in one. One thread of an Emerald Rapids, in place and copied: 128 x 784 x 512 208 and 201
# GF/s, 100 cubed 183 and 171, 150 x 3000 x 300 206 and 194; 512 cubed 172 and 200.
MANY, MEETING = 100, 40
HIGH = 64  # rows of a cell, at least: each makes its own panels
CELLS = 16
SHORT = 48  # sums: rows are cut first


@dataclass
class PanelTile(BlockedTile):
    """Has a panel of B, and asks for a block of B that comes `next`, whose rows are a `lead` apart.

    Where B is stored by columns these are its rows, which have a line for as many of k as lanes.
    """

    turned: bool = False

    @property
    def parameters(self) -> str:
        return ("ptr %a, ptr %b, ptr %from, ptr %to, i64 %from.s, i64 %to.s, i64 %count, "
                "i1 %add, ptr %next, i64 %lead")  # fmt: skip

    @property
    def ahead(self) -> str:
        lines = -(-self.columns * SIZE[self.tile.element] // LINE)
        if self.turned:
            lanes = self.tile.lanes
            where = [
                f"%soon.k = and i64 %i, {lanes - 1}",
                f"%soon.l = lshr i64 %i, {lanes.bit_length() - 1}",
                f"%soon.r = mul i64 %soon.k, {lines}",
                "%soon.o = mul i64 %soon.r, %lead",
                f"%soon.a = mul i64 %soon.l, {LINE}",
                "%soon.0 = add i64 %soon.o, %soon.a",
                f"%soon.s = mul i64 %lead, {self.shares}",
            ]
        else:
            where = ["%soon.0 = mul i64 %i, %lead"]
        for n in range(-(-lines // self.shares)):
            step = "%soon.s" if self.turned else str(LINE * self.shares)
            where += [
                f"%soon.p{n} = getelementptr i8, ptr %next, i64 %soon.{n}",
                f"call void @llvm.prefetch.p0(ptr %soon.p{n}, i32 0, i32 2, i32 1)",
                f"%soon.{n + 1} = add i64 %soon.{n}, {step}",
            ]
        return "".join(f"  {line}\n" for line in where)


class Strips(Blocked):
    """Vectors along the columns of B, which are contiguous or turned."""

    template, kind = "gemm_strips.ll.j2", "strips"

    def __init__(self, p: Matmul, target: Target):
        self.size = SIZE[ELEMENT[p.dtype]]
        self.turned, self.turns = p.b[1] != 1, turn_symbol(ELEMENT[p.dtype])
        many = MEETING if meet(p.b[0], p) else MANY
        self.in_panel = self.turned or (p.m >= many and meet(p.b[0], p, SLOW))
        super().__init__(p, target)

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and p.c[1] == 1 and 1 in p.b

    def depth_of(self, p: Matmul, target: Target) -> int:
        """Blocks are about equal: a last one of a few rows would be all overhead."""
        return Core.even(p.k, DEPTH, target.lanes(ELEMENT[p.dtype]))

    def tile_of(self, p: Matmul, target: Target) -> Tile:
        return even_tile(p, target)

    @property
    def is_large(self) -> bool:
        return not self.in_panel

    @cached_property
    def evenly(self) -> bool:
        return self.in_panel or super().evenly

    # --- the grid ---

    def cut(self) -> tuple[int, int]:
        """A chunk is a cell; columns are cut first, for cells above each other share no panels.

        Where sums are short rows are first: cells beside each other write to the same lines of each
        row of C (128 x 512 x 10 on two threads of an Emerald Rapids: 105 GF/s, 190 by rows).
        """
        p, tile = self.product, self.tile
        strips = -(-p.n // self.columns)
        wanted = max(1, min(CELLS, p.flops // self.enough)) if p.items == 1 else 1
        high = min(wanted, p.m // HIGH) if p.k <= SHORT else 1
        across = min(strips, wanted // max(high, 1))
        kept = max(HIGH, self.target.l2 * 3 // 4 // (p.k * self.size))  # rows that L2 has room for
        down = max(-(-p.m // kept), min(wanted // across, p.m // HIGH), 1)
        least = 4 * HIGH if self.in_panel else 4 * tile.rows
        if 1 < across * down < CELLS and across * down % 2 and p.m >= least and p.items == 1:
            down *= 2  # else one of two threads has a cell less to do
        self.cell_rows = -(-p.m // (down * tile.rows)) * tile.rows
        self.cell_columns = -(-strips // across) * self.columns
        self.across = -(-p.n // self.cell_columns)
        if p.items > 1:
            return super(Blocked, self).cut()
        return 1, 1

    @property
    def extent(self) -> int:
        return -(-self.m // self.cell_rows) * self.across

    rows_of_chunk = ("%row", "%row.end")  # type: ignore[assignment]
    columns_of_chunk = ("%column", "%column.end")  # type: ignore[assignment]

    @property
    def slot_bytes(self) -> int:
        return self.cell_rows * self.columns * self.size

    # --- B ---

    @property
    def places(self) -> str:
        return "f" * bool(self.whole_columns) + "l" * bool(self.last_columns)

    @property
    def lead(self) -> int:
        """Bytes between the rows of B as it is stored."""
        return max(self.b) * self.size

    @property
    def share(self) -> int:
        """Bytes between what neighbouring tiles ask for."""
        return self.lead if self.turned else LINE

    @property
    def beside(self) -> int:
        """Where the next strip is."""
        return self.columns * self.b[1]

    @property
    def panel_elements(self) -> int:
        return self.depth * self.columns

    def bands(self, place: str) -> list[tuple[int, int]]:
        """(first column, columns) of the squares that are turned for a strip."""
        columns, lanes = self.cut_at("f" + place).columns, self.tile.lanes
        return [(at, min(lanes, columns - at)) for at in range(0, columns, lanes)]

    def copied(self, place: str) -> str:
        """Lines that copy a row of a strip from %t.from to %t.to."""
        columns, lines = self.cut_at("f" + place).columns, []
        tile = next(t for t in self.tiles if t.columns == columns)
        for v in range(tile.tile.vectors):
            for side in ("from", "to"):
                lines.append(f"%t.{side}.{v} = getelementptr inbounds {self.element}, "
                             f"ptr %t.{side}, i64 {v * tile.tile.lanes}")  # fmt: skip
            lines.append(tile.load(f"%t.v.{v}", f"%t.from.{v}", v))
            lines.append(f"store {tile.tile.vector} %t.v.{v}, ptr %t.to.{v}, align 64")
        return "".join(f"  {line}\n" for line in lines)

    result_turned = False

    def imports(self) -> tuple[str, ...]:
        return (*super().imports(), *[self.turns] * (self.turned or self.result_turned))

    @cached_property
    def tiles(self) -> list[BlockedTile]:
        p, row = self.product, self.columns if self.in_panel else self.b[0]
        kind = partial(PanelTile, turned=self.turned) if self.in_panel else BlockedTile
        return [kind(tile_name(p.name, cut), cut.tile, cut.columns, p.k, p.a, row, p.c[0],
                     p.accumulate, None, p.swapped, True, self.near, self.shares)
                for cut in self.cuts()]  # fmt: skip


class Flipped(Strips):
    """Few rows of A, for a C whose columns are what is contiguous: sums are turned on their way.

    So is a product of few columns with an A that is stored by columns, the other way round: the
    gradient of a layer with few outputs. Its vectors lie along the many.
    """

    kind = "flipped"
    result_turned = True

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and p.b[1] == 1 and p.c[0] == 1 and p.c[1] != 1

    @property
    def below(self) -> str:
        """Lines that give %below: the lanes that are before %some."""
        return "".join(f"  {line}\n" for line in lanes_below(self.tile.lanes, "%some"))
