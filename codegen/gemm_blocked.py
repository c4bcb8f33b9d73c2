"""Few rows times a large matrix stored by rows: B is read once, in order, and never packed.

A block of `DEPTH` rows of B goes through all tiles of the chunk's columns before the next one, so
what is read of memory is as many streams, which also ask for the block after. Sums are small and
stay in cache: a workspace, where the rows of a tile are neighbours (rows of C may meet in the same
sets of the cache). Chunks cut the columns.

Invariant: an element of C sums its products by blocks of k, in order, whatever the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.cached import cached_property
from .gemm_base import ELEMENT, SIZE, Matmul
from .gemm_direct import DirectTile, best_tile, tile_name
from .gemm_kinds import Grid
from .target import Target

DEPTH = 16  # rows of B in a block; half as many if they meet in the same sets of the cache
WAY = 1 << 12  # bytes after which addresses do
LEAST = 256  # columns of a chunk: shorter runs would leave memory waiting
LINE = 64


@dataclass
class BlockedTile(DirectTile):
    """`void name(a, b, from, to, i64 from stride, to stride, count, i1 add, i64 ahead)`.

    Sums over `count` of k go to `to`, added to what is at `from`, if so.
    """

    @property
    def parameters(self) -> str:
        return ("ptr %a, ptr %b, ptr %from, ptr %to, i64 %from.s, i64 %to.s, i64 %count, "
                "i1 %add, i64 %ahead")  # fmt: skip

    @property
    def ahead(self) -> str:
        """Asks for what is `ahead` of a row of the tile."""
        size = SIZE[self.tile.element]
        text = "  %next = getelementptr inbounds {}, ptr %bp, i64 %ahead\n"
        lines = text.format(self.tile.element)
        for at in range(0, self.columns * size, LINE):
            lines += (
                f"  %line.{at} = getelementptr i8, ptr %next, i64 {at}\n"
                f"  call void @llvm.prefetch.p0(ptr %line.{at}, i32 0, i32 2, i32 1)\n"
            )
        return lines

    @property
    def joined(self) -> str:
        """Sums of the block."""
        t = self.tile
        return "".join(f"  %f.{i}.{v} = phi {t.vector} [ %r.{i}.{v}, %k ]\n" for i, v in t.cells())

    def _places(self, side: str, tag: str) -> list[str]:
        """Lines that give %{tag}.i.v: where vectors are on a side."""
        t, lines = self.tile, []
        for i in range(t.rows):
            lines.append(f"%{tag}o.{i} = mul i64 %{side}.s, {i}")
            lines.append(f"%{tag}r.{i} = getelementptr inbounds {t.element}, ptr %{side}, "
                         f"i64 %{tag}o.{i}")  # fmt: skip
        return lines + [f"%{tag}.{i}.{v} = getelementptr inbounds {t.element}, ptr %{tag}r.{i}, "
                        f"i64 {v * t.lanes}" for i, v in t.cells()]  # fmt: skip

    @property
    def more(self) -> str:
        """Sums of the block and of those before."""
        t, lines = self.tile, self._places("from", "q")
        for i, v in t.cells():
            lines.append(self.load(f"%o.{i}.{v}", f"%q.{i}.{v}", v))
            lines.append(f"%n.{i}.{v} = fadd {t.vector} %f.{i}.{v}, %o.{i}.{v}")
        return "".join(f"  {line}\n" for line in lines)

    @property
    def stores(self) -> str:
        t = self.tile
        lines = [f"%s.{i}.{v} = phi {t.vector} [ %f.{i}.{v}, %store ], [ %n.{i}.{v}, %more ]"
                 for i, v in t.cells()]  # fmt: skip
        lines += self._places("to", "p")
        lines += [self.store(f"%s.{i}.{v}", f"%p.{i}.{v}", v) for i, v in t.cells()]
        return "".join(f"  {line}\n" for line in lines)


class Blocked(Grid):
    """Vectors along the columns of B, as Direct's; blocks of k outside of the tiles."""

    template, kind = "gemm_blocked.ll.j2", "blocked"
    stores_sums = True

    def __init__(self, p: Matmul, target: Target):
        self.depth = DEPTH // 2 if meet(p) else DEPTH
        tile = best_tile(p.m, p.n, p.k, ELEMENT[p.dtype], target)
        super().__init__(p, target, tile, tile.columns)
        if p.epilogue:
            self.pass_rows, self.pass_columns = ("0", str(p.m)), ("%first", "%last")

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and p.b[1] == 1 and p.c[1] == 1

    @property
    def extent(self) -> int:
        return self.n

    def cut(self) -> tuple[int, int]:
        self.row_step = self.columns
        group, columns = super().cut()
        least = -(-LEAST // self.columns) * self.columns
        return group, max(columns, least)

    @property
    def slot_bytes(self) -> int:
        columns = -(-self.chunk_rows // self.columns) * self.columns
        return -(-self.m * columns * SIZE[self.element] // LINE) * LINE

    @cached_property
    def tiles(self) -> list[BlockedTile]:
        p = self.product
        return [BlockedTile(tile_name(p.name, cut), cut.tile, cut.columns, p.k, p.a, p.b[0],
                            p.c[0], p.accumulate, None, p.swapped)
                for cut in self.cuts()]  # fmt: skip


def meet(p: Matmul) -> bool:
    """Do B's rows lie so that they share a few sets of the cache?"""
    return p.b[0] * SIZE[ELEMENT[p.dtype]] % WAY == 0
