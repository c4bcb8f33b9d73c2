"""Column form: reductions whose results lie side by side.

A turn takes a block of columns. Partial results, and other values per column that a pass over the
rows needs, are kept in scratch arrays of one block; the innermost loop runs along the columns and
is vectorised whatever the reduction is, because its turns are independent.
"""

from __future__ import annotations

from typing import Any

from .emit import Emission
from .kernel import FOLD, STORE
from .nest import COLUMNS
from .render import environment
from .scalar import REGISTER, Scalar
from .skeleton import Loop, Part

ROWS = 256  # rows added up before the partial sums are


def render_part(part: Part) -> str:
    """The text of loops that stand inside another loop's lines."""
    return environment().get_template("nest_loops.ll.j2").module.nest(part)


class ColumnEmission(Emission):
    """Emits one nest in column form."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.column = self.nest.outer - 1
        self.scratch: dict[int, str] = {}
        self.places = 0

    def outer_loops(self) -> list[Loop]:
        nest = self.nest
        first = Loop("turn", "%lo", "%hi")
        blocks = -(-nest.loops[self.column] // COLUMNS)
        first.body = self.unravel("%turn", (*nest.loops[: self.column], blocks))
        first.body += (
            f"  %c0 = mul i64 {self.index[self.column]}, {COLUMNS}\n"
            f"  %c.left = sub i64 {self.number(nest.loops[self.column])}, %c0\n"
            f"  %width = call i64 @llvm.smin.i64(i64 %c.left, i64 {COLUMNS})\n"
        )
        return [first]

    def across(self) -> Loop:
        """A loop along the block of columns."""
        self.places += 1
        name = f"j{self.places}"
        self.index[self.column] = f"%{name}.c"
        return Loop(name, "0", "%width", body=f"  %{name}.c = add i64 %c0, %{name}\n",
                    metadata=self.vectorised(self.nest.loops[self.column]))  # fmt: skip

    def parts(self) -> list[Part]:
        known: dict[int, Scalar] = {}
        parts = []
        for t, effects in enumerate(self.kernel.passes):
            kept = self.per_column(effects)
            parts += self.section(t, self.kernel.between[t], kept, known)
            if effects:
                parts += self.pass_over(t, effects, known)
        return parts + self.section(len(self.kernel.passes), self.kernel.between[-1], [], known)

    def per_column(self, effects: list[int]) -> list[int]:
        """Values per column that a pass uses in its loops."""
        inner = set(range(self.nest.outer, len(self.nest.loops)))
        found = set()
        for i in self.closure(effects, {}):
            instr = self.kernel.instrs[i]
            if not self.nest.varies[i] & inner and instr.kind not in (STORE, FOLD):
                continue
            for o in instr.operands:
                if o is not None and self.column in self.nest.varies[o] and (
                        not self.nest.varies[o] & inner):  # fmt: skip
                    found.add(o)
        return sorted(found)

    # -- scratch arrays --------------------------------------------------------------------

    def array(self, i: int, tag: str = "s") -> str:
        kind = REGISTER[self.kernel.instrs[i].dtype].replace("i1", "i8")
        kind = "i8" if self.kernel.instrs[i].dtype == "bool" else kind
        name = f"%{tag}{i}"
        self.head += f"  {name} = alloca [{COLUMNS} x {kind}], align 64\n"
        return name

    def place(self, array: str, i: int, loop: Loop) -> tuple[str, str]:
        kind = "i8" if self.kernel.instrs[i].dtype == "bool" else REGISTER[
            self.kernel.instrs[i].dtype]  # fmt: skip
        return self.lineout(f"getelementptr inbounds {kind}, ptr {array}, i64 %{loop.name}"), kind

    def put(self, array: str, i: int, loop: Loop, x: Scalar) -> None:
        at, kind = self.place(array, i, loop)
        value = self.s.to_memory(x) if x.dtype == "bool" else x.value
        self.s.m.effect(f"store {kind} {value.text}, ptr {at}")

    def get(self, array: str, i: int, loop: Loop) -> Scalar:
        at, kind = self.place(array, i, loop)
        dtype = self.kernel.instrs[i].dtype
        raw = self.s.m.emit(f"load {kind}, ptr {at}", kind)
        return self.s.from_memory(raw, dtype) if dtype == "bool" else Scalar(raw, dtype)

    def recall(self, wanted: list[int], loop: Loop, known: dict[int, Scalar]) -> None:
        """Loads those of the wanted values that are in scratch arrays."""
        for i in wanted:
            if i in self.scratch and i not in known:
                known[i] = self.get(self.scratch[i], i, loop)

    # -- parts -----------------------------------------------------------------------------

    def section(self, t: int, stores: list[int], kept: list[int], known: dict[int, Scalar],
                ) -> list[Part]:  # fmt: skip
        """Between passes: stores per column, and values that the next pass reads."""
        wanted = [*stores, *(i for i in kept if i not in self.scratch)]
        if not wanted:
            return []
        before = self.hoisted(wanted, known, [self.column])
        loop = self.across()
        inside = dict(known)
        fresh = [i for i in kept if i not in self.scratch]
        names = {i: self.array(i) for i in fresh}

        def body() -> None:
            self.recall(self.reached(wanted), loop, inside)
            self.need(wanted, inside)
            for i in fresh:
                self.put(names[i], i, loop, inside[i])

        loop.body += self.capture(body)
        self.scratch.update(names)
        return [Part(before, [loop])]

    def reached(self, wanted: list[int]) -> list[int]:
        """Scratch values that computing the wanted ones needs, and not what those came from."""
        found, queue, seen = [], list(wanted), set()
        while queue:
            i = queue.pop()
            if i in seen:
                continue
            seen.add(i)
            if i in self.scratch:
                found.append(i)
                continue
            queue += [o for o in self.kernel.instrs[i].operands if o is not None]
        return sorted(found)

    def pass_over(self, t: int, effects: list[int], known: dict[int, Scalar]) -> list[Part]:
        nest = self.nest
        folds = [i for i in effects if self.kernel.instrs[i].kind == FOLD]
        dims = list(range(nest.outer, len(nest.loops)))
        before = self.hoisted(self.minus_scratch(effects), known, [self.column, *dims])
        sums = {i: self.array(i, f"a{t}.") for i in folds}
        parts = [self.fill(sums, before)] if folds else [Part(before)]
        blocked = bool(folds) and nest.loops[dims[0]] > 2 * ROWS
        totals = {i: self.array(i, f"t{t}.") for i in folds} if blocked else sums
        if blocked:
            parts.append(self.fill(totals, ""))
        loops = [self.plain(d, f".{t}") for d in dims]
        self.cut(loops[0])
        inside = dict(known)
        for k in range(len(dims)):
            rest = [self.column, *dims[k + 1 :]]
            loops[k].body = self.hoisted(self.minus_scratch(effects), inside, rest)
        loops.append(self.inner_loop(effects, folds, sums, inside))
        if blocked:
            parts += self.in_blocks(loops, sums, totals, t)
        else:
            parts.append(Part("", loops))
        self.scratch.update(totals)
        return parts

    def minus_scratch(self, effects: list[int]) -> list[int]:
        """What the effects need, without what comes from scratch arrays and its causes."""
        found, queue = set(), list(effects)
        while queue:
            i = queue.pop()
            if i in found or i in self.scratch:
                continue
            found.add(i)
            queue += [o for o in self.kernel.instrs[i].operands if o is not None]
        return [i for i in sorted(found) if self.kernel.instrs[i].kind not in (STORE, FOLD)]

    def inner_loop(self, effects: list[int], folds: list[int], sums: dict[int, str],
                   known: dict[int, Scalar]) -> Loop:  # fmt: skip
        loop = self.across()
        inside = dict(known)

        def body() -> None:
            operands = [self.kernel.instrs[i].operands[0] for i in folds]
            stores = [i for i in effects if i not in folds]
            self.recall(self.reached([*operands, *stores]), loop, inside)  # type: ignore
            self.need(operands, inside)  # type: ignore[arg-type]
            for i in folds:
                instr = self.kernel.instrs[i]
                total = self.get(sums[i], i, loop)
                x = inside[instr.operands[0]]  # type: ignore[index]
                self.put(sums[i], i, loop, self.s.combine(instr.node, total, x))
            self.need(stores, inside)

        loop.body += self.capture(body)
        return loop

    def fill(self, arrays: dict[int, str], before: str) -> Part:
        """Sets partial results to what they start from."""
        loop = self.across()

        def body() -> None:
            for i, array in arrays.items():
                start = self.s.start(self.kernel.instrs[i].node)  # type: ignore[arg-type]
                self.put(array, i, loop, start)

        loop.body += self.capture(body)
        return Part(before, [loop])

    def in_blocks(self, loops: list[Loop], sums: dict[int, str], totals: dict[int, str],
                  t: int) -> list[Part]:  # fmt: skip
        """The pass in blocks of rows; after each, partial sums go to the totals."""
        name = f"block.{t}"
        block = Loop(name, loops[0].low, loops[0].high, str(ROWS))
        block.body = (
            f"  %{name}.end = add i64 %{name}, {ROWS}\n"
            f"  %{name}.top = call i64 @llvm.smin.i64(i64 %{name}.end, i64 {loops[0].high})\n"
        )
        loops[0].low, loops[0].high = f"%{name}", f"%{name}.top"
        adding = self.across()

        def body() -> None:
            for i, array in sums.items():
                node = self.kernel.instrs[i].node
                total = self.s.combine(node, self.get(totals[i], i, adding),
                                       self.get(array, i, adding))  # fmt: skip
                self.put(totals[i], i, adding, total)
                self.put(array, i, adding, self.s.start(node))  # type: ignore[arg-type]

        adding.body += self.capture(body)
        block.after = render_part(Part("", [adding]))
        return [Part("", [block, *loops])]
