"""Matrix products as kernels: a description in, LLVM text out.

    product = Matmul("linear", "float32", m=128, n=512, k=784, a=(784, 1), b=(1, 784), c=(512, 1),
                     epilogue=Epilogue(("bias",), bias_relu))
    kernel = emit(product)          # kernel.text defines void @linear(a, b, c, bias, work)

The text needs `prelude(kernel.calls)` beside it, declarations of `kernel.imports`, and at run
time a workspace of `kernel.workspace` bytes, aligned to 64. Modules with `packed` products import
`core_symbol(element)`, which `core_text(element)` defines.

Invariant: work is cut into chunks by shape alone and every element of C is summed in one order,
so results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from .epilogue import Epilogue, Site
from .gemm_core import ARGS_TYPE, CALLER, FIELDS, SIZE, core, core_symbol, field_index
from .gemm_direct import DTYPE, Cut, DirectTile, best_tile, tile_name
from .gemm_tile import Tile
from .llvm import SHORT
from .render import render
from .scalar import LLVMReader, Scalar
from .target import DEFAULT, Target

ELEMENT = {"float32": "float", "float64": "double"}
# A chunk is worth waking a thread for (a fork and join costs 0.4 us hot, 30 us asleep).
CHUNK_FLOPS = 2**18
MAX_CHUNKS = 64


@dataclass(frozen=True)
class Matmul:
    """C[m, n] = A[m, k] B[k, n] (+ C), strides in elements as (row, column).

    `batch` has one (count, stride of a, of b, of c) per batch dimension; a stride 0 broadcasts.
    """

    name: str
    dtype: str
    m: int
    n: int
    k: int
    a: tuple[int, int]
    b: tuple[int, int]
    c: tuple[int, int]
    batch: tuple[tuple[int, int, int, int], ...] = ()
    accumulate: bool = False
    epilogue: Epilogue | None = None
    swapped: bool = False

    def transposed(self) -> Matmul:
        """The same product as C^T = B^T A^T."""
        return replace(
            self, m=self.n, n=self.m, a=self.b[::-1], b=self.a[::-1], c=self.c[::-1],
            batch=tuple((count, b, a, c) for count, a, b, c in self.batch),
            swapped=not self.swapped,
        )  # fmt: skip

    @property
    def items(self) -> int:
        total = 1
        for count, *_ in self.batch:
            total *= count
        return total

    @property
    def flops(self) -> int:
        return 2 * self.m * self.n * self.k


@dataclass(frozen=True)
class KernelText:
    """What `emit` gives; pointers of `void name(...)` in the order of `parameters`."""

    name: str
    text: str
    parameters: tuple[str, ...]
    calls: tuple[tuple[str, str, int], ...]
    imports: tuple[str, ...]
    workspace: int
    kind: str


class Kernel:
    """What the templates see of any kind of product."""

    template = ""
    kind = ""

    def __init__(self, p: Matmul, target: Target):
        self.product, self.target = p, target
        self.name, self.element = p.name, ELEMENT[p.dtype]
        self.m, self.n, self.k = p.m, p.n, p.k
        self.a, self.b, self.c = p.a, p.b, p.c
        self.items, self.epilogue = p.items, p.epilogue
        self.extras = p.epilogue.buffers if p.epilogue else ()
        # as the user sees them: a transposed product takes its operands swapped back
        first, second = ("b", "a") if p.swapped else ("a", "b")
        self.pointers = (first, second, "c", *self.extras, "work")
        self.extra_arguments = "".join(f"ptr %{b}, " for b in self.extras)
        self.calls: dict[tuple[str, str, int], None] = {}
        self.group, self.chunk_rows = self.cut()

    def cut(self) -> tuple[int, int]:
        """(items per chunk, rows per chunk)."""
        flops = max(self.product.flops, 1)
        if self.items > 1:
            enough = -(-CHUNK_FLOPS // flops)
            return max(enough, -(-self.items // MAX_CHUNKS)), max(self.m, 1)
        parts = max(1, min(flops // CHUNK_FLOPS, 16))
        step = self.row_step
        return 1, max(1, -(-self.m // (parts * step))) * step

    row_step = 1

    @property
    def row_chunks(self) -> int:
        return max(1, -(-self.m // self.chunk_rows))

    @property
    def chunks(self) -> int:
        return -(-self.items // self.group) * self.row_chunks

    @property
    def parallel(self) -> bool:
        return self.chunks > 1

    @property
    def slot_bytes(self) -> int:
        """Bytes of workspace of one chunk."""
        return 0

    @property
    def batch_offsets(self) -> str:
        """Lines that give %a.item, %b.item, %c.item from %item."""
        lines, rest = [], "%item"
        totals = {"a": "0", "b": "0", "c": "0"}
        for d, (count, *strides) in reversed(list(enumerate(self.product.batch))):
            lines.append(f"%index.{d} = srem i64 {rest}, {count}")
            lines.append(f"%rest.{d} = sdiv i64 {rest}, {count}")
            rest = f"%rest.{d}"
            for name, stride in zip("abc", strides):
                lines.append(f"%{name}.m{d} = mul i64 %index.{d}, {stride}")
                lines.append(f"%{name}.o{d} = add i64 {totals[name]}, %{name}.m{d}")
                totals[name] = f"%{name}.o{d}"
        for name in "abc":
            lines.append(f"%{name}.item = getelementptr inbounds {self.element}, ptr %{name}, "
                         f"i64 {totals[name]}")  # fmt: skip
        return "".join(f"  {line}\n" for line in lines)

    def imports(self) -> tuple[str, ...]:
        return ("wengert_parallel",) if self.parallel else ()

    def emit(self) -> KernelText:
        text = render(self.template, kernel=self)
        return KernelText(self.name, text, self.pointers, tuple(self.calls), self.imports(),
                          self.slot_bytes * self.chunks, self.kind)  # fmt: skip


class Direct(Kernel):
    """Tiles over A and B in place."""

    template, kind = "gemm_direct.ll.j2", "direct"

    def __init__(self, p: Matmul, target: Target):
        self.tile = best_tile(p.m, p.n, p.k, ELEMENT[p.dtype], target)
        self.row_step = self.tile.rows
        super().__init__(p, target)
        self.last_rows, self.last_columns = p.m % self.tile.rows, p.n % self.tile.columns
        self.whole_rows, self.whole_columns = p.m - self.last_rows, p.n - self.last_columns
        self.finished = {tile.name: self._finished(tile) for tile in self.tiles}

    def _finished(self, tile: DirectTile) -> str:
        joined = ""
        if self.k:
            joined = "".join(f"  %f.{i}.{v} = phi {tile.tile.vector} [ %r.{i}.{v}, %k ]\n"
                             for i, v in tile.tile.cells())  # fmt: skip
        return joined + tile.finish(self.calls)

    def _cut(self, rows: int, columns: int) -> Cut:
        t = self.tile
        return Cut(Tile(t.element, t.lanes, rows, -(-columns // t.lanes)), columns)

    def tile_at(self, place: str) -> str:
        """The name of the tile for "ff", "fl", "lf", "ll": full or last columns and rows."""
        rows = self.tile.rows if place[0] == "f" else self.last_rows
        columns = self.tile.columns if place[1] == "f" else self.last_columns
        return tile_name(self.name, self._cut(rows, columns))

    @cached_property
    def tiles(self) -> list[DirectTile]:
        """The tiles the shape needs: one to four."""
        row_counts = [r for r, some in ((self.tile.rows, self.whole_rows),
                                        (self.last_rows, self.last_rows)) if some]  # fmt: skip
        widths = [w for w, some in ((self.tile.columns, self.whole_columns),
                                    (self.last_columns, self.last_columns)) if some]  # fmt: skip
        return [self._tile(self._cut(r, w)) for r in row_counts for w in widths]

    def _tile(self, cut: Cut) -> DirectTile:
        p = self.product
        return DirectTile(tile_name(p.name, cut), cut.tile, cut.columns, p.k, p.a, p.b[0], p.c[0],
                          p.accumulate, p.epilogue, p.swapped)  # fmt: skip


class Packed(Kernel):
    """The shape-generic core, called once per item."""

    template, kind = "gemm_packed.ll.j2", "packed"
    args_type = ARGS_TYPE

    def __init__(self, p: Matmul, target: Target):
        self.core = core(ELEMENT[p.dtype], target)
        self.tile, self.symbol = self.core.tile, self.core.name
        super().__init__(p, target)
        lanes = self.tile.lanes
        iota = ", ".join(f"i64 {i}" for i in range(lanes))
        self.masks = "".join(
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
        return -(-self.core.work_elements(self.n, self.k) * SIZE[self.element] // 64) * 64

    def imports(self) -> tuple[str, ...]:
        return (*super().imports(), self.symbol)

    def field(self, name: str) -> int:
        return field_index(name)

    @property
    def arguments(self) -> list[tuple[str, str, str]]:
        """(field, type, value) of what the caller of the core fills in."""
        p, shared = self.product, not self.parallel and self.product.flops >= 2 * CHUNK_FLOPS
        rows, columns = chunk_shape(p.m, p.n, p.k, self.tile, self.core.block_rows)
        values = {
            "m": p.m, "n": p.n, "k": p.k, "a": "%a", "rsa": p.a[0], "csa": p.a[1], "b": "%b",
            "rsb": p.b[0], "csb": p.b[1], "c": "%c", "ldc": p.c[0], "add": int(p.accumulate),
            "work": "%work", "finish": f"@{p.name}.finish" if p.epilogue else "null",
            "extra": "%extra", "mchunk": rows, "nchunk": columns, "parallel": int(shared),
        }  # fmt: skip
        kinds = {f.name: f.kind for f in FIELDS}
        return [(n, kinds[n], str(values[n])) for n in (c.lstrip("*") for c in CALLER)]

    @cached_property
    def row_text(self) -> dict[str, str]:
        """Lines that finish one row of a tile, whole or cut off at the last column."""
        return {where: "".join(self._vector(where, v) for v in range(self.tile.vectors))
                for where in ("whole", "part")}  # fmt: skip

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
        old = site.load_at(f"%to.{where}.{v}", dtype)
        total = m.emit(f"fadd {t.vector} {fresh.text}, {old.value.text}", t.element)
        cond = f"select i1 %adding, {t.vector} {total.text}, {t.vector} {fresh.text}"
        site.value = Scalar(m.emit(cond, t.element), dtype)
        result = self.epilogue.emit(site)
        if result.dtype != dtype:
            raise TypeError(f"epilogue of {self.name} gives {result.dtype}, C holds {dtype}")
        site.store_at(result, f"%to.{where}.{v}")
        self.calls.update(dict.fromkeys(s.calls))
        return s.text()


def chunk_shape(m: int, n: int, k: int, tile: Tile, block_rows: int) -> tuple[int, int]:
    """Rows and columns of C per chunk of a packed product: near 16 chunks of enough work.

    Columns are cut only when rows do not give enough chunks, because each column chunk packs its
    rows of A again.
    """
    wanted = max(1, min(16, 2 * m * n * k // CHUNK_FLOPS))
    rows = -(-m // tile.rows)
    down = min(wanted, rows)
    mchunk = min(-(-rows // down) * tile.rows, block_rows)
    across = max(1, min(wanted * mchunk // max(m, 1), n // (8 * tile.columns)))
    columns = -(-n // tile.columns)
    return mchunk, -(-columns // across) * tile.columns


def choose(p: Matmul, target: Target = DEFAULT) -> type[Kernel]:
    """The kind of kernel for a normalised product; the rule and its measurements."""
    size = SIZE[ELEMENT[p.dtype]]
    in_place = p.b[1] == 1 or p.n == 1
    if p.k == 0 or (in_place and (p.m < 24 or p.k * p.n * size <= 2**17)):
        return Direct
    return Packed


def normalised(p: Matmul) -> Matmul:
    """The product with C's columns contiguous, transposed if need be."""
    if p.c[1] == 1 or p.n == 1:
        return p
    if p.c[0] == 1 or p.m == 1:
        return p.transposed()
    raise ValueError(f"{p.name}: C has strides {p.c}; one of them must be 1, so copy it first")


def emit(p: Matmul, target: Target = DEFAULT, kind: type[Kernel] | None = None) -> KernelText:
    """The kernel of a product; `kind` overrides the choice, for tests and measurements."""
    p = normalised(p)
    return (kind or choose(p, target))(p, target).emit()


def declarations(imports: set[str]) -> str:
    """LLVM declarations of imported functions."""
    parameters = {core_symbol(e): "ptr" for e in SHORT if e != "half"}
    parameters["wengert_parallel"] = "ptr, ptr, i64"
    return "".join(f"declare void @{name}({parameters[name]})\n" for name in sorted(imports))
