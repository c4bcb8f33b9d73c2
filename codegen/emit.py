"""From loop nests to LLVM text: which line goes into which loop.

Instructions are placed in the outermost loop where all they need is known. Sizes and strides other
than 0 and 1 are run-time words, so that kernels that differ in sizes only have one text and are
compiled once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from .abreast import need_abreast
from .cascade import BLOCK, Cascade, steps
from .kernel import FOLD
from .nest import TILE, Nest
from .prelude import prelude
from .render import environment, identity, render
from .scalar import Scalar
from .skeleton import Emitted, Loop, Part
from .streams import two_bodies
from .target import DEFAULT, Target

SIDE_BY_SIDE = 256  # elements of a block: LLVM's vectoriser makes several sums of them
LONG, SHORT = 64, 8  # turns above which a loop is interleaved, and vectorised


@dataclass
class Skeleton:
    """A nest's text before it is text: fields of the template, loops inside lines, what it calls.

    Lines stand for the loops inside them by `hole`, which `write` fills.
    """

    fields: dict[str, Any]
    inner: list[Part]
    metadata: str
    streamed: tuple[str, ...]  # pointers that stores are streamed to
    calls: tuple[Any, ...]
    target: Target

    def write(self, name: str) -> str:
        nest = environment().get_template("nest_loops.ll.j2").module.nest
        text = render("nest.ll.j2", kernel=dict(self.fields, name=name))
        for k in reversed(range(len(self.inner))):  # one may hold earlier ones
            text = text.replace(hole(k), nest(self.inner[k]))
        text = two_bodies(text, name, self.streamed) if self.streamed else text
        return text + self.metadata + prelude(self.calls, self.target)


def hole(k: int) -> str:
    """What stands for loops in lines that are not written yet."""
    return f"\0{k}\0"


class Emission(Cascade):
    """Emits one nest in map or row form; `buffer_of` tells which Vars share memory."""

    light = False  # does the text need LLVM's whole optimiser?
    streamed: frozenset[int] = frozenset()  # stores that pass by the caches

    def inside(self, part: Part) -> str:
        """Loops that stand inside another loop's lines."""
        self.inner.append(part)
        return hole(len(self.inner) - 1)

    # -- the skeleton's fields -------------------------------------------------------------

    @property
    def signature(self) -> str:
        listed = [f"{'ptr noalias' if p.type == 'ptr' else p.type} %{p.name}"
                  for p in self.parameters]  # fmt: skip
        return ", ".join([*listed, *self.bounded()])

    def argument_list(self) -> str:
        return ", ".join([*(f"{p.type} %{p.name}" for p in self.parameters), *self.bounded()])

    def bounded(self) -> list[str]:
        """What a chunk's number says: turns, and the piece of the first reduced loop."""
        names = ["lo", "hi"] + (["first", "last", "piece"] if self.nest.pieces > 1 else [])
        names += ["piece"] if self.kernel.together else []
        return [f"i64 %{name}" for name in names]

    def bounds(self) -> str:
        nest = self.nest
        chunk, piece = "%chunk", ""
        if self.kernel.together:
            piece = "  %piece = add i64 %chunk, 0\n"
        if nest.pieces > 1:
            groups = self.word("groups", -(-nest.turns // nest.grain))
            size = self.word("piece", nest.piece)
            chunk = "%group"
            piece = (
                f"  %group = urem i64 %chunk, {groups}\n  %piece = udiv i64 %chunk, {groups}\n"
                f"  %first = mul i64 %piece, {size}\n  %stop = add i64 %first, {size}\n"
                f"  %last = call i64 @llvm.smin.i64(i64 %stop, i64 "
                f"{self.size(nest.outer)})\n"
            )
        grain, turns = self.word("grain", nest.grain), self.word("turns", nest.turns)
        return piece + (
            f"  %lo = mul i64 {chunk}, {grain}\n"
            f"  %end = add i64 %lo, {grain}\n"
            f"  %hi = call i64 @llvm.smin.i64(i64 %end, i64 {turns})\n"
        )

    def emit(self) -> Emitted:
        outer = self.outer_loops()
        parts = self.parts()
        bounds = self.bounds()
        pointers = [self.base(self.kernel.instrs[i]) for i in sorted(self.streamed)]
        fields = dict(
            parameters=self.parameters, arguments=self.argument_list(), bounds=bounds,
            signature=self.signature, head=self.head, outer=outer, parts=parts,
        )  # fmt: skip
        skeleton = Skeleton(fields, self.inner, self.metadata(), tuple(pointers),
                            tuple(self.s.calls), self.target)  # fmt: skip
        whole = identity(skeleton)
        name = "k" + whole[:20]
        return Emitted(name, partial(skeleton.write, name), whole, tuple(self.arguments),
                       self.nest.chunks, self.light)  # fmt: skip

    def metadata(self) -> str:
        """What vectorised loops ask for; see `vectorised`."""
        lines = ['!0 = !{!"llvm.loop.interleave.count", i32 4}\n',
                 '!1 = !{!"llvm.loop.interleave.count", i32 1}\n',
                 '!2 = !{!"llvm.loop.vectorize.width", i32 1}\n',
                 '!3 = !{!"llvm.loop.unroll.disable"}\n']  # fmt: skip
        for k, wishes in enumerate(self.marks, 4):
            lines.append(f"!{k} = distinct !{{!{k}, {wishes}}}\n")
        return "".join(lines)

    def vectorised(self, size: int) -> str:
        """Metadata of a loop that LLVM should vectorise, if it is long enough for that.

        Not `vectorize.enable`: it would also allow sums to be reordered that must not be.
        """
        self.marks.append("!0" if size >= LONG else "!1" if size >= SHORT else "!1, !2, !3")
        return f", !llvm.loop !{len(self.marks) + 3}"

    # -- loops -----------------------------------------------------------------------------

    def outer_loops(self) -> list[Loop]:
        """The loop over turns, and those inside it that are not reduced or vectorised."""
        nest = self.nest
        loops: list[Loop] = []
        if self.flat:
            return loops
        if nest.tiled:
            return self.tiles()
        if nest.shared:
            first = Loop("turn", "%lo", "%hi")
            first.body = self.unravel("%turn", nest.loops[: nest.shared])
            loops.append(first)
        for d in range(nest.shared, nest.outer - (nest.form == "map")):
            loops.append(self.plain(d))
        return loops

    def tiles(self) -> list[Loop]:
        """A turn is a tile of the last two loops; the loop across it comes first."""
        nest, last = self.nest, len(self.nest.loops) - 1
        blocks = [-(-n // TILE) for n in nest.loops[-2:]]
        turn = Loop("turn", "%lo", "%hi")
        turn.body = self.unravel("%turn", (*nest.loops[:-2], *blocks))
        for d in (last - 1, last):
            block, size = self.index[d], self.number(nest.loops[d])
            turn.body += (
                f"  %low{d} = mul i64 {block}, {TILE}\n  %up{d} = add i64 %low{d}, {TILE}\n"
                f"  %top{d} = call i64 @llvm.smin.i64(i64 %up{d}, i64 {size})\n"
            )
        across = self.plain(last - 1, ".a")
        across.low, across.high = f"%low{last - 1}", f"%top{last - 1}"
        return [turn, across]

    @property
    def flat(self) -> bool:
        """Is it one loop over everything, whose bounds are the chunk's?"""
        return self.nest.form == "map" and len(self.nest.loops) == 1 and self.nest.shared == 1

    def unravel(self, turn: str, sizes: tuple[int, ...]) -> str:
        """Lines that take the indices of the shared loops from the number of the turn."""
        lines, rest = "", turn
        for d in reversed(range(len(sizes))):
            if d == 0:
                self.index[0] = rest
                break
            size = self.word(f"turns{d}", sizes[d])
            lines += f"  %i{d} = urem i64 {rest}, {size}\n  %t{d} = udiv i64 {rest}, {size}\n"
            self.index[d], rest = f"%i{d}", f"%t{d}"
        return lines

    def plain(self, d: int, suffix: str = "") -> Loop:
        name = f"i{d}{suffix}"
        self.index[d] = f"%{name}"
        return Loop(name, "0", self.size(d))

    def size(self, d: int) -> str:
        """The turns of a loop, written out where LLVM may unroll it."""
        return self.number(self.nest.loops[d])

    def parts(self) -> list[Part]:
        nest = self.nest
        known: dict[int, Scalar] = {}
        if nest.form == "map":
            return [self.map_part(known), *self.row_ends(known)]
        parts = []
        for t, effects in enumerate(self.kernel.passes):
            if self.kernel.between[t]:
                parts.append(Part(before=self.straight(self.kernel.between[t], known)))
            if effects:
                parts.append(self.row_part(t, effects, known))
        parts.append(Part(before=self.straight(self.kernel.between[-1], known)))
        return parts

    def row_ends(self, known: dict[int, Scalar]) -> list[Part]:
        """What a map writes once for each of its innermost loops; see edges.py."""
        ends = self.kernel.between[-1]
        return [Part(before=self.straight(ends, known))] if ends else []

    def map_part(self, known: dict[int, Scalar]) -> Part:
        nest = self.nest
        effects = self.kernel.passes[0]
        if not nest.loops:
            return Part(before=self.capture(lambda: need_abreast(self, effects, known)))
        d = len(nest.loops) - 1
        loop = self.plain(d, ".a" if nest.tiled else "")
        if self.flat:
            loop.low, loop.high = "%lo", "%hi"
        if nest.tiled:
            loop.low, loop.high = f"%low{d}", f"%top{d}"
        loop.metadata = self.vectorised(nest.loops[-1])
        before = self.hoisted(effects, known, [d])
        loop.body = self.straight(effects, dict(known))
        return Part(before, [loop])

    # -- rows ------------------------------------------------------------------------------

    def row_part(self, t: int, effects: list[int], known: dict[int, Scalar]) -> Part:
        """One pass over a row: loops over its dimensions, partial results carried by each."""
        nest = self.nest
        dims = list(range(nest.outer, len(nest.loops)))
        before = self.hoisted(effects, known, dims)
        folds = [i for i in effects if self.kernel.instrs[i].kind == FOLD]
        loops = [self.plain(d, f".{t}") for d in dims]
        self.cut(loops[0])
        inside = dict(known)
        for k in range(len(dims) - 1):
            loops[k].body = self.hoisted(effects, inside, dims[k + 1 :])
        last = loops[-1]
        nexts: dict[int, str] = {}
        operands = [self.kernel.instrs[i].operands[0] for i in folds]
        last.body = self.capture(lambda: self.need(operands, inside))  # type: ignore
        last.body += self.capture(lambda: self.fold(last, folds, inside, nexts))
        last.body += self.straight([i for i in effects if i not in folds], inside)
        last.metadata = self.vectorised(nest.loops[-1])
        if self.long_sums(folds):
            loops = [block for d, loop in zip(dims, loops) for block in (
                *self.blocks(loop, steps(self.turns(d), SIDE_BY_SIDE if loop is last else BLOCK)),
                loop)]  # fmt: skip
        self.carry(self.s, loops, loops, folds, nexts, {})
        after = self.capture(lambda: self.finish(folds, loops[0], known))
        return Part(before, loops, after)

    def cut(self, loop: Loop) -> None:
        """The first reduced loop runs over a piece only, if there are pieces."""
        if self.nest.pieces > 1:
            loop.low, loop.high = "%first", "%last"

    def running(self, i: int, loop: Loop) -> Scalar:
        return self.s.argument(f"%a{i}.{loop.name}", self.kernel.instrs[i].dtype)

    def fold(self, loop: Loop, folds: list[int], known: dict[int, Scalar],
             nexts: dict[int, str]) -> None:  # fmt: skip
        for i in folds:
            instr = self.kernel.instrs[i]
            x = known[instr.operands[0]]  # type: ignore[index]
            total = self.s.combine(instr.node, self.running(i, loop), x)  # type: ignore[arg-type]
            nexts[i] = total.value.text

    def finish(self, folds: list[int], loop: Loop, known: dict[int, Scalar]) -> None:
        for i in folds:
            known[i] = self.s.rounded(self.running(i, loop), self.kernel.instrs[i].dtype)


def emit(nest: Nest, buffer_of: Any, target: Target = DEFAULT) -> Emitted:
    """The text and launch of a nest: in vectors where they serve, else for LLVM's vectoriser."""
    from .emit_vector import VectorEmission
    from .vectors import can_vectorise

    if can_vectorise(nest):
        return VectorEmission(nest, buffer_of, target).emit()
    return Emission(nest, buffer_of, target).emit()
