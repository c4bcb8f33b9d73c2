"""Long sums in blocks: the loops around a reduction, and what they carry.

Note [Cascaded sums]
    The error of a sum grows with the number of terms that are added one after the other. So a loop
    over many terms is cut into blocks of `BLOCK`, loops over many blocks into blocks of those, and
    so on: each loop starts from nothing and is added to the one around it when it ends. Between
    2 and 4 such loops make every sum about as exact as one of pairs of halves, and all but the
    innermost take next to no time. Where the reduced loops are several, short ones inside count as
    one with the loop around them. How loops are cut depends on sizes alone, so the bits do not
    depend on the number of threads. Maxima, products and sums of integers are not cut: their
    errors, if any, do not depend on the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..ir.scalar import FLOATS
from .kernel import Instr
from .lines import Lines
from .reader import KernelReader
from .scalar import REGISTER, Scalar
from .skeleton import Carried, Loop

BLOCK = 16  # terms, or partial sums, that are added one after the other; at most twice as many


def is_sum(instr: Instr) -> bool:
    """Does the order of a reduction change the size of its error?"""
    return instr.dtype in FLOATS and instr.node.op.lower.start == 0  # type: ignore[union-attr]


def steps(turns: int, first: int = BLOCK) -> list[int]:
    """Turns per block of the loops around a long one, outermost first; `first` of the last."""
    found = [first] if turns > 2 * first or first == 1 else []
    while found and -(-turns // found[0]) > 2 * BLOCK:
        found.insert(0, found[0] * BLOCK)
    return found


def chained(sizes: Sequence[int]) -> list[list[int]]:
    """For loops inside each other, how each is cut; a step of 1 is the loop itself.

    A loop that is not cut goes on with the sums of the loop around it: so short ones inside a long
    one do not start anew at each of its turns.
    """
    found: list[list[int]] = []
    chain = 1  # terms that the loops inside add one after the other
    for turns in reversed(sizes):
        if chain * turns <= 2 * BLOCK:
            found.append([])
            chain *= turns
            continue
        found.append(steps(turns, max(1, BLOCK // chain)))
        chain = -(-turns // found[-1][0])
    return found[::-1]


class Cascade(Lines):
    """Loops that carry partial results."""

    def turns(self, d: int) -> int:
        """Turns of a reduced loop; of its piece, if it is cut into pieces."""
        nest = self.nest
        return nest.piece if nest.pieces > 1 and d == nest.outer else nest.loops[d]

    def long_sums(self, folds: Iterable[int]) -> bool:
        return any(is_sum(self.kernel.instrs[i]) for i in folds)

    def blocks(self, loop: Loop, sizes: Sequence[int]) -> list[Loop]:
        """Loops over blocks around a loop, outermost first; it then runs over one block."""
        made = []
        for level, step in enumerate(sizes):
            name = f"{loop.name}.b{level}"
            block = Loop(name, loop.low, loop.high, str(step))
            block.body = (
                f"  %{name}.end = add i64 %{name}, {step}\n"
                f"  %{name}.top = call i64 @llvm.smin.i64(i64 %{name}.end, i64 {loop.high})\n"
            )
            loop.low, loop.high = f"%{name}", f"%{name}.top"
            made.append(block)
        return made

    def carry(self, v: KernelReader, loops: list[Loop], anew: Iterable[Loop], folds: list[int],
              nexts: dict[int, str], starts: Mapping[int, Scalar]) -> None:  # fmt: skip
        """Gives each loop running results. Loops that start `anew` are added to the one around
        them, others go on where it is; `nexts` is what the innermost one comes to. The outermost
        one begins with `starts`, or with nothing."""
        fresh = {id(loop) for loop in (loops[0], *anew)}
        for k, loop in enumerate(loops):
            inner = loops[k + 1] if k + 1 < len(loops) else None
            if inner is not None and id(inner) in fresh:
                ends = self.add_up(v, loop, inner, folds)
            else:
                ends = nexts if inner is None else {i: f"%a{i}.{inner.name}" for i in folds}
            for i in folds:
                node = self.kernel.instrs[i].node
                start = f"%a{i}.{loops[k - 1].name}"
                if id(loop) in fresh:
                    first = starts.get(i) if k == 0 else None
                    start = (first or v.start(node)).value.text  # type: ignore[arg-type]
                kind = v.m.type(REGISTER[self.kernel.instrs[i].dtype])
                loop.carried.append(Carried(f"%a{i}.{loop.name}", kind, start, ends[i]))

    def add_up(self, v: KernelReader, outer: Loop, inner: Loop, folds: list[int],
               ) -> dict[int, str]:  # fmt: skip
        """What the outer loop's results become when the inner loop ends."""
        ends: dict[int, str] = {}

        def add() -> None:
            for i in folds:
                dtype, node = self.kernel.instrs[i].dtype, self.kernel.instrs[i].node
                total, part = (v.argument(f"%a{i}.{loop.name}", dtype) for loop in (outer, inner))
                ends[i] = v.combine(node, total, part).value.text  # type: ignore[arg-type]

        outer.after += self.capture(add)
        return ends
