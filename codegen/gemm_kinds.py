"""The kinds of kernels for a product: packed, direct, dot and row; what each template needs."""

from __future__ import annotations

from ..ir.cached import cached_property
from .epilogue import Site
from .gemm_base import DTYPE, ELEMENT, SIZE, Kernel, Matmul, added_up, checked
from .gemm_core import ARGS_TYPE, CALLER, FIELDS, Core, core, field_index
from .gemm_direct import Cut, DirectTile, best_tile, tile_name
from .gemm_dot import DotTile
from .gemm_dot import best_tile as best_dot_tile
from .gemm_fold import fields, gathered
from .gemm_tile import Tile
from .gemm_walk import walk
from .llvm import SHORT
from .render import render
from .scalar import LLVMReader, Scalar
from .target import Target

LINE = 64
# Rows of A, and rows of B at once: factors stay in registers, the rows of B in a set of the cache
STEPS = {1: 8, 2: 6, 3: 4, 4: 4}


class Grid(Kernel):
    """Tiles of constant shape over A and B in place, smaller ones at the last rows and columns."""

    def __init__(self, p: Matmul, target: Target, tile: Tile, columns: int):
        self.tile, self.columns = tile, columns
        self.row_step = tile.rows
        super().__init__(p, target)
        self.last_rows, self.last_columns = p.m % tile.rows, p.n % columns
        self.whole_rows, self.whole_columns = p.m - self.last_rows, p.n - self.last_columns

    def cut_at(self, place: str) -> Cut:
        """The tile for "ff", "fl", "lf", "ll": full or last rows and columns."""
        rows = self.tile.rows if place[0] == "f" else self.last_rows
        columns = self.columns if place[1] == "f" else self.last_columns
        per = self.columns // self.tile.vectors  # columns of one accumulator
        tile = Tile(self.tile.element, self.tile.lanes, rows, -(-columns // per))
        return Cut(tile, columns)

    def tile_at(self, place: str) -> str:
        return tile_name(self.name, self.cut_at(place))

    def cuts(self) -> list[Cut]:
        """The tiles the shape needs: one to four."""
        rows = [x for x, some in (("f", self.whole_rows), ("l", self.last_rows)) if some]
        columns = [x for x, some in (("f", self.whole_columns), ("l", self.last_columns)) if some]
        return [self.cut_at(r + c) for r in rows for c in columns]


class Direct(Grid):
    """Vectors along the columns of B, which must be contiguous; A has any strides."""

    template, kind = "gemm_direct.ll.j2", "direct"

    def __init__(self, p: Matmul, target: Target):
        tile = best_tile(p.m, p.n, p.k, ELEMENT[p.dtype], target)
        super().__init__(p, target, tile, tile.columns)

    @staticmethod
    def can(p: Matmul) -> bool:
        return (p.b[1] == 1 or p.n == 1 or p.k == 0) and (p.c[1] == 1 or p.n == 1)

    @cached_property
    def finished(self) -> dict[str, str]:  # type: ignore[override]
        """By tile: its lines once the sums are done."""
        return {tile.name: self._finished(tile) for tile in self.tiles}

    def _finished(self, tile: DirectTile) -> str:
        joined = ""
        if self.k:
            joined = "".join(f"  %f.{i}.{v} = phi {tile.tile.vector} [ %r.{i}.{v}, %k ]\n"
                             for i, v in tile.tile.cells())  # fmt: skip
        return joined + tile.finish(self.calls)

    @cached_property
    def tiles(self) -> list[DirectTile]:
        p = self.product
        return [DirectTile(tile_name(p.name, cut), cut.tile, cut.columns, p.k, p.a, p.b[0],
                           p.c[0], p.accumulate, p.epilogue, p.swapped)
                for cut in self.cuts()]  # fmt: skip


class Dot(Grid):
    """Vectors along k, in which A's rows and B's columns must be contiguous; C has any strides."""

    template, kind = "gemm_dot.ll.j2", "dot"
    stores_sums = True

    def __init__(self, p: Matmul, target: Target):
        if p.m < p.n:  # chunks cut rows, so the longer side should be rows
            p = p.transposed()
        tile = best_dot_tile(p.m, p.n, p.k, ELEMENT[p.dtype], target)
        super().__init__(p, target, tile, tile.vectors)
        if p.epilogue:
            self.pass_columns = ("0", str(p.n))
            self.pass_turned = p.c[1] != 1 and p.c[0] == 1

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and (p.k == 1 or (p.a[1] == 1 and p.b[0] == 1))

    @cached_property
    def tiles(self) -> list[DotTile]:
        p = self.product
        return [DotTile(tile_name(p.name, cut), cut.tile, p.k, p.a[0], p.b[1], p.c, p.accumulate,
                        self.extras) for cut in self.cuts()]  # fmt: skip


class Row(Kernel):
    """A few rows of A times a B with contiguous columns, which is read once, several rows of it at
    a time; chunks cut k and have sums of their own."""

    template, kind = "gemm_row.ll.j2", "row"
    block = 4096  # columns whose sums stay in L1

    def __init__(self, p: Matmul, target: Target):
        self.size, self.short = SIZE[ELEMENT[p.dtype]], SHORT[ELEMENT[p.dtype]]
        self.step = self.row_step = STEPS[p.m]
        self.lanes = target.lanes(ELEMENT[p.dtype])
        self.pass_rows, self.pass_columns = ("0", str(p.m)), ("0", str(p.n))
        super().__init__(p, target)
        self.after = f"  call void @{self.name}.total(ptr %c, {self.extra_arguments}ptr %work)\n"

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.m in STEPS and p.k > 0 and p.items == 1 and p.b[1] == 1 and 1 in (*p.c, p.n)

    @property
    def extent(self) -> int:
        return self.k

    @property
    def pitch(self) -> int:
        """Elements between sums of neighbouring rows, which do not meet in the cache."""
        line = LINE // self.size
        return (-(-self.n // line) + 1) * line

    @property
    def slot_bytes(self) -> int:
        return self.m * self.pitch * self.size

    def finished(self, s: LLVMReader) -> Scalar:
        return added_up(self, s, self.pitch, self.row_chunks, self.slot_bytes // self.size)


class Packed(Kernel):
    """The shape-generic core, called once per item."""

    template, kind = "gemm_packed.ll.j2", "packed"
    args_type = ARGS_TYPE

    @staticmethod
    def can(p: Matmul) -> bool:
        return p.k > 0 and (p.c[1] == 1 or p.n == 1)

    def __init__(self, p: Matmul, target: Target):
        self.core = core(ELEMENT[p.dtype], target)
        self.tile, p = self.core.tile, gathered(p)
        self.symbol = self.core.fold_name if p.fold else self.core.name
        super().__init__(p, target)

    @property
    def adds(self) -> bool:
        """May tiles be added to what C holds? Long sums are, block by block of k."""
        return True

    @property
    def masks(self) -> str:
        """Lines that give a mask per vector: its lanes that are below %cols."""
        lanes = self.tile.lanes
        iota = ", ".join(f"i64 {i}" for i in range(lanes))
        return "".join(
            f"  %left.{v} = sub i64 %cols, {v * lanes}\n"
            f"  %li.{v} = insertelement <{lanes} x i64> poison, i64 %left.{v}, i32 0\n"
            f"  %lv.{v} = shufflevector <{lanes} x i64> %li.{v}, <{lanes} x i64> poison, "
            f"<{lanes} x i32> zeroinitializer\n"
            f"  %mask.{v} = icmp slt <{lanes} x i64> <{iota}>, %lv.{v}\n"
            for v in range(self.tile.vectors)
        )

    def cut(self) -> tuple[int, int]:
        """Items share chunks when they are many and small; one item is shared by the core."""
        if self.items > 1 and self.product.flops < 2**26:
            return -(-self.items // min(self.items, 16)), self.m
        return 1, self.m

    @property
    def parallel(self) -> bool:
        return self.chunks > 1 and self.product.flops < 2**26

    @property
    def slot_bytes(self) -> int:
        return -(-self.core.work_elements(self.m, self.n, self.k) * SIZE[self.element] // 64) * 64

    def imports(self) -> tuple[str, ...]:
        return (*super().imports(), self.symbol)

    def field(self, name: str) -> int:
        return field_index(name)

    @property
    def arguments(self) -> list[tuple[str, str, str]]:
        """(field, type, value) of what the caller of the core fills in."""
        p, shared = self.product, not self.parallel and self.product.flops >= 2 * self.enough
        values = {
            "m": p.m, "n": p.n, "k": p.k, "a": "%a", "rsa": p.a[0], "b": "%b",
            "rsb": p.b[0], "csb": p.b[1], "c": "%c", "ldc": p.c[0], "add": int(p.accumulate),
            "work": "%work", "finish": f"@{p.name}.finish" if p.epilogue else "null",
            "extra": "%extra", "fold": "null", "parallel": int(shared), **self.chunking(),
            **self._places(),
        }  # fmt: skip
        kinds = {f.name: f.kind for f in FIELDS}
        return [(n, kinds[n], str(values[n])) for n in (c.lstrip("*") for c in CALLER)]

    def chunking(self) -> dict[str, int]:
        """How the product is shared out: rows and columns of a chunk, slices of columns or not."""
        rows, columns = chunk_shape(self.m, self.n, self.k, self.core)
        return {"mchunk": rows, "nchunk": columns,
                "wide": int(self.core.wide(self.m, self.n, self.k))}  # fmt: skip

    def _places(self) -> dict[str, int]:
        """Fields that say where k and the columns are, in A, B and C."""
        p, fold = self.product, self.product.fold
        if fold is None:
            item = {"per": max(p.n, 1), "citem": 0, "step": 0, "along": 0}
            return item | fields("a", ((p.k, p.a[1]),)) | fields("k", ()) | fields("c", ())
        item = {"per": fold.per, "citem": fold.c_item, "step": fold.step, "along": fold.along}
        in_b = tuple((count, b) for count, _, b in fold.k)
        return item | fields("a", fold.a) | fields("k", in_b) | fields("c", fold.columns)

    @cached_property
    def row_text(self) -> dict[str, str]:
        """Lines that finish one row of a tile, whole or cut off at the last column."""
        return {where: "".join(self._vector(where, v) for v in range(self.tile.vectors))
                for where in ("whole", "part")}  # fmt: skip

    def alone(self, name: str) -> str:
        """Text of an entry that takes the core's argument block; see the template."""
        return render("gemm_alone.ll.j2", kernel=self, name=name)

    def _vector(self, where: str, v: int) -> str:
        assert self.epilogue is not None
        t, size, dtype = self.tile, SIZE[self.element], DTYPE[self.element]
        s = LLVMReader(dtype, lanes=t.lanes, prefix=f"{where}.{v}.")
        m = s.m
        for name, base in (("from", "f"), ("to", "c")):
            m.effect(f"%{name}.{where}.{v} = getelementptr inbounds {t.element}, "
                     f"ptr %{base}.{where}, i64 {v * t.lanes}")  # fmt: skip
        m.effect(f"%column.{where}.{v} = add i64 %col, {v * t.lanes}")
        valid: int | str = t.lanes if where == "whole" else f"%mask.{v}"
        fresh = m.emit(f"load {t.vector}, ptr %from.{where}.{v}, align {size}", t.element)
        site = Site(s, Scalar(fresh, dtype), f"%row.{where}", f"%column.{where}.{v}", "%batch",
                    valid, self.product.swapped)  # fmt: skip
        if self.adds:
            old = site.load_at(f"%to.{where}.{v}", dtype)
            total = m.emit(f"fadd {t.vector} {fresh.text}, {old.value.text}", t.element)
            cond = f"select i1 %adding, {t.vector} {total.text}, {t.vector} {fresh.text}"
            site.value = Scalar(m.emit(cond, t.element), dtype)
        site.store_at(checked(self.epilogue.emit(site), self), f"%to.{where}.{v}")
        self.calls.update(dict.fromkeys(s.calls))
        return s.text()


class Walked(Packed):
    """Windows read in place: gemm_walk.py."""

    kind = "walked"

    def __init__(self, p: Matmul, target: Target):
        super().__init__(p, target)
        self.walk = walk(ELEMENT[p.dtype], target)
        self.symbol = self.walk.name

    @staticmethod
    def can(p: Matmul) -> bool:
        return Packed.can(p) and gathered(p).fold is not None

    @property
    def adds(self) -> bool:
        return self.product.accumulate

    @property
    def slot_bytes(self) -> int:
        elements = self.walk.work_elements(self.m, self.k, self.core)
        return -(-elements * SIZE[self.element] // 64) * 64

    def chunking(self) -> dict[str, int]:
        """How the product is shared out: strips of rows, columns of a cell."""
        more, strips = self.walk.strips(self.m)
        fold = self.product.fold
        assert fold is not None
        kept = self.core.l2 // 2 * self.n // (fold.span * self.core.size)
        columns = self.walk.cell_columns(self.m, self.n, kept)
        return {"mchunk": more, "wide": strips, "nchunk": columns}


def chunk_shape(m: int, n: int, k: int, core: Core) -> tuple[int, int]:
    """Rows and columns of C per chunk of a packed product: near 16 chunks of enough work.

    A chunk packs its rows of A, so it has many columns; it reads all of its columns of B once, so
    it has several tiles of rows, up to a block of A.
    """
    if core.wide(m, n, k):
        return core.even(m, core.block_rows, core.tile.rows), core.pack_columns
    width, tile = core.even(n, core.block_columns, core.tile.columns), core.tile
    depth = core.even(k, core.block_k, tile.lanes)
    wanted = max(1, min(16, 2 * m * width * depth // core.chunk_flops))
    rows = -(-m // tile.rows)
    down = max(1, -(-m // core.block_rows))
    across = max(1, min(-(-wanted // down), width // (2 * core.pack_columns)))
    # tiles in which the next panel of B is asked for, if it does not stay in L1
    few = max(1, min(8 if depth * tile.columns * core.size > 2**15 else 2, rows // 8))
    down = max(down, min(wanted // across, rows // few))
    columns = -(-width // tile.columns)
    high, broad = shared_evenly(rows, -(-rows // down), across), -(-columns // across)
    return high * tile.rows, broad * tile.columns


def shared_evenly(rows: int, most: int, across: int) -> int:
    """Tiles of rows per chunk, of so many at most and a quarter of that at least, with which the
    busier of two threads has the least to do."""

    def busier(part: int) -> int:
        return -(-(-(-rows // part) * across) // 2) * part

    return min(range(most, max(1, most // 4) - 1, -1), key=busier)
