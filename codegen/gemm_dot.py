"""Tiles of dot products: rows of A and columns of B that are both contiguous along k.

For few rows or columns, where packing would cost as much as the product (a linear layer on a
small batch, a classifier's head, a matrix times a vector). Accumulators hold partial sums along k
that are added up once, at the end, in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.cached import cached_property
from .gemm_tile import Tile, multiply_add
from .target import Target

SIZE = {"float": 4, "double": 8}


def cost(m: int, n: int, k: int, rows: int, columns: int, lanes: int) -> float:
    """Estimated cycles: two multiply-adds or loads a cycle, and summing up each accumulator."""
    total = 0.0
    for r, count_r in ((rows, m // rows), (m % rows, 1)):
        for q, count_q in ((columns, n // columns), (n % columns, 1)):
            if r and q and count_r * count_q:
                inner = max(r * q / 2, (r + q) / 2, 5 / unroll(r * q))
                total += count_r * count_q * (-(-k // lanes) * inner + 4 * r * q + 20)
    return total


def unroll(accumulators: int) -> int:
    """Steps of k per turn, each with accumulators of its own, to hide the latency."""
    return max(1, 8 // accumulators)


def best_tile(m: int, n: int, k: int, element: str, target: Target) -> Tile:
    """The cheapest tile; its `vectors` count columns here, one accumulator per cell."""
    lanes = target.lanes(element)
    shapes = [(r, q) for r in range(1, 9) for q in range(1, 5)
              if r * q * unroll(r * q) + q + 1 <= target.registers]  # fmt: skip
    rows, columns = min(shapes, key=lambda s: (cost(m, n, k, *s, lanes), s))
    return Tile(element, lanes, min(rows, m), min(columns, n))


@dataclass
class DotTile:
    """`void name(ptr a, ptr b, ptr c, extras..., i64 row, i64 col, i64 batch)`."""

    name: str
    tile: Tile
    k: int
    lda: int
    ldb: int
    c: tuple[int, int]
    accumulate: bool
    extras: tuple[str, ...]

    @property
    def unroll(self) -> int:
        return unroll(self.tile.rows * self.tile.vectors)

    @property
    def step(self) -> int:
        """Elements of k per turn of the loop."""
        return self.unroll * self.tile.lanes

    @property
    def main(self) -> int:
        return self.k // self.step * self.step

    @property
    def parameters(self) -> str:
        extra = "".join(f"ptr %{b}, " for b in self.extras)
        return f"ptr %a, ptr %b, ptr %c, {extra}i64 %row, i64 %col, i64 %batch"

    @property
    def before(self) -> str:
        """Pointers to the rows of A and the columns of B."""
        t = self.tile
        sides = (("a", t.rows, self.lda), ("b", t.vectors, self.ldb))
        return "".join(
            f"  %{x}r.{i} = getelementptr inbounds {t.element}, ptr %{x}, i64 {i * stride}\n"
            for x, count, stride in sides
            for i in range(count)
        )

    def _cells(self) -> list[tuple[int, int, int]]:
        return [(u, i, q) for u in range(self.unroll) for i, q in self.tile.cells()]

    def _loads(self, tag: str, at: str, valid: int) -> list[str]:
        """Vectors of all rows and columns at offset `at`; lanes from `valid` on read as 0."""
        t, size, lines = self.tile, SIZE[self.tile.element], []
        mask = ", ".join(f"i1 {str(i < valid).lower()}" for i in range(t.lanes))
        for x, count in (("a", t.rows), ("b", t.vectors)):
            for i in range(count):
                where = f"%{x}p.{tag}.{i}"
                lines.append(f"{where} = getelementptr inbounds {t.element}, ptr %{x}r.{i}, "
                             f"i64 {at}")  # fmt: skip
                load = f"load {t.vector}, ptr {where}, align {size}"
                if valid < t.lanes:
                    load = (
                        f"call {t.vector} @llvm.masked.load.{t.suffix}.p0(ptr align {size} "
                        f"{where}, <{t.lanes} x i1> <{mask}>, {t.vector} zeroinitializer)"
                    )
                lines.append(f"%{x}v.{tag}.{i} = {load}")
        return lines

    @cached_property
    def loop(self) -> str:
        t, lines = self.tile, []
        for u, i, q in self._cells():
            lines.append(f"%m.{u}.{i}.{q} = phi {t.vector} [ zeroinitializer, %entry ], "
                         f"[ %r.{u}.{i}.{q}, %k ]")  # fmt: skip
        for u in range(self.unroll):
            lines.append(f"%at.{u} = add i64 %i, {u * t.lanes}")
            lines += self._loads(str(u), f"%at.{u}", t.lanes)
            lines += [multiply_add(t, f"%r.{u}.{i}.{q}", f"%av.{u}.{i}", f"%bv.{u}.{q}",
                                   f"%m.{u}.{i}.{q}") for i, q in t.cells()]  # fmt: skip
        return "".join(f"  {line}\n" for line in lines)

    @cached_property
    def finish(self) -> str:
        """The rest of k, the sums, the stores."""
        t, lines = self.tile, []
        sums = dict.fromkeys(self._cells(), "zeroinitializer")
        if self.main:
            for u, i, q in self._cells():
                lines.append(f"%f.{u}.{i}.{q} = phi {t.vector} [ %r.{u}.{i}.{q}, %k ]")
                sums[u, i, q] = f"%f.{u}.{i}.{q}"
        for at in range(self.main, self.k, t.lanes):
            u = (at - self.main) // t.lanes
            lines += self._loads(f"t{u}", str(at), min(t.lanes, self.k - at))
            for i, q in t.cells():
                result = f"%g.{u}.{i}.{q}"
                lines.append(multiply_add(t, result, f"%av.t{u}.{i}", f"%bv.t{u}.{q}",
                                          sums[u, i, q]))  # fmt: skip
                sums[u, i, q] = result
        for i, q in t.cells():
            lines += self._store(i, q, [sums[u, i, q] for u in range(self.unroll)])
        return "".join(f"  {line}\n" for line in lines)

    def _store(self, i: int, q: int, parts: list[str]) -> list[str]:
        t, size, lines = self.tile, SIZE[self.tile.element], []
        total = parts[0]
        for u, part in enumerate(parts[1:], 1):
            lines.append(f"%h.{u}.{i}.{q} = fadd {t.vector} {total}, {part}")
            total = f"%h.{u}.{i}.{q}"
        at = i * self.c[0] + q * self.c[1]
        # reassoc lets the sum be a tree; its shape is fixed by the vector's width
        lines += [
            f"%sum.{i}.{q} = call reassoc {t.element} @llvm.vector.reduce.fadd.{t.suffix}("
            f"{t.element} -0.0, {t.vector} {total})",
            f"%cp.{i}.{q} = getelementptr inbounds {t.element}, ptr %c, i64 {at}",
        ]
        value = f"%sum.{i}.{q}"
        if self.accumulate:
            lines.append(f"%old.{i}.{q} = load {t.element}, ptr %cp.{i}.{q}, align {size}")
            lines.append(f"%new.{i}.{q} = fadd {t.element} {value}, %old.{i}.{q}")
            value = f"%new.{i}.{q}"
        return [*lines, f"store {t.element} {value}, ptr %cp.{i}.{q}, align {size}"]
