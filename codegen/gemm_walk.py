"""Products with windows of an image, read in place.

An element of such a B is at rows[k] + columns[j] (gemm_fold.py), so it can be broadcast from where
it is: no window is ever copied. Vectors lie along the rows of C, so A is turned into panels first;
sums are turned back on their way to C. A convolution's weight, and the gradient that its weight's
gradient is made of, are small beside the windows.

A tile has `rows` columns of C by up to four vectors of its rows. Its loop over k reads an offset
from a table, and each column's element there. Sums of a cell, some columns by a strip of rows, stay
in cache from block to block of k.

A is turned by squares. Where its runs along k are shorter than a vector, as of a weight whose
channels change places, squares reach beyond them, and what is of the run is copied.

Invariant: an element of C sums its products by blocks of k, in order, whatever the chunks.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from functools import cache

from .gemm_core import Core, core
from .gemm_tile import Tile, broadcast, lanes_below, multiply_add, phis
from .llvm import SHORT
from .render import render
from .target import DEFAULT, Target

FEWEST = 96  # columns for which panels are read again
MANY = 32  # cells that are even enough for any threads
START = 16  # columns whose sums take as long as what a cell begins with


@dataclass(frozen=True)
class Walk:
    """Context of gemm_walk.ll.j2, beside the core."""

    element: str
    lanes: int
    rows: tuple[int, ...] = (8, 8, 8, 6)  # columns of C in a tile of 1, 2 ... vectors: pointers
    depth: int = 96  # of k in a block
    most_columns: int = 480  # of a cell, a multiple of all rows
    soon: int = 32  # of k, after which rows of A are asked for while they are turned
    enough: int = 3  # elements of a row that are worth turning a square
    asks: bool = True  # do tiles ask for what they will read in the next block of k?
    cells: int = 8  # at least, for threads to share
    by_strips: bool = False  # are there so many strips that they are shared out first?

    @property
    def name(self) -> str:
        return walk_symbol(self.element)

    @property
    def most(self) -> int:
        """Vectors of a tile."""
        return len(self.rows)

    @property
    def columns(self) -> int:
        return self.lanes * self.most

    @property
    def ahead(self) -> int:
        """How much of k is between what a tile reads and what it asks for."""
        return self.depth if self.asks else 0

    @property
    def tiles(self) -> list[Tile]:
        return [Tile(self.element, self.lanes, r, v) for v, r in enumerate(self.rows, 1)]

    def strips(self, m: int) -> tuple[int, int]:
        """(strips that have a vector more, all strips) of C's rows: as few as can be, and even."""
        vectors = -(-m // self.lanes)
        count = max(1, -(-vectors // self.most))
        return vectors % count, count

    def work_elements(self, m: int, k: int, core: Core) -> int:
        """The panels, then 64 bits for each of k."""
        vectors = -(-m // self.lanes)
        return vectors * self.lanes * k + core.slack + (k + self.ahead) * 8 // core.size + 64

    def cell_columns(self, m: int, n: int, kept: int) -> int:
        """Enough for each block of a panel to be used often, few enough for all threads and for
        L2, half of which has room for the windows of `kept` (if all of it has none for the fewest,
        they come from afar for each strip anyway); of those, with which the busier of two threads
        has the least to do."""
        parts = -(-self.cells // self.strips(m)[1]) if self.by_strips else self.cells
        stay = 2 * kept >= FEWEST
        room = max(FEWEST, min(self.most_columns, kept // 16 * 16)) if stay else self.most_columns
        most = max(64, min(room, -(-n // (parts * 32)) * 32))
        if n >= MANY * most:
            return most
        return min(range(most, most // 2, -16), key=lambda columns: self.busier(m, n, columns))

    def busier(self, m: int, n: int, columns: int) -> int:
        """Columns of strips that one of two threads computes at most, who take cells from both
        ends. A cell costs as much as `START` columns more, to read the panels again."""
        strips, ranges, rows = self.strips(m)[1], -(-n // columns), self.rows[-1]
        per = -(-strips // min(-(-self.cells // ranges), strips))
        costs = deque(
            min(per, strips - s) * (-(-min(columns, n - first) // rows) * rows + START)
            for first in range(0, n, columns) for s in range(0, strips, per)
        )  # fmt: skip
        ends = [0, 0]
        while costs:
            at = ends.index(min(ends))
            ends[at] += costs.pop() if at else costs.popleft()
        return max(ends)

    # --- lines of tiles ---

    def places(self, t: Tile) -> str:
        return "".join(
            f"  %place.p{i} = getelementptr inbounds ptr, ptr %places, i64 {i}\n"
            f"  %place.{i} = load ptr, ptr %place.p{i}, align 8\n" for i in range(t.rows)
        )  # fmt: skip

    def loop(self, t: Tile) -> str:
        lines = ["%row.p = getelementptr inbounds i64, ptr %rows, i64 %i",
                 "%row = load i64, ptr %row.p, align 8"]  # fmt: skip
        if self.asks:
            lines += [
                f"%soon.p = getelementptr inbounds i64, ptr %row.p, i64 {self.ahead}",
                "%soon = load i64, ptr %soon.p, align 8",
                f"%soon.at = getelementptr {t.element}, ptr %place.0, i64 %soon",
                "call void @llvm.prefetch.p0(ptr %soon.at, i32 0, i32 3, i32 1)",
            ]
        for v in range(t.vectors):
            lines += [
                f"%bq.{v} = getelementptr inbounds {t.element}, ptr %b, i64 {v * t.lanes}",
                f"%b.{v} = load {t.vector}, ptr %bq.{v}, align 64",
            ]
        for i in range(t.rows):
            lines.append(f"%aq.{i} = getelementptr inbounds {t.element}, ptr %place.{i}, i64 %row")
            lines += broadcast(t, f"%av.{i}", f"%aq.{i}", f".{i}")
            lines += [multiply_add(t, f"%r.{i}.{v}", f"%av.{i}", f"%b.{v}", f"%m.{i}.{v}")
                      for v in range(t.vectors)]  # fmt: skip
        text = "".join(f"  {line}\n" for line in lines)
        return phis(t, "m", ("zeroinitializer", "entry"), ("%r", "k.loop")) + text

    def ends(self, t: Tile) -> str:
        return "".join(
            f"  %p.{i}.{v} = getelementptr inbounds {t.element}, ptr %out, "
            f"i64 {i * self.columns + v * t.lanes}\n" for i, v in t.cells()
        )  # fmt: skip

    def more(self, t: Tile) -> str:
        return "".join(
            f"  %o.{i}.{v} = load {t.vector}, ptr %p.{i}.{v}, align 64\n"
            f"  %n.{i}.{v} = fadd {t.vector} %r.{i}.{v}, %o.{i}.{v}\n" for i, v in t.cells()
        )  # fmt: skip

    def stores(self, t: Tile) -> str:
        cells = [f"{i}.{v}" for i, v in t.cells()]
        text = "".join(f"  %s.{c} = phi {t.vector} [ %r.{c}, %end ], [ %n.{c}, %more ]\n"
                       for c in cells)  # fmt: skip
        return text + "".join(f"  store {t.vector} %s.{c}, ptr %p.{c}, align 64\n" for c in cells)

    def gather(self) -> str:
        """Lines that store %v.some elements, %rsa apart from %v.from on, at %v.to."""
        lanes, t = self.lanes, Tile(self.element, self.lanes, 1, 1)
        kind, iota = f"<{lanes} x i64>", ", ".join(f"i64 {i}" for i in range(lanes))
        lines = [
            *lanes_below(lanes, "%v.some"),
            f"%g.s0 = insertelement {kind} poison, i64 %rsa, i32 0",
            f"%g.s = shufflevector {kind} %g.s0, {kind} poison, <{lanes} x i32> zeroinitializer",
            f"%g.o = mul {kind} <{iota}>, %g.s",
            f"%g.p = getelementptr {t.element}, ptr %v.from, {kind} %g.o",
            f"%g.v = call {t.vector} @llvm.masked.gather.{t.suffix}.v{lanes}p0(<{lanes} x ptr> "
            f"align {4 if t.element == 'float' else 8} %g.p, <{lanes} x i1> %below, "
            f"{t.vector} zeroinitializer)",
            f"store {t.vector} %g.v, ptr %v.to, align 64",
        ]
        return "".join(f"  {line}\n" for line in lines)


def walk_symbol(element: str) -> str:
    return f"wengert_gemm_walk_{SHORT[element]}"


# 32 registers have room for 6 x 4 sums, and most layers have multiples of 64 channels. GF/s of one
# thread of a Zen 5 (L2 of 1 MB), 8 x 3 sums without asking; 6 x 4; asking; oneDNN, forward and
# input's gradient:
#   64 channels of 56 x 56, 3 x 3, batch 32    226 219   226 225   239 243   166 221
#   128 channels of 28 x 28, 3 x 3, batch 8    260 247   262 256   265 265   247 247
# With 16 there is room for 6 x 2. GF/s of one thread of a Zen 4 without AVX-512, forward,
# input's and weight's gradient, batch 8 (walked; packed; oneDNN):
#   128 channels of 28 x 28, 3 x 3             79 81 79   76 78 75   79 81 72
#   256 channels of 14 x 14, 3 x 3             79 78 84   76 74 79   81 82 73
#   64 to 128 channels of 56 x 56, 3 x 3 / 2   70 69 69   62 68 60   69 60 66
#   6 to 16 channels of 14 x 14, 5 x 5         71 51 72   58 48 43   31 19 21
# Each panel of a strip is read for every range of columns, so there should be few (512 channels of
# 7 x 7: 74 73 78, with a range for each of eight cells 67 64 77).
@cache
def walk(element: str, target: Target = DEFAULT) -> Walk:
    if target.registers >= 32:
        return Walk(element, target.lanes(element))
    return Walk(element, target.lanes(element), (6, 6), 256, asks=False, by_strips=True)


@cache
def walk_text(element: str, target: Target = DEFAULT) -> str:
    """The module that defines `walk_symbol(element)`."""
    return render("gemm_walk.ll.j2", core=core(element, target), walk=walk(element, target))
