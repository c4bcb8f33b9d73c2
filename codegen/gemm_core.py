"""The shape-generic packed matrix product: what the template needs, as data.

One module of text per element type serves every shape, all strides and any epilogue, so it is
compiled once per machine (with light optimisation: it is scheduled by hand) and then only loaded.
It exports `void wengert_gemm_f32(ptr args, i64 0)`, which can be launched as it is, and imports
`wengert_parallel` and what turns squares, `wengert_turn_f32`.

Blocks: `block_k` rows of B by `block_columns` are packed (L3), `block_rows` of A by `block_k` per
chunk (L2), tiles in registers. Measured flat around these (FMA peak 100 GF/s, 1024^3):
block_k 192 to 384 and block_rows 72 to 240 are within 2%. Blocks are about equal: a last one of
few rows would be all overhead.

Where C has many columns, all of A is packed first; then each chunk packs `pack_columns` of B on
its stack (L2) for itself and goes through all of k, so that its part of C stays in cache and no
thread waits for another (m=64, n=25088, k=576 as a 3x3 convolution: 29 -> 26 ms). Its tiles ask for
the block of B that comes next while they compute, so that it is in L2 when it is packed (16 rows
times 2048 x 2048: 46 -> 55 GF/s; 64 rows times 256 channels of 8 images of 56 x 56: 64 -> 72).

B may be read through tables of offsets (gemm_fold.py): a module of its own, which packs such a B
for the core and has an entry that tells the core so, `wengert_gemm_fold_f32`.

Invariant: an element of C sums its products in the order of k, block by block, whatever the
chunks and threads; so its bits depend on shapes alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial

from ..ir.cached import cached_property
from .gemm_fold import ALONG_K, DIGITS, load_lines, mask_lines, row_lines
from .gemm_tile import Tile, lanes_below, packed_tile, phis, step, transpose, turn
from .llvm import SHORT
from .render import render
from .target import DEFAULT, Target

SIZE = {"float": 4, "double": 8}


@dataclass(frozen=True)
class Field:
    """A field of the argument block."""

    name: str
    kind: str


# What the caller fills in, then what the product keeps for its chunks.
CALLER = ("m", "n", "k", "*a", "rsa", "*b", "rsb", "csb", "*c", "ldc", "add", "*work",
          "*finish", "*extra", "*fold", "mchunk", "nchunk", "parallel", "wide", "per", "citem",
          "step", "along", *(f"{side}{d}" for side in ("an", "as", "kn", "ks", "cn", "cs")
                     for d in range(DIGITS)))  # fmt: skip
INTERNAL = ("jc", "nc", "pc", "kc", "full", "addnow", "last", "across", "*panels",
            "*coming", "lead", "unit")  # fmt: skip
FIELDS = tuple(Field(n.lstrip("*"), "ptr" if n.startswith("*") else "i64")
               for n in CALLER + INTERNAL)  # fmt: skip
ARGS_TYPE = "{ " + ", ".join(f.kind for f in FIELDS) + " }"


def field_index(name: str) -> int:
    return next(i for i, f in enumerate(FIELDS) if f.name == name)


class Unrolled:
    """The unrolled parts of a tile's loop over k; `panels` is the tile that A and B are packed for.

    Lines of C are asked for in the loop, row by row: all at once would leave no room to wait for
    what the tile reads from L2 (1024 cubed: 146 to 158 GF/s).
    """

    def __init__(self, t: Tile, panels: Tile, unroll: int):
        zero, last = "zeroinitializer", f"%rm{unroll - 1}"
        self.unroll = unroll
        self.asking = unroll * (t.rows - 1)  # of k, while lines of C are asked for
        self.lines = (*range(64, t.columns * SIZE[t.element], 64), t.columns * SIZE[t.element] - 1)
        self.rows = "".join(
            f"  %co.{i} = mul i64 %ldc, {i}\n"
            f"  %c.{i} = getelementptr inbounds {t.element}, ptr %c, i64 %co.{i}\n"
            for i in range(t.rows)
        )
        self.main = phis(t, "m", (zero, "entry"), (last, "main"))
        for u in range(unroll):
            self.main += step(t, f"m{u}", "%ma", "%mb", u, "m" if u == 0 else f"rm{u - 1}", panels)
        self.rest = phis(t, "s", (zero, "entry"), (last, "main"))
        self.tail = phis(t, "t", ("%s", "rest"), ("%rt0", "tail"))
        self.tail += step(t, "t0", "%ta", "%tb", 0, "t", panels)
        self.joined = phis(t, "f", ("%s", "rest"), ("%rt0", "tail"))
        self._stores(t, SIZE[t.element])

    def _stores(self, t: Tile, size: int) -> None:
        self.overwrite = self.accumulate = ""
        for i, v in t.cells():
            cell = f"{i}.{v}"
            self.joined += (
                f"  %p.{cell} = getelementptr inbounds {t.element}, ptr %c.{i}, i64 {v * t.lanes}\n"
            )
            self.overwrite += f"  store {t.vector} %f.{cell}, ptr %p.{cell}, align {size}\n"
            self.accumulate += (
                f"  %o.{cell} = load {t.vector}, ptr %p.{cell}, align {size}\n"
                f"  %n.{cell} = fadd {t.vector} %f.{cell}, %o.{cell}\n"
                f"  store {t.vector} %n.{cell}, ptr %p.{cell}, align {size}\n"
            )


@dataclass(frozen=True)
class Smaller:
    """A tile for the last rows or columns, which would waste much of a whole one."""

    name: str
    side: str  # what is compared with `limit`: "%rows" or "%cols"
    limit: int
    tile: Tile


class Core:
    """Context of gemm_core.ll.j2."""

    def __init__(self, element: str, target: Target):
        self.tile = t = packed_tile(element, target)
        self.size = SIZE[element]
        self.name, self.fold_name = core_symbol(element), fold_symbol(element)
        self.turn_name = turn_symbol(element)
        self.fields = FIELDS
        self.unroll = 4
        self.roomy, self.l2 = target.roomy, target.l2
        self.chunk_flops = target.chunk_flops
        self.block_k = 512 if self.roomy else 256
        # a multiple of the tile's rows: 144 rows of 256 floats are 144 KB, a third of L2
        room = 585728 if self.roomy else 147456
        self.block_rows = max(1, room // (self.block_k * self.size) // t.rows) * t.rows
        self.block_columns = 3072 // t.columns * t.columns
        self.pack_columns = 8 * t.columns
        self.slack = 64  # elements after a block, into which the last transposed rows may spill
        self.block_elements = self.block_rows * self.block_k + self.slack
        # rows of a turned A that are asked for while it is packed (2048 x 64 x 2048: 60 -> 64 GF/s)
        self.rows_ahead = 8
        self.gap = 8  # of k, between panels of B: or all would meet in the same sets of the cache
        # each takes LLVM up to 20 ms; a later one that fits is taken
        few = replace(t, rows=t.rows * 2 // 3)
        narrow = [replace(t, vectors=v) for v in range(t.vectors - 1, 0, -1)]
        self.smaller = [Smaller("few", "%rows", few.rows, few)]
        self.smaller += [Smaller(f"by_{n.vectors}", "%cols", n.columns, n) for n in narrow]
        self.digits, self.along_k = DIGITS, ALONG_K

    @cached_property
    def whole(self) -> Unrolled:
        return Unrolled(self.tile, self.tile, self.unroll)

    def unrolled(self, tile: Tile) -> Unrolled:
        """A smaller tile, which runs seldom: it may take LLVM half as long."""
        return Unrolled(tile, self.tile, 2)

    # of what is packed

    @staticmethod
    def lanes_below(lanes: int, count: str) -> str:
        return "".join(f"  {line}\n" for line in lanes_below(lanes, count))

    def suffix(self, lanes: int) -> str:
        return f"v{lanes}{SHORT[self.tile.element]}"

    # of a B that is read through tables

    def run_masks(self, suffix: str) -> str:
        return mask_lines(self.tile, suffix)

    def run_load(self, *names: str) -> str:
        return "".join(f"  {line}\n" for line in load_lines(self.tile, *names))

    def _turn(self, mixed: bool) -> str:
        t = self.tile
        row = partial(row_lines, t, mixed=mixed)
        return transpose(t, t.columns, row, "x" if mixed else "w")

    @property
    def turn_whole(self) -> str:
        return self._turn(False)

    @property
    def turn_mixed(self) -> str:
        return self._turn(True)

    def index(self, name: str) -> int:
        return field_index(name)

    def kind(self, name: str) -> str:
        return FIELDS[field_index(name)].kind

    @staticmethod
    def even(size: int, limit: int, step: int) -> int:
        """The size of parts, a multiple of a step: as few as the limit allows, nearly equal."""
        steps = max(1, -(-size // limit)) * step
        return max(1, -(-size // steps)) * step

    def wide(self, m: int, n: int, k: int) -> bool:
        """Is it done by slices of columns? There must be many, or rows of a single block.

        Each slice goes through all of A, which L2 should have room for (one thread of a Zen 4
        without AVX-512, GF/s by slices and not: 288 x 3000 x 300 82 and 78, 768 x 3072 x 768 70 and
        79, 2048 cubed 73 and 78). Where L2 has room for larger blocks, C is passed less often, and
        slices do not pay.
        """
        if m <= self.block_rows:
            return n >= 2 * self.pack_columns and m * k <= 2**22
        stays = not self.roomy and m * k * self.size <= self.l2
        return stays and n >= 8 * self.pack_columns

    def work_elements(self, m: int, n: int, k: int) -> int:
        """Elements of the workspace: all of A, if C is done by slices, else a block of B."""
        if self.wide(m, n, k):
            rows = self.even(m, self.block_rows, self.tile.rows)
            depth = self.even(k, self.block_k, self.tile.lanes)
            return -(-m // rows) * -(-k // depth) * (rows * depth + self.slack)
        columns = -(-min(n, self.block_columns) // self.tile.columns) * self.tile.columns
        return columns * (min(k, self.block_k) + self.gap) + 64


def core_symbol(element: str) -> str:
    return f"wengert_gemm_{SHORT[element]}"


def fold_symbol(element: str) -> str:
    return f"wengert_gemm_fold_{SHORT[element]}"


def turn_symbol(element: str) -> str:
    return f"wengert_turn_{SHORT[element]}"


@cache
def core(element: str, target: Target = DEFAULT) -> Core:
    return Core(element, target)


@cache
def core_text(element: str, target: Target = DEFAULT) -> str:
    """The module that defines `core_symbol(element)`; compile it with light optimisation."""
    return render("gemm_core.ll.j2", core=core(element, target))


@cache
def turn_text(element: str, target: Target = DEFAULT) -> str:
    """The module that defines `turn_symbol(element)`, which the core and strips import."""
    lines = turn(core(element, target).tile)
    return render("gemm_turn.ll.j2", name=turn_symbol(element), lines=lines)


@cache
def fold_text(element: str, target: Target = DEFAULT) -> str:
    """The module that defines `fold_symbol(element)` and imports the core."""
    return render("gemm_fold.ll.j2", core=core(element, target))
