"""Nests as loops over vectors: the skeletons around vectors.py's lines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .cascade import chained, steps
from .emit import Emission
from .kernel import FOLD, TALLY
from .nest import COLUMNS
from .scalar import MEMORY, REGISTER, Scalar
from .skeleton import Carried, Loop, Part
from .vectors import Vectors

Known = dict[int, Scalar]


class VectorEmission(Vectors, Emission):
    """Emits one nest in vectors; bounds, turns and names are Emission's."""

    light = True
    keeping: Mapping[int, int] = MappingProxyType(
        {}
    )  # values to keep, and the pass that makes them
    at_pass = 0

    def parts(self) -> list[Part]:
        if self.nest.form == "column":
            return self.strips()
        known: Known = {}
        if self.nest.form == "map":
            effects = self.kernel.passes[0]
            low, high = ("%lo", "%hi") if self.flat else ("0", self.size(self.axis))
            before = self.capture(lambda: self.prepare(effects, known, {}, [self.axis]))
            text, _ = self.line_of_vectors("0", effects, low, high, known)
            return [Part(before + text), *self.row_ends(known)]
        parts = []
        self.head += "".join(self.cleared(i) for i, instr in enumerate(self.kernel.instrs)
                             if instr.kind == TALLY)  # fmt: skip
        single = self.nest.outer == len(self.nest.loops) - 1
        self.keeping = self.worth_keeping(self.kernel.passes) if single else {}
        for t, effects in enumerate(self.kernel.passes):
            if self.kernel.between[t]:
                parts.append(Part(self.straight(self.kernel.between[t], known)))
            if effects:
                parts.append(Part(self.row(t, effects, known)))
        parts.append(Part(self.straight(self.kernel.between[-1], known)))
        return parts

    def cleared(self, i: int) -> str:
        """A loop that makes the chunk's line of a tally what reductions start from."""
        instr = self.kernel.instrs[i]
        assert instr.access is not None
        ((columns, _),) = instr.access.dynamic
        count, memory = self.number(columns), MEMORY[instr.access.var.dtype.name]
        line, base = f"%line{i}", self.base(instr)
        before = (
            f"  {line}.first = mul i64 %piece, {count}\n"
            f"  {line} = getelementptr inbounds {memory}, ptr {base}, i64 {line}.first\n"
        )
        loop = Loop(f"clear{i}", "0", count)

        def body() -> None:
            at = self.lineout(f"getelementptr inbounds {memory}, ptr {line}, i64 %clear{i}")
            self.s.store(self.s.start(instr.node), at)  # type: ignore[arg-type]

        loop.body = self.capture(body)
        return self.inside(Part(before, [loop]))

    def metadata(self) -> str:
        return ""

    def size(self, d: int) -> str:
        return self.word(f"size{d}", self.nest.loops[d])

    # -- along the innermost loop ----------------------------------------------------------

    def exact(self) -> bool:
        """Is nothing left over after the main loop?"""
        size = self.nest.loops[self.axis]
        return size % self.wide == 0 and self.nest.pieces == 1

    def line_of_vectors(self, tag: str, effects: list[int], low: str, high: str, known: Known,
                        ) -> tuple[str, dict[int, Scalar]]:  # fmt: skip
        """Text of the loops along the axis, wide ones and the rest; and the folds' results."""
        size, text, tail = self.nest.loops[self.axis], "", self.tail_lanes()
        totals: dict[int, Scalar] = {}
        if size >= self.wide:
            name = f"wide.{tag}"
            text += (
                f"  %{name}.count = sub i64 {high}, {low}\n"
                f"  %{name}.most = and i64 %{name}.count, -{self.wide}\n"
                f"  %{name}.mid = add i64 {low}, %{name}.most\n"
            )
            text += self.vector_loop(name, low, f"%{name}.mid", self.wide, effects, known, totals)
            low = f"%{name}.mid"
            lanes = 1 if self.exact() else tail
            text += self.capture(lambda: totals.update(
                {i: self.narrowed(i, x, lanes) for i, x in totals.items()}))  # fmt: skip
        if not (size >= self.wide and self.exact()):
            wide, totals = (totals, {}) if tail == 1 else ({}, totals)  # one by one: many terms
            text += self.vector_loop(f"rest.{tag}", low, high, tail, effects, known, totals)
            text += self.capture(lambda: totals.update(
                {i: self.joined(i, wide.get(i), x) for i, x in totals.items()}))  # fmt: skip
        self.v = self.s
        return text, totals

    def joined(self, i: int, wide: Scalar | None, rest: Scalar) -> Scalar:
        """A fold's result along a line, from those of both of its loops."""
        rest = self.narrowed(i, rest, 1)
        node = self.kernel.instrs[i].node
        return rest if wide is None else self.s.combine(node, wide, rest)  # type: ignore[arg-type]

    def vector_loop(self, name: str, low: str, high: str, lanes: int, effects: list[int],
                    known: Known, totals: dict[int, Scalar]) -> str:  # fmt: skip
        """A loop that takes `lanes` elements a turn; totals go in and come out."""
        self.v = self.reader(lanes)
        masked = name.startswith("rest") and lanes > 1
        loop = Loop(name, low, high, str(lanes))
        folds = [i for i in effects if self.kernel.instrs[i].kind == FOLD]
        stores = [i for i in effects if i not in folds]
        vec: Known = {}
        self.index[self.axis] = f"%{name}"
        splats = self.capture(lambda: self.prepare(effects, known, vec, [self.axis]))

        def body() -> None:
            if masked:
                self.make_mask(name, high)
            operands = [self.kernel.instrs[i].operands[0] for i in folds]
            self.vneed(operands, known, vec)  # type: ignore[arg-type]
            for i in folds:
                x = self.operand(self.kernel.instrs[i].operands[0], known, vec)
                total = self.v.argument(f"%a{i}.{name}", self.kernel.instrs[i].dtype)
                nexts[i] = self.folded(i, total, x).value.text
            self.vneed(stores, known, vec)
            for i in now:
                self.keep(i, vec[i])

        now = [i for i in self.keeping if i not in self.kept and self.keeping[i] == self.at_pass]
        nexts: dict[int, str] = {}
        loop.body = self.capture(body)
        self.mask = None
        most = self.turns(self.axis) if name.startswith("wide") else self.wide
        cuts = steps(most // lanes) if self.long_sums(folds) else []
        loops = [*self.blocks(loop, [n * lanes for n in cuts]), loop]
        self.carry(self.v, loops, loops, folds, nexts, totals)
        for i in folds:
            totals[i] = self.v.argument(f"%a{i}.{loops[0].name}", self.kernel.instrs[i].dtype)
        return self.inside(Part(splats, loops))

    def make_mask(self, name: str, high: str) -> None:
        """The lanes that are below `high`."""
        m = self.v.m
        left = self.lineout(f"sub i64 {high}, %{name}")
        most = self.lineout(f"call i64 @llvm.smin.i64(i64 {left}, i64 {m.lanes})")
        short = Scalar(m.argument(self.lineout(f"trunc i64 {most} to i32"), "i32"), "int32")
        count = self.spread(short).value.text
        lanes = "<" + ", ".join(f"i32 {k}" for k in range(m.lanes)) + ">"
        self.mask = m.emit(f"icmp slt {m.type('i32')} {lanes}, {count}", "i1").text

    # -- rows ------------------------------------------------------------------------------

    def row(self, t: int, effects: list[int], known: Known) -> str:
        """One pass over a row; loops around the innermost one carry partial results."""
        nest = self.nest
        dims = list(range(nest.outer, len(nest.loops)))
        folds = [i for i in effects if self.kernel.instrs[i].kind == FOLD]
        self.at_pass = t
        before = self.capture(lambda: self.prepare(effects, known, {}, dims))
        begun = dict(self.begun)
        loops = [self.plain(d, f".{t}") for d in dims]
        self.cut(loops[0])
        inner = loops.pop()
        inside = dict(known)
        for k, loop in enumerate(loops):
            rest = dims[k + 1 :]
            loop.body = self.capture(lambda r=rest: self.prepare(effects, inside, {}, r))
        text, totals = self.line_of_vectors(str(t), effects, inner.low, inner.high, inside)
        for d, loop in zip(reversed(dims[:-1]), reversed(loops)):
            cuts = steps(self.turns(d)) if self.long_sums(folds) else []
            for around in (loop, *reversed(self.blocks(loop, cuts))):
                text, totals = self.around(around, text, totals)
        self.begun = begun
        self.kept.update((i, "") for i, first in self.keeping.items() if first == t)

        def finish() -> None:
            for i in folds:
                known[i] = self.s.rounded(totals[i], self.kernel.instrs[i].dtype)

        return before + text + self.capture(finish)

    def around(self, loop: Loop, text: str, totals: dict[int, Scalar]) -> tuple[str, Any]:
        """A loop around text that gives partial results: they are added up."""
        outer, nexts = {}, {}

        def add() -> None:
            for i, x in totals.items():
                outer[i] = self.s.argument(f"%a{i}.{loop.name}", x.dtype)
                total = self.s.combine(self.kernel.instrs[i].node, outer[i], x)  # type: ignore
                nexts[i] = total.value.text

        loop.body += text
        loop.after = self.capture(add)
        for i, x in totals.items():
            start = self.s.start(self.kernel.instrs[i].node).value.text  # type: ignore[arg-type]
            kind = REGISTER[x.dtype]
            loop.carried.append(Carried(f"%a{i}.{loop.name}", kind, start, nexts[i]))
        return self.inside(Part("", [loop])), outer

    # -- columns ---------------------------------------------------------------------------

    def outer_loops(self) -> list[Loop]:
        if self.nest.form != "column":
            return super().outer_loops()
        nest, turn = self.nest, Loop("turn", "%lo", "%hi")
        blocks = -(-nest.loops[self.axis] // COLUMNS)
        turn.body = self.unravel("%turn", (*nest.loops[: self.axis], blocks))
        turn.body += (
            f"  %c0 = mul i64 {self.index[self.axis]}, {COLUMNS}\n"
            f"  %c.end = add i64 %c0, {COLUMNS}\n"
            f"  %c1 = call i64 @llvm.smin.i64(i64 %c.end, i64 "
            f"{self.size(self.axis)})\n"
            f"  %c.count = sub i64 %c1, %c0\n"
            f"  %c.most = and i64 %c.count, -{self.wide}\n"
            f"  %c.mid = add i64 %c0, %c.most\n"
        )
        return [turn]

    def strips(self) -> list[Part]:
        """Columns a vector at a time, through all passes; then the columns that are left."""
        size, known = self.nest.loops[self.axis], {}
        effects = [i for e in (*self.kernel.passes, *self.kernel.between) for i in e]
        loops = range(self.axis, len(self.nest.loops))
        parts = [Part(self.capture(lambda: self.prepare(effects, known, {}, loops)))]
        low = "%c0"
        if size >= self.wide:
            parts.append(self.strip("wide", low, "%c.mid", self.wide, known))
            low = "%c.mid"
        if not (size >= self.wide and size % self.wide == 0):
            parts.append(self.strip("rest", low, "%c1", self.tail_lanes(), known))
        return parts

    def strip(self, name: str, low: str, high: str, lanes: int, known: Known) -> Part:
        self.v = self.reader(lanes)
        loop = Loop(name, low, high, str(lanes))
        self.index[self.axis] = f"%{name}"
        begun = dict(self.begun)
        known, vec = dict(known), {}
        if name == "rest" and lanes > 1:
            loop.body += self.capture(lambda: self.make_mask(name, high))
        for t, effects in enumerate(self.kernel.passes):
            stores = self.kernel.between[t]
            loop.body += self.capture(lambda s=stores: self.vneed(s, known, vec))
            if effects:
                loop.body += self.down(f"{name}.{t}", effects, known, vec)
        last = self.kernel.between[-1]
        loop.body += self.capture(lambda: self.vneed(last, known, vec))
        self.mask, self.begun = None, begun
        return Part("", [loop])

    def down(self, tag: str, effects: list[int], known: Known, vec: Known) -> str:
        """One pass over the rows under a vector of columns."""
        nest = self.nest
        dims = list(range(nest.outer, len(nest.loops)))
        folds = [i for i in effects if self.kernel.instrs[i].kind == FOLD]
        before = self.capture(lambda: self.prepare(effects, known, vec, dims))
        begun = dict(self.begun)
        loops = [self.plain(d, f".{tag}") for d in dims]
        self.cut(loops[0])
        inside, inner = dict(known), dict(vec)
        for k in range(len(dims)):
            rest = dims[k + 1 :]
            loops[k].body = self.capture(lambda r=rest: self.prepare(effects, inside, inner, r))
        nexts: dict[int, str] = {}
        last = loops[-1].name

        def body() -> None:
            operands = [self.kernel.instrs[i].operands[0] for i in folds]
            self.vneed(operands, inside, inner)  # type: ignore[arg-type]
            for i in folds:
                x = self.operand(self.kernel.instrs[i].operands[0], inside, inner)
                total = self.v.argument(f"%a{i}.{last}", self.kernel.instrs[i].dtype)
                nexts[i] = self.folded_rows(i, total, x)
            self.vneed([i for i in effects if i not in folds], inside, inner)

        loops[-1].body += self.capture(body)
        loops = self.cascaded(loops, folds, nexts)
        self.begun = begun

        def finish() -> None:
            for i in folds:
                x = self.v.argument(f"%a{i}.{loops[0].name}", self.kernel.instrs[i].dtype)
                vec[i] = self.v.rounded(x, x.dtype)

        return self.inside(Part(before, loops)) + self.capture(finish)

    def cascaded(self, loops: list[Loop], folds: list[int], nexts: dict[int, str]) -> list[Loop]:
        """The loops over rows and those over blocks of them, with what they carry."""
        sizes = [self.turns(d) for d in range(self.nest.outer, len(self.nest.loops))]
        cuts = chained(sizes) if self.long_sums(folds) else [[] for _ in sizes]
        found: list[Loop] = []
        anew: list[Loop] = []
        inside = False  # does the next loop start anew?
        for loop, cut in zip(loops, cuts):
            blocks = self.blocks(loop, [n for n in cut if n > 1])
            made = [*blocks, loop]
            anew += made if inside else made[1:]
            inside = 1 in cut
            found += made
        self.carry(self.v, found, anew, folds, nexts, {})
        return found

    def folded_rows(self, i: int, total: Scalar, x: Scalar) -> str:
        """Lanes beyond the last column hold anything: they are never stored."""
        return self.v.combine(self.kernel.instrs[i].node, total, x).value.text  # type: ignore
