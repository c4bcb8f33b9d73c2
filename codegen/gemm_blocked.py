"""Few rows times a large matrix stored by rows: B is read once, in order, and never packed.

A block of `DEPTH` rows of B goes through all tiles of the chunk's columns before the next one, so
what is read of memory is as many streams, which also ask for the block after. Sums are small and
stay in cache: a workspace, where the rows of a tile are neighbours (rows of C may meet in the same
sets of the cache). Chunks cut the columns. `Tall` is the same with A large, and cut by rows: a
layer's gradient of few outputs.

Invariant: an element of C sums its products by blocks of k, in order, whatever the chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.cached import cached_property
from .gemm_base import ELEMENT, SIZE, Matmul
from .gemm_direct import DirectTile, best_tile, tile_name
from .gemm_kinds import Grid
from .gemm_tile import Tile
from .target import Target

DEPTH = 16  # rows of B in a block; half as many if they meet in the same sets of the cache
WAY = 1 << 12  # bytes after which addresses do
SLOW = 1 << 10  # and from where on many do
LEAST = 256  # columns of a chunk: shorter runs would leave memory waiting
FEWEST = 64  # and rows of A, if that is what is large
LINE = 64
# Where caches have room: rows of a block, for so many rows of A and more; else bytes of L1 for the
# next block. Rows of B that meet in the cache are asked for shortly before they are used.
DEEP, HIGH, ROOM, SOON = 128, 6, 1 << 15, 8
VECTORS = {8: 3, 7: 3, 6: 4, 5: 4}  # of a tile by its rows: as many as there are registers for

# Note [Asking evenly]
# A core waits for some 16 lines at a time. Were the first tile of a strip to ask for all that it
# reads, it would wait for memory, and memory would be idle while the other tiles compute. So
# each tile asks for a share of the next strip's lines, one or two for each k, which L2 has when
# they are needed (L1 has no room for both strips). Lines are asked for by their last element:
# rows of B begin anywhere within a line, and the strip before has asked for that one already.
# One thread of an Emerald Rapids, before and with: 8 x 1000 x 1000 92 to 119 GF/s, 12 x 3000 x 1000
# 108 to 146, 23 x 1000 x 1000 147 to 185, 32 x 1000 x 1000 160 to 190. Where rows of B meet
# in a few sets, lines that come early are gone when they are needed: 1024 x 16 x 1024 TN 115 to 88.


@dataclass
class BlockedTile(DirectTile):
    """`void name(a, b, from, to, i64 from stride, to stride, count, i1 add, i64 ahead)`.

    Sums over `count` of k go to `to`, added to what is at `from`, if so. `asks`: for what is ahead.
    """

    asks: bool = True
    near: int = 2
    shares: int = 1  # of a row's lines: a call asks for one of them

    @property
    def parameters(self) -> str:
        return ("ptr %a, ptr %b, ptr %from, ptr %to, i64 %from.s, i64 %to.s, i64 %count, "
                "i1 %add, i64 %ahead")  # fmt: skip

    @property
    def ahead(self) -> str:
        """Asks for what is `ahead` of a row of the tile."""
        if not self.asks:
            return ""
        lines = f"  %next = getelementptr {self.tile.element}, ptr %bp, i64 %ahead\n"
        for at in range(0, self.columns * SIZE[self.tile.element], LINE * self.shares):
            lines += (
                f"  %line.{at} = getelementptr i8, ptr %next, i64 {at}\n"
                f"  call void @llvm.prefetch.p0(ptr %line.{at}, i32 0, i32 {self.near}, i32 1)\n"
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


@dataclass
class TallTile(BlockedTile):
    """Asks for what is ahead in A."""

    @property
    def ahead(self) -> str:
        if not self.asks:
            return ""
        return (f"  %far = add i64 %ka, %ahead\n"
                f"  %line = getelementptr {self.tile.element}, ptr %a, i64 %far\n"
                f"  call void @llvm.prefetch.p0(ptr %line, i32 0, i32 2, i32 1)\n")  # fmt: skip


class Blocked(Grid):
    """Vectors along the columns of B, as Direct's; blocks of k outside of the tiles."""

    template, kind = "gemm_blocked.ll.j2", "blocked"
    stores_sums = True
    tile_type = BlockedTile
    reads_a = False  # is A what is large?

    def __init__(self, p: Matmul, target: Target):
        self.depth = self.depth_of(p, target)
        tile = self.tile_of(p, target)
        super().__init__(p, target, tile, tile.columns)
        if p.epilogue:
            self.pass_rows, self.pass_columns = self.rows_of_chunk, self.columns_of_chunk

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and p.b[1] == 1 and p.c[1] == 1

    def depth_of(self, p: Matmul, target: Target) -> int:
        """Rows of B in a block; half as many if they meet in the same sets of the cache.

        Where there is room: many, so that sums are passed seldom, or for a few rows of A as many as
        L1 may hold of the next block.
        """
        if not target.roomy:
            return DEPTH // 2 if meet(p.b[0], p) else DEPTH
        row = p.n * SIZE[ELEMENT[p.dtype]]
        return DEEP if p.m >= HIGH else max(4, min(DEEP, ROOM // max(row, 1)))

    def tile_of(self, p: Matmul, target: Target) -> Tile:
        """Where there are registers, one that reads A and B about equally often."""
        tile = best_tile(p.m, p.n, p.k, ELEMENT[p.dtype], target)
        if target.roomy and p.m >= HIGH and p.n > 2 * tile.lanes:
            return even_tile(p, target)
        return tile

    @property
    def rows_of_chunk(self) -> tuple[str, str]:
        return "0", str(self.m)

    @property
    def columns_of_chunk(self) -> tuple[str, str]:
        return "%first", "%last"

    @property
    def extent(self) -> int:
        return self.n

    @cached_property
    def ahead(self) -> int:
        """How far the next block is, or the rows that come soon where blocks are large."""
        rows = SOON if self.is_large and not self.evenly else self.depth
        return rows * (self.a[1] if self.reads_a else self.b[0])

    @property
    def is_large(self) -> bool:
        """Are blocks so large that L1 has no room for the next one?"""
        return self.depth == DEEP

    @cached_property
    def evenly(self) -> bool:
        """See Note [Asking evenly]."""
        p = self.product
        return self.is_large and not meet(p.b[0], p, SLOW)

    @property
    def shares(self) -> int:
        """Tiles of a strip that ask for lines of the next one; see Note [Asking evenly]."""
        lines = -(-self.columns * SIZE[self.element] // LINE)
        return min(-(-self.m // self.tile.rows), lines) if self.evenly else 1

    @property
    def near(self) -> int:
        """Which cache is to have what is asked for."""
        return 3 if self.target.roomy and not self.evenly else 2

    @property
    def line(self) -> int:
        """Elements of a line."""
        return LINE // SIZE[self.element]

    @property
    def height(self) -> int:
        """Rows of a chunk, at most."""
        return self.m

    def cut(self) -> tuple[int, int]:
        self.row_step = self.columns
        group, columns = super().cut()
        return group, max(columns, -(-LEAST // self.columns) * self.columns)

    @property
    def slot_bytes(self) -> int:
        columns = -(-self.chunk_rows // self.columns) * self.columns
        return -(-self.m * columns * SIZE[self.element] // LINE) * LINE

    @cached_property
    def tiles(self) -> list[BlockedTile]:
        p = self.product
        return [self.tile_type(tile_name(p.name, cut), cut.tile, cut.columns, p.k, p.a, p.b[0],
                               p.c[0], p.accumulate, None, p.swapped, self.ahead > 0, self.near,
                               self.shares)
                for cut in self.cuts()]  # fmt: skip


class Tall(Blocked):
    """A large A that is stored by columns, which are read once in order, times few columns of B.

    Chunks cut the rows.
    """

    kind = "tall"
    tile_type, reads_a = TallTile, True

    @staticmethod
    def can(p: Matmul) -> bool:
        return Blocked.can(p) and p.a[0] == 1

    def depth_of(self, p: Matmul, target: Target) -> int:
        """Columns of A in a block: many if they meet in the cache, where no next one has room."""
        if self.is_slow(p):
            return 16 if target.roomy else 128
        # sums that end within a vector cost more, but for vectors that know masks
        return 64 if p.n % 8 and not target.roomy else 32

    is_large = False  # type: ignore[assignment]

    @staticmethod
    def is_slow(p: Matmul) -> bool:
        return meet(p.a[1], p, SLOW)

    @cached_property
    def ahead(self) -> int:
        slow = self.is_slow(self.product) and not self.target.roomy
        return 0 if slow else super().ahead

    @property
    def rows_of_chunk(self) -> tuple[str, str]:
        return "%first", "%last"

    @property
    def columns_of_chunk(self) -> tuple[str, str]:
        return "0", str(self.n)

    @property
    def extent(self) -> int:
        return self.m

    @property
    def height(self) -> int:
        return self.chunk_rows

    def cut(self) -> tuple[int, int]:
        group, rows = Grid.cut(self)
        return group, max(rows, -(-FEWEST // self.tile.rows) * self.tile.rows)

    @property
    def slot_bytes(self) -> int:
        columns = -(-self.n // self.columns) * self.columns
        return -(-self.chunk_rows * columns * SIZE[self.element] // LINE) * LINE


def even_tile(p: Matmul, target: Target) -> Tile:
    """About equal rows in each, so that none is too small to keep the multipliers busy."""
    many = target.registers > 16
    rows = -(-p.m // max(1, -(-p.m // (8 if many else 6))))
    lanes, vectors = target.lanes(ELEMENT[p.dtype]), VECTORS.get(rows, 6) if many else 2
    return Tile(ELEMENT[p.dtype], lanes, rows, max(1, min(vectors, -(-p.n // lanes))))


def meet(stride: int, p: Matmul, way: int = WAY) -> bool:
    """Do rows that are so many elements apart share a few sets of the cache?"""
    return stride * SIZE[ELEMENT[p.dtype]] % way == 0
