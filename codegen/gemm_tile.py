"""Micro-kernels: one tile of a matrix product, all of it in registers.

A tile has `rows` rows and `vectors` vectors of columns. Its loop over k loads one vector of B per
column vector, broadcasts one element of A per row, and multiplies and adds. Everything is
unrolled here, in Python; the loops around tiles are in the templates.

Two kinds. Packed: A and B come in panels (A: `rows` elements per k, B: a row of the tile per k),
so all offsets are constants. Direct: A with any strides, B with contiguous columns, in place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .llvm import SHORT
from .target import Target


@dataclass(frozen=True)
class Tile:
    """The shape of a micro-kernel; `lanes` elements make a vector."""

    element: str
    lanes: int
    rows: int
    vectors: int

    @property
    def columns(self) -> int:
        return self.lanes * self.vectors

    @property
    def vector(self) -> str:
        return f"<{self.lanes} x {self.element}>"

    @property
    def suffix(self) -> str:
        return f"v{self.lanes}{SHORT[self.element]}"

    def cells(self) -> list[tuple[int, int]]:
        """(row, vector) of every accumulator."""
        return [(i, v) for i in range(self.rows) for v in range(self.vectors)]


def packed_tile(element: str, target: Target) -> Tile:
    """The tile of packed products: as many accumulators as leave room for operands.

    AVX2: 6 x 16 floats are 12 accumulators, 2 of B and 1 or 2 of A in 16 registers.
    AVX-512 and NEON have 32: 8 x 3 vectors. 14 x 2 would be as good, if LLVM did not load so much
    ahead that accumulators are spilled (1024 cubed: 134 to 158 GF/s, 8 x 3 167); and there are
    fewer rows of C at a time, which often meet in the same sets of L1.
    """
    lanes = target.lanes(element)
    rows, vectors = {"avx512": (8, 3), "neon": (8, 3)}.get(target.name, (6, 2))
    return Tile(element, lanes, rows, vectors)


def step(t: Tile, tag: str, a: str, b: str, offset: int, before: str, panels: Tile) -> str:
    """One k of panels packed for tiles: accumulators %{before}.i.v become %r{tag}.i.v."""
    lines = []
    for v in range(t.vectors):
        at = offset * panels.columns + v * t.lanes
        lines += [
            f"%bq{tag}.{v} = getelementptr inbounds {t.element}, ptr {b}, i64 {at}",
            f"%b{tag}.{v} = load {t.vector}, ptr %bq{tag}.{v}, align {4 * t.lanes}",
        ]
    for i in range(t.rows):
        at = offset * panels.rows + i
        lines.append(f"%aq{tag}.{i} = getelementptr inbounds {t.element}, ptr {a}, i64 {at}")
        lines += broadcast(t, f"%av{tag}.{i}", f"%aq{tag}.{i}", f"{tag}.{i}")
        lines += [multiply_add(t, f"%r{tag}.{i}.{v}", f"%av{tag}.{i}", f"%b{tag}.{v}",
                               f"%{before}.{i}.{v}") for v in range(t.vectors)]  # fmt: skip
    return "".join(f"  {line}\n" for line in lines)


def broadcast(t: Tile, result: str, pointer: str, tag: str) -> list[str]:
    """One element in all lanes."""
    size = 4 if t.element == "float" else 8
    return [
        f"%as{tag} = load {t.element}, ptr {pointer}, align {size}",
        f"%ai{tag} = insertelement {t.vector} poison, {t.element} %as{tag}, i32 0",
        f"{result} = shufflevector {t.vector} %ai{tag}, {t.vector} poison, "
        f"<{t.lanes} x i32> zeroinitializer",
    ]


def multiply_add(t: Tile, result: str, a: str, b: str, c: str) -> str:
    kind = t.vector
    return f"{result} = call {kind} @llvm.fma.{t.suffix}({kind} {a}, {kind} {b}, {kind} {c})"


def phis(t: Tile, name: str, *edges: tuple[str, str]) -> str:
    """A phi per accumulator; an edge is (prefix of the value or a constant, label)."""
    text = ""
    for i, v in t.cells():
        listed = ", ".join(
            f"[ {f'{value}.{i}.{v}' if value.startswith('%') else value}, %{label} ]"
            for value, label in edges
        )
        text += f"  %{name}.{i}.{v} = phi {t.vector} {listed}\n"
    return text


def _butterfly(t: Tile, rows: list[str], tag: str) -> tuple[list[str], list[str]]:
    """Transposes lanes x lanes values in log2(lanes) rounds of swaps; (lines, results)."""
    lines, half = [], t.lanes // 2
    while half:
        after = list(rows)
        for i in (i for i in range(t.lanes) if not i & half):
            for j, offset in ((i, 0), (i + half, half)):
                mask = ", ".join(
                    f"i32 {c + offset if c % (2 * half) < half else t.lanes + c - half + offset}"
                    for c in range(t.lanes)
                )
                after[j] = f"%x{tag}.{half}.{j}"
                lines.append(
                    f"{after[j]} = shufflevector {t.vector} {rows[i]}, {t.vector} "
                    f"{rows[i + half]}, <{t.lanes} x i32> <{mask}>"
                )
        rows, half = after, half // 2
    return lines, rows


def transpose(t: Tile, width: int, row: Callable[[int], list[str]], tag: str) -> str:
    """Writes `width` rows of `lanes` elements by columns, to %tt + column * width.

    row(p) gives the lines that load row p as %tv.{tag}{p}. Stores go upwards, so where width is
    not a multiple of the lanes the unused lanes of one are overwritten by the next; the last reach
    into the next panel, which is written later, or into the buffer's slack.
    """
    size = 4 if t.element == "float" else 8
    lines, blocks = [], []
    for block in range(0, width, t.lanes):
        rows = ["zeroinitializer"] * t.lanes
        for p in range(block, min(block + t.lanes, width)):
            lines += row(p)
            rows[p - block] = f"%tv.{tag}{p}"
        more, columns = _butterfly(t, rows, f"{tag}{block}")
        lines += more
        blocks.append((block, columns))
    for q in range(t.lanes):
        for block, columns in blocks:
            at, name = q * width + block, f"%td.{tag}{q}.{block}"
            lines += [
                f"{name} = getelementptr inbounds {t.element}, ptr %tt, i64 {at}",
                f"store {t.vector} {columns[q]}, ptr {name}, align {size}",
            ]
    return "".join(f"  {line}\n" for line in lines)


def turn(t: Tile) -> str:
    """Lines that write `lanes` rows of as many elements by columns, to %to + column * %width.

    Rows are %sp elements apart, from %from on; those after %last are it again, and go where the
    next column, or what is written later, will be. Vectors are loaded by parts of 128 bits, each of
    another row, so that what is left to swap stays within those: half of the shuffles.
    """
    size, part = (4, 4) if t.element == "float" else (8, 2)
    lines, columns = [], []
    for p in range(t.lanes):
        lines += [
            f"%ti.{p} = call i64 @llvm.smin.i64(i64 %last, i64 {p})",
            f"%ts.{p} = mul i64 %ti.{p}, %sp",
            f"%tp.{p} = getelementptr inbounds {t.element}, ptr %from, i64 %ts.{p}",
        ]
    for first in range(0, t.lanes, part):
        rows = [f"%tv.{first}.{r}" for r in range(part)]
        for r, result in enumerate(rows):
            lines += _parts(t, part, range(r, t.lanes, part), first, result)
        more, swapped = _interleaved(t, rows, f"{first}")
        lines += more
        columns += swapped
    for q, column in enumerate(columns):
        lines += [
            f"%to.{q} = mul i64 %width, {q}",
            f"%td.{q} = getelementptr inbounds {t.element}, ptr %to, i64 %to.{q}",
            f"store {t.vector} {column}, ptr %td.{q}, align {size}",
        ]
    return "".join(f"  {line}\n" for line in lines)


def _interleaved(t: Tile, rows: list[str], tag: str) -> tuple[list[str], list[str]]:
    """Transposes squares of as many lanes as there are rows, all at once; (lines, results).

    A round takes the lower, and the higher, halves of two rows' squares by turns; rounds of this
    one step need no constants.
    """
    lines, part, round_ = [], len(rows), 1
    while round_ < part:
        after = []
        for i in range(part // 2):
            for start in (0, part // 2):
                lanes = [x for square in range(0, t.lanes, part) for c in range(part // 2)
                         for x in (square + start + c, t.lanes + square + start + c)]  # fmt: skip
                mask = ", ".join(f"i32 {x}" for x in lanes)
                after.append(f"%x{tag}.{round_}.{2 * i + (start > 0)}")
                lines.append(
                    f"{after[-1]} = shufflevector {t.vector} {rows[i]}, {t.vector} "
                    f"{rows[i + part // 2]}, <{t.lanes} x i32> <{mask}>"
                )
        rows, round_ = after, 2 * round_
    return lines, rows


def _parts(t: Tile, part: int, rows: range, first: int, result: str) -> list[str]:
    """One vector of the elements from `first` on of several rows."""
    size, kind, lines = 4 if t.element == "float" else 8, f"<{part} x {t.element}>", []
    values = []
    for p in rows:
        name = f"%tl.{first}.{p}"
        lines += [
            f"{name}.p = getelementptr inbounds {t.element}, ptr %tp.{p}, i64 {first}",
            f"{name} = load {kind}, ptr {name}.p, align {size}",
        ]
        values.append(name)
    width = part
    while len(values) > 1:
        order = ", ".join(f"i32 {i}" for i in range(2 * width))
        joined = [result if len(values) == 2 else f"{a}.w" for a in values[::2]]
        lines += [
            f"{name} = shufflevector <{width} x {t.element}> {a}, <{width} x {t.element}> {b}, "
            f"<{2 * width} x i32> <{order}>"
            for name, a, b in zip(joined, values[::2], values[1::2])
        ]
        values, width = joined, 2 * width
    if len(rows) == 1:
        lines[-1] = lines[-1].replace(f"{values[0]} =", f"{result} =", 1)
    return lines


def lanes_below(lanes: int, count: str) -> list[str]:
    """Lines that give %below: a mask of the first `count` lanes."""
    kind = f"<{lanes} x i64>"
    iota = ", ".join(f"i64 {i}" for i in range(lanes))
    return [
        f"%below.0 = insertelement {kind} poison, i64 {count}, i32 0",
        f"%below.all = shufflevector {kind} %below.0, {kind} poison, "
        f"<{lanes} x i32> zeroinitializer",
        f"%below = icmp slt {kind} <{iota}>, %below.all",
    ]
