"""Products whose sides are several dimensions each, which need not lie behind each other.

The columns of a convolution's matrix are positions (image, row, column), its sums run over
(channel, row, column) of the kernel, and an element is where both offsets add up to. So the matrix
is never stored: the packed core reads it through tables of offsets.

Items of a batch that share A are columns too: A is packed for all of them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .gemm_tile import Tile

DIGITS = 4  # dimensions that a side may have
ALONG_COLUMNS, ALONG_K = 1, 2

Dims = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Fold:
    """k: (count, stride in A, in B) of each dimension; columns: (count, stride in B).

    `per` columns are an item's; the next item of C is `c_item` elements on and `step` items on in
    the batch.
    """

    k: Dims
    columns: Dims
    per: int
    c_item: int = 0
    step: int = 0

    @property
    def a(self) -> Dims:
        """The dimensions of k as A has them."""
        return merged(tuple((count, a) for count, a, _ in self.k))

    @property
    def span(self) -> int:
        """Elements of B from the first to the last that is read."""
        strides = [(count, dims[-1]) for count, *dims in (*self.k, *self.columns)]
        return 1 + sum((count - 1) * abs(stride) for count, stride in strides)

    @property
    def along(self) -> int:
        """Which side of B has the longer runs."""
        return ALONG_K if run(self.k) > run(self.columns) else ALONG_COLUMNS


def run(dims: Dims) -> int:
    """How many elements of B lie behind each other."""
    return dims[-1][0] if dims and dims[-1][-1] == 1 else 1


def merged(dims: Dims) -> Dims:
    """Without dimensions of size 1, and with those joined that lie behind each other."""
    result: list[tuple[int, ...]] = []
    for count, *strides in dims:
        if count == 1:
            continue
        if result and all(outer == inner * count for outer, inner in zip(result[-1][1:], strides)):
            result[-1] = (result[-1][0] * count, *strides)
        else:
            result.append((count, *strides))
    return tuple(result)


def gathered(p: Any) -> Any:
    """The product with the items of its first batch dimension as columns, if they share A."""
    if not p.batch or p.batch[0][1] != 0 or p.batch[0][0] == 1:
        return p
    fold = p.fold or Fold(((p.k, p.a[1], p.b[0]),), ((p.n, p.b[1]),), p.n)
    (count, _, b_item, c_item), *rest = p.batch
    columns = merged(((count, b_item), *fold.columns))
    if len(columns) > DIGITS:
        return p
    step = 1
    for size, *_ in rest:
        step *= size
    fold = replace(fold, columns=columns, c_item=c_item, step=step)
    return replace(p, n=count * p.n, batch=tuple(rest), fold=fold)


def fields(side: str, dims: Dims) -> dict[str, int]:
    """The core's fields of a side: counts and strides of its dimensions, last fastest."""
    if len(dims) > DIGITS:
        raise ValueError(f"a side of a product has more than {DIGITS} dimensions: {dims}")
    filled = ((1, 0),) * (DIGITS - len(dims)) + dims
    counts = {f"{side}n{d}": count for d, (count, _) in enumerate(filled)}
    return counts | {f"{side}s{d}": stride for d, (_, stride) in enumerate(filled)}


# --- lines of the core's template ----------------------------------------------------------------


def mask_lines(t: Tile, suffix: str) -> str:
    """%mask.1, %mask.2: negative in the lanes of a vector's first and second run."""
    whole = f"i{32 if t.element == 'float' else 64}"
    kind = f"<{t.lanes} x {whole}>"
    iota = ", ".join(f"{whole} {i}" for i in range(t.lanes))
    lines = []
    for name in (f"%split{suffix}", f"%end{suffix}"):
        value = name
        if whole != "i64":
            value = f"{name}.s"
            lines.append(f"{value} = trunc i64 {name} to {whole}")
        lines += [
            f"{name}.i = insertelement {kind} poison, {whole} {value}, i32 0",
            f"{name}.v = shufflevector {kind} {name}.i, {kind} poison, "
            f"<{t.lanes} x i32> zeroinitializer",
            f"{name}.c = icmp slt {kind} <{iota}>, {name}.v",
            f"{name}.m = sext <{t.lanes} x i1> {name}.c to {kind}",
        ]
    first, both = f"%split{suffix}.m", f"%end{suffix}.m"
    lines += [f"%mask.1{suffix} = and {kind} {first}, {both}",
              f"%mask.2{suffix} = xor {kind} {first}, {both}"]  # fmt: skip
    return "".join(f"  {line}\n" for line in lines)


def load_lines(t: Tile, result: str, first: str, second: str, suffix: str, tag: str) -> list[str]:
    """A vector of two runs, from where they would start if each were all of it."""
    size = 4 if t.element == "float" else 8
    kind = f"<{t.lanes} x i{8 * size}>"
    bits, load = f"<{t.lanes} x i1>", f"@llvm.masked.load.{t.suffix}.p0"
    return [
        f"%b1.{tag} = icmp slt {kind} %mask.1{suffix}, zeroinitializer",
        f"%b2.{tag} = icmp slt {kind} %mask.2{suffix}, zeroinitializer",
        f"%v1.{tag} = call {t.vector} {load}(ptr align {size} {first}, {bits} %b1.{tag}, "
        f"{t.vector} zeroinitializer)",
        f"{result} = call {t.vector} {load}(ptr align {size} {second}, {bits} %b2.{tag}, "
        f"{t.vector} %v1.{tag})",
    ]


def row_lines(t: Tile, p: int, mixed: bool) -> list[str]:
    """%tv.p: elements of column p of a panel, along k."""
    tag = f"{'x' if mixed else 'w'}{p}"
    lines = [
        f"%cq.{tag} = getelementptr inbounds i64, ptr %here, i64 {p}",
        f"%co.{tag} = load i64, ptr %cq.{tag}, align 8",
        f"%p1.{tag} = getelementptr inbounds {t.element}, ptr %in.1, i64 %co.{tag}",
    ]
    if not mixed:
        size = 4 if t.element == "float" else 8
        return [*lines, f"%tv.{tag} = load {t.vector}, ptr %p1.{tag}, align {size}"]
    lines.append(f"%p2.{tag} = getelementptr inbounds {t.element}, ptr %in.2, i64 %co.{tag}")
    return lines + load_lines(t, f"%tv.{tag}", f"%p1.{tag}", f"%p2.{tag}", "", tag)
