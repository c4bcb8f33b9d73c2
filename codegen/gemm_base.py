"""What all kinds of products share: their description, how they are cut into chunks, their text.

Invariant: work is cut into chunks by shape alone and every element of C is summed in one order,
so results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.cached import cached_property
from .epilogue import Epilogue, Site
from .gemm_fold import Fold
from .render import render
from .scalar import LLVMReader, Scalar
from .target import Target

ELEMENT = {"float32": "float", "float64": "double"}
DTYPE = {element: dtype for dtype, element in ELEMENT.items()}
SIZE = {"float": 4, "double": 8}

MAX_CHUNKS = 64
WAITING = 4  # rows, or columns, with which a product waits for memory


@dataclass(frozen=True)
class Matmul:
    """C[m, n] = A[m, k] B[k, n] (+ C), strides in elements as (row, column).

    `batch` has one (count, stride of a, of b, of c) per batch dimension; a stride 0 broadcasts.
    `fold` says where k and the columns are if they are several dimensions each, in place of the
    strides a[1] and b.
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
    fold: Fold | None = None

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
    """What `emit` gives; pointers of `void name(...)` in the order of `parameters`.

    The text, and the functions it calls, are made when asked for.
    """

    name: str
    kernel: Kernel
    parameters: tuple[str, ...]
    imports: tuple[str, ...]
    workspace: int
    kind: str

    @cached_property
    def text(self) -> str:
        return render(self.kernel.template, kernel=self.kernel)

    @property
    def calls(self) -> tuple[tuple[str, str, int], ...]:
        assert self.text  # writing it finds them
        return tuple(self.kernel.calls)


class Kernel:
    """What the templates see of any kind of product."""

    template = ""
    kind = ""
    row_step = 1

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
            enough = -(-self.enough // flops)
            return max(enough, -(-self.items // MAX_CHUNKS)), max(self.extent, 1)
        parts = max(1, min(flops // self.enough, 16))
        parts += parts > 1 and parts % 2  # else one of two threads has less to do
        step = self.row_step
        return 1, max(1, -(-self.extent // (parts * step))) * step

    @property
    def enough(self) -> int:
        """Flops of a chunk; few rows wait for memory, however wide vectors are."""
        few = min(self.m, self.n) <= WAITING
        return min(self.target.chunk_flops, 2**18) if few else self.target.chunk_flops

    @property
    def extent(self) -> int:
        """What chunks cut: the rows, if nothing else is said."""
        return self.m

    @property
    def row_chunks(self) -> int:
        return max(1, -(-self.extent // self.chunk_rows))

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

    stores_sums = False  # are sums stored in C before the epilogue?
    # kinds that finish elements in a loop of its own say over which columns here
    pass_columns: tuple[str, str] | None = None
    pass_rows = ("%first", "%last")
    pass_turned = False  # does the inner loop go down the columns?
    after = ""  # lines of the entry once all chunks are done

    def finished(self, s: LLVMReader) -> Scalar:
        """What is at %pass.c before the epilogue: as many elements as the reader has lanes."""
        return s.load(f"%pass.c{s.m.lanes}", DTYPE[self.element])

    @property
    def pass_text(self) -> str:
        """The loops that finish elements, by vectors where they are contiguous."""
        if self.pass_columns is None:
            return ""
        sides = [(self.pass_rows, self.c[0]), (self.pass_columns, self.c[1])]
        outer, inner = sides[::-1] if self.pass_turned else sides
        widths = [self.target.lanes(self.element), 1] if inner[1] == 1 else [1]
        parts = [(lanes, self._pass_body(lanes)) for lanes in widths]
        return render("gemm_pass.ll.j2", kernel=self, parts=parts, outer=outer, inner=inner)

    def _pass_body(self, lanes: int) -> str:
        s = LLVMReader(DTYPE[self.element], lanes=lanes, prefix=f"e{lanes}.")
        value = self.finished(s)
        if self.epilogue:
            site = Site(s, value, "%pass.i", f"%pass.j{lanes}", "%batch", lanes,
                        self.product.swapped != self.pass_turned)  # fmt: skip
            value = checked(self.epilogue.emit(site), self)
        s.store(value, f"%pass.c{lanes}")
        self.calls.update(dict.fromkeys(s.calls))
        return s.text()

    @staticmethod
    def can(p: Matmul) -> bool:
        """Whether this kind computes p as it is, not transposed."""
        raise NotImplementedError

    def imports(self) -> tuple[str, ...]:
        return ("wengert_parallel",) if self.parallel else ()

    def emit(self) -> KernelText:
        return KernelText(self.name, self, self.pointers, self.imports(),
                          self.slot_bytes * self.chunks, self.kind)  # fmt: skip


def added_up(kernel: Kernel, s: LLVMReader, row: int, parts: int, pitch: int) -> Scalar:
    """The sums that parts of %work have for an element, in order, after what C held.

    Rows are `row` elements apart, parts a `pitch`.
    """
    lanes, dtype = s.m.lanes, DTYPE[kernel.element]
    total = s.load(f"%pass.c{lanes}", dtype) if kernel.product.accumulate else None
    s.m.effect(f"%row.{lanes} = mul i64 %pass.i, {row}")
    s.m.effect(f"%at.{lanes} = add i64 %row.{lanes}, %pass.j{lanes}")
    for part in range(parts):
        tag = f"{lanes}.{part}"
        s.m.effect(f"%at.{tag} = add i64 %at.{lanes}, {part * pitch}")
        s.m.effect(
            f"%sum.{tag} = getelementptr inbounds {kernel.element}, ptr %work, i64 %at.{tag}"
        )
        value = s.load(f"%sum.{tag}", dtype)
        total = value if total is None else s.add(total, value)
    assert total is not None
    return total


def checked(result: Scalar, kernel: Kernel) -> Scalar:
    """What an epilogue gave, if C can hold it."""
    if result.dtype != DTYPE[kernel.element]:
        raise TypeError(f"epilogue of {kernel.name} gives {result.dtype}, "
                        f"C holds {DTYPE[kernel.element]}; cast it")  # fmt: skip
    return result
