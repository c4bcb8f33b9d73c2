"""Small and skinny products: tiles that read A and B in place, specialised to the shape.

Sizes and strides are constants of the text, so the last rows and columns have tiles of exactly
their size and constant masks. B's columns must be contiguous; A may have any strides.
"""

from __future__ import annotations

from dataclasses import dataclass

from .epilogue import Epilogue, Site
from .gemm_tile import Tile, broadcast, multiply_add, phis
from .llvm import SHORT
from .scalar import LLVMReader, Scalar
from .target import Target

SIZE = {"float": 4, "double": 8}
DTYPE = {"float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Cut:
    """A tile's shape and place: it serves `rows_from` .. in steps; `columns` of it count."""

    tile: Tile
    columns: int


def cost(m: int, n: int, k: int, rows: int, vectors: int, lanes: int) -> float:
    """Estimated cycles of all tiles: multiply-adds or loads, two a cycle, or their latency.

    Eight accumulators would hide a latency of 4 exactly, and in practice do not (128^3: 56 GF/s
    with 4 x 2 vectors, 88 with 6 x 2), hence the 5.
    """
    total = 0.0
    for r, count_r in ((rows, m // rows), (m % rows, 1)):
        for v, count_v in ((vectors, n // (vectors * lanes)),
                           (-(-(n % (vectors * lanes)) // lanes), 1)):  # fmt: skip
            if r and v and count_r * count_v:
                total += count_r * count_v * (k * max(r * v / 2, (r + v) / 2, 5) + 20)
    return total


def best_tile(m: int, n: int, k: int, element: str, target: Target) -> Tile:
    """The cheapest tile whose accumulators, B vectors and one of A fit the registers."""
    lanes, most = target.lanes(element), 16 if target.registers > 16 else 8
    shapes = [(r, v) for r in range(1, most + 1) for v in range(1, 7)
              if r * v + v + 1 <= target.registers]  # fmt: skip
    rows, vectors = min(shapes, key=lambda s: (cost(m, n, k, *s, lanes), -s[1], s[0]))
    return Tile(element, lanes, min(rows, max(m, 1)), vectors)


@dataclass
class DirectTile:
    """One tile function: `void name(ptr a, b, c, extras..., i64 row, i64 col, i64 batch)`."""

    name: str
    tile: Tile
    columns: int
    k: int
    a: tuple[int, int]
    ldb: int
    ldc: int
    accumulate: bool
    epilogue: Epilogue | None
    swapped: bool

    def _valid(self, v: int) -> int:
        """Lanes of vector v that are columns of C."""
        return min(self.tile.lanes, self.columns - v * self.tile.lanes)

    def _mask(self, v: int) -> str:
        listed = ", ".join(f"i1 {str(i < self._valid(v)).lower()}" for i in range(self.tile.lanes))
        return f"<{self.tile.lanes} x i1> <{listed}>"

    def load(self, result: str, pointer: str, v: int) -> str:
        t, size = self.tile, SIZE[self.tile.element]
        if self._valid(v) == t.lanes:
            return f"{result} = load {t.vector}, ptr {pointer}, align {size}"
        return (
            f"{result} = call {t.vector} @llvm.masked.load.{t.suffix}.p0(ptr align {size} "
            f"{pointer}, {self._mask(v)}, {t.vector} zeroinitializer)"
        )

    def store(self, value: str, pointer: str, v: int) -> str:
        t, size = self.tile, SIZE[self.tile.element]
        if self._valid(v) == t.lanes:
            return f"store {t.vector} {value}, ptr {pointer}, align {size}"
        return (
            f"call void @llvm.masked.store.{t.suffix}.p0({t.vector} {value}, ptr align {size} "
            f"{pointer}, {self._mask(v)})"
        )

    @property
    def parameters(self) -> str:
        extra = "".join(f"ptr %{b}, " for b in (self.epilogue.buffers if self.epilogue else ()))
        return f"ptr %a, ptr %b, ptr noalias %c, {extra}i64 %row, i64 %col, i64 %batch"

    @property
    def before(self) -> str:
        """Pointers to the rows of A."""
        return "".join(
            f"  %ar.{i} = getelementptr inbounds {self.tile.element}, ptr %a, "
            f"i64 {i * self.a[0]}\n" for i in range(self.tile.rows)
        )  # fmt: skip

    @property
    def loop(self) -> str:
        """One k: phis, loads, multiply-adds; %ka is the offset into A's rows, %bp B's row."""
        t = self.tile
        text = phis(t, "m", ("zeroinitializer", "entry"), ("%r", "k"))
        lines = []
        for v in range(t.vectors):
            at = v * t.lanes
            lines.append(f"%bq.{v} = getelementptr inbounds {t.element}, ptr %bp, i64 {at}")
            lines.append(self.load(f"%b.{v}", f"%bq.{v}", v))
        for i in range(t.rows):
            lines.append(f"%aq.{i} = getelementptr inbounds {t.element}, ptr %ar.{i}, i64 %ka")
            lines += broadcast(t, f"%av.{i}", f"%aq.{i}", f".{i}")
            lines += [multiply_add(t, f"%r.{i}.{v}", f"%av.{i}", f"%b.{v}", f"%m.{i}.{v}")
                      for v in range(t.vectors)]  # fmt: skip
        return text + "".join(f"  {line}\n" for line in lines)

    def finish(self, calls: dict) -> str:
        """Old values, epilogue, stores; prelude calls are added to `calls`."""
        t = self.tile
        lines = [f"%row.{i} = add i64 %row, {i}" for i in range(t.rows)]
        lines += [f"%col.{v} = add i64 %col, {v * t.lanes}" for v in range(t.vectors)]
        if self.k > 0:
            values = {cell: "%f.{}.{}".format(*cell) for cell in t.cells()}
        else:
            values = dict.fromkeys(t.cells(), "zeroinitializer")
        for (i, v), value in values.items():
            at = i * self.ldc + v * t.lanes
            lines.append(f"%p.{i}.{v} = getelementptr inbounds {t.element}, ptr %c, i64 {at}")
            if self.accumulate:
                lines.append(self.load(f"%o.{i}.{v}", f"%p.{i}.{v}", v))
                lines.append(f"%n.{i}.{v} = fadd {t.vector} {value}, %o.{i}.{v}")
                value = f"%n.{i}.{v}"
            if self.epilogue:
                more, value = self._epilogue(i, v, value, calls)
                lines += more
            lines.append(self.store(value, f"%p.{i}.{v}", v))
        return "".join(f"  {line}\n" for line in lines)

    def _epilogue(self, i: int, v: int, value: str, calls: dict) -> tuple[list[str], str]:
        assert self.epilogue is not None
        dtype = DTYPE[self.tile.element]
        s = LLVMReader(dtype, lanes=self.tile.lanes, prefix=f"e{i}.{v}.")
        site = Site(s, Scalar(s.m.argument(value, self.tile.element), dtype), f"%row.{i}",
                    f"%col.{v}", "%batch", self._valid(v), self.swapped)  # fmt: skip
        result = self.epilogue.emit(site)
        if result.dtype != dtype:
            raise TypeError(f"epilogue of {self.name} gives {result.dtype}, C holds {dtype}")
        calls.update(dict.fromkeys(s.calls))
        return [line.text for line in s.lines], result.value.text


def tile_name(matmul_name: str, cut: Cut) -> str:
    return f"{matmul_name}.tile{cut.tile.rows}x{cut.columns}{SHORT[cut.tile.element]}"
