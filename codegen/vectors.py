"""Vector code for nests: what runs along the vectorised loop is emitted as LLVM vectors.

Emitting vectors ourselves, and not by LLVM's loop vectoriser, leaves LLVM little to optimise, so a
kernel compiles several times faster; and partial results have a shape that is ours. A wide vector
(four registers or two) gives independent instructions to overlap. What is left at the end of the
loop is done by one register at a time with a mask, or one by one where memory has no masks.

Two uses. In map and row form the innermost loop is the vector's (`axis`), results of a reduction
are reduced to one number at its end. In column form the axis is the last loop that is not reduced:
everything per column is a vector in registers, through all passes over the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .classify import COSTLY, cost
from .epilogue import Site
from .kernel import APPLY, CHECK, COORDINATE, FOLD, LOAD, MODIFY, STORE, TALLY, Kernel
from .lines import Lines, is_literal
from .nest import Nest, arrange
from .reader import KernelReader, evaluate
from .scalar import ITEMSIZE, MEMORY, REGISTER, Scalar
from .streams import MARK, streamed
from .target import Target

MASKED = ("float", "double", "i32", "i64")  # elements that masked loads and stores are fast for
HEAVY, HUGE = 60, 160  # weights of a body that is emitted two registers wide, or one
KEPT_ROW = 1 << 13  # elements of a row that is kept on the stack
NEAR = 4  # strides up to this are loaded whole and picked from
# Runs below this length, of this weight per element at most, and so many elements in all, are left
# to LLVM's vectoriser (im2col of LeNet's layers: 3 and 8 times faster).
SHORT_RUN, PLAIN, MANY = 32, 8, 1 << 15
SHORT = 4  # vectors of a row that ends evenly if it can: masked stores take as long as many others
FOLDS = 3  # reductions side by side that leave registers for wide vectors


def axis_of(nest: Nest) -> int:
    return nest.outer - 1 if nest.form == "column" else len(nest.loops) - 1


def suited(kernel: Kernel) -> Nest:
    """The kernel's nest in a form that can be emitted: columns only in vectors."""
    nest = arrange(kernel)
    if nest.form == "column" and not can_vectorise(nest):
        return arrange(kernel, columns=False)
    return nest


def can_vectorise(nest: Nest) -> bool:
    """Not where elements are found through indices along the axis, or written one after another,
    nor where many short runs are copied: masks would take longer than the elements."""
    if not nest.loops or nest.tiled:
        return False
    short = nest.form == "map" and len(nest.loops) > 1 and nest.loops[-1] < SHORT_RUN
    axis = axis_of(nest)
    if short and nest.kernel.points > MANY and weight_along(nest, axis) <= PLAIN:
        return False
    for i, instr in enumerate(nest.kernel.instrs):
        if instr.kind == MODIFY:
            return False
        if instr.kind == CHECK and axis in nest.varies[i]:
            return False
        found = instr.access.dynamic if instr.access is not None else ()
        if any(axis in nest.varies[o] for _, o in found):
            return False
    return True


def weight_along(nest: Nest, axis: int) -> int:
    """Cost per element, roughly: of what varies along the axis."""
    instrs = zip(nest.kernel.instrs, nest.varies)
    return sum(instr.weight for instr, loops in instrs if axis in loops)


class Vectors(Lines):
    """Lines of scalars and of vectors, mixed: `known` has scalars, `vec` vectors of one width."""

    def __init__(self, nest: Nest, buffer_of: Any, target: Target):
        super().__init__(nest, buffer_of, target)
        self.axis = axis_of(nest)
        self.register = target.lanes("float")
        self.wide = self.lanes()
        self.streamed = streamed(nest, self.axis, self.wide, buffer_of, target)
        self.v: KernelReader = self.s
        self.mask: str | None = None
        self.begun: dict[int, tuple[str, frozenset[int]]] = {}
        self.kept: dict[int, str] = {}  # values of a row that an earlier pass has put in scratch

    def lanes(self) -> int:
        """How wide the main loop's vectors are."""
        kernel, strides = self.kernel, self.nest.strides
        weight = kernel.weight()
        crossed = any(abs(strides[i][self.axis]) > 1 for i, instr in enumerate(kernel.instrs)
                      if instr.access is not None)  # fmt: skip
        folds = max(sum(kernel.instrs[i].kind == FOLD for i in p) for p in kernel.passes)
        if crossed or weight > HUGE or (self.nest.form == "column" and folds > FOLDS):
            return self.register
        return self.even(self.register * (2 if weight > HEAVY or folds > FOLDS else 4))

    def even(self, most: int) -> int:
        """Narrower vectors for short rows of a map, if they leave nothing for masks."""
        size, lanes = self.nest.loops[self.axis], most
        if self.nest.form != "map" or len(self.nest.loops) == 1 or size >= SHORT * most:
            return most
        while size % lanes and lanes > self.register:
            lanes //= 2
        return most if size % lanes else lanes

    def tail_lanes(self) -> int:
        """Lanes of the loop over what is left: a register with a mask, or 1."""
        found = {MEMORY[i.access.var.dtype.name] for i in self.kernel.instrs if i.access}
        return self.register if found <= set(MASKED) else 1

    def site(self, x: Any = None) -> Site:
        return Site(self.v, x, "", "", "", self.mask or self.v.m.lanes, False)

    # -- lines -----------------------------------------------------------------------------

    def along(self, i: int) -> bool:
        """Does the instruction vary along the axis?"""
        return self.axis in self.nest.varies[i]

    def open(self, wanted: Iterable[int], known: dict[int, Scalar], vec: dict[int, Scalar],
             ) -> list[int]:  # fmt: skip
        """The wanted instructions and all they need that is not there yet, in order."""
        found: set[int] = set()
        queue = list(wanted)
        while queue:
            i = queue.pop()
            if i in found or i in known or i in vec:
                continue
            found.add(i)
            if i in self.kept:
                continue
            queue += [o for o in self.kernel.instrs[i].operands if o is not None]
        return sorted(found)

    def vneed(self, wanted: Iterable[int], known: dict[int, Scalar], vec: dict[int, Scalar],
              ) -> None:  # fmt: skip
        for i in self.open(wanted, known, vec):
            if self.along(i):
                with self.v.at(i):
                    vec[i] = self.vline(i, known, vec)
            else:
                with self.s.at(i):
                    known[i] = self.line(i, known)

    def prepare(self, effects: list[int], known: dict[int, Scalar], vec: dict[int, Scalar],
                inside: Iterable[int]) -> None:  # fmt: skip
        """What the effects need and does not vary with the loops `inside`, and beginnings of
        addresses there."""
        varying = frozenset(inside)
        kinds = (STORE, FOLD, TALLY)
        needed = self.open(effects, known, vec)
        early = [i for i in needed if not self.nest.varies[i] & varying
                 and self.kernel.instrs[i].kind not in kinds]  # fmt: skip
        self.vneed(early, known, vec)
        for i in needed:
            if self.kernel.instrs[i].access is not None and i not in known and i not in vec:
                self.begin(i, known, varying)
            if not self.nest.varies[i] & varying and self.kernel.instrs[i].kind not in kinds:
                continue
            for o in self.kernel.instrs[i].operands:
                if o in known and self.along(i) and not is_literal(self.kernel.instrs[o]):
                    self.vector(o, known, vec)

    def vector(self, i: int, known: dict[int, Scalar], vec: dict[int, Scalar]) -> Scalar:
        """The value in every lane."""
        if i not in vec:
            vec[i] = self.spread(known[i])
        return vec[i]

    def spread(self, x: Scalar) -> Scalar:
        m, element = self.v.m, x.value.element
        if m.lanes == 1 or x.value.constant is not None:
            return x if m.lanes == 1 else self.v.const(x.value.constant, x.dtype)  # type: ignore
        kind = m.type(element)
        first = m.emit(f"insertelement {kind} poison, {element} {x.value.text}, i32 0", element)
        zeros = f"<{m.lanes} x i32> zeroinitializer"
        text = f"shufflevector {kind} {first.text}, {kind} poison, {zeros}"
        return Scalar(m.emit(text, element), x.dtype)

    def vline(self, i: int, known: dict[int, Scalar], vec: dict[int, Scalar]) -> Scalar:
        instr = self.kernel.instrs[i]
        if i in self.kept:
            return self.recall(i)
        if instr.kind == LOAD:
            stride, at = self.nest.strides[i][self.axis], self.pointer(i, known)
            if stride == 1 or self.v.m.lanes == 1:
                return self.site().load_at(at, instr.dtype)
            if 1 < stride <= NEAR and self.mask is None:
                return self.every(stride, at, instr.dtype)
            return self.site()._gather(at, instr.dtype, stride)
        if instr.kind == STORE:
            value = self.operand(instr.operands[0], known, vec)
            self.vstore(i, value, self.pointer(i, known))
            return value
        if instr.kind == TALLY:
            return self.tally(i, self.operand(instr.operands[0], known, vec), known)
        if instr.kind == COORDINATE:
            return self.count_up(self.coordinate(i, known), self.nest.strides[i][self.axis])
        assert instr.kind == APPLY, f"{instr.kind} out of place"
        operands = [None if o is None else self.operand(o, known, vec) for o in instr.operands]
        return evaluate(self.v, instr, operands)

    def tally(self, i: int, x: Scalar, known: dict[int, Scalar]) -> Scalar:
        """Adds to the line of the chunk, which its first row finds empty."""
        instr, at = self.kernel.instrs[i], self.pointer(i, known)
        total = self.site().load_at(at, instr.dtype)
        x = self.v.cast(x, total.dtype)
        total = self.v.combine(instr.node, total, x)  # type: ignore[arg-type]
        self.site().store_at(total, at)
        return total

    # -- rows kept between passes ----------------------------------------------------------

    def worth_keeping(self, passes: list[list[int]]) -> dict[int, int]:
        """Costly values of a row that several passes use, and the first of these."""
        first: dict[int, int] = {}
        again: dict[int, int] = {}
        for t, effects in enumerate(passes):
            for i in self.open(effects, {}, {}):
                if i in first and first[i] < t:
                    again.setdefault(i, first[i])
                first.setdefault(i, t)
        instrs = self.kernel.instrs
        costly = {i: t for i, t in again.items() if instrs[i].kind == APPLY and self.along(i)
                  and cost(instrs[i].node) >= COSTLY and instrs[i].dtype != "bool"}  # fmt: skip
        return costly if self.nest.loops[self.axis] <= KEPT_ROW else {}

    def keep(self, i: int, x: Scalar) -> None:
        """Puts a vector of a row into scratch, which has room for what a mask would leave out."""
        at, kind = self.scratch_place(i)
        self.v.m.effect(f"store {kind} {x.value.text}, ptr {at}, align 4")

    def recall(self, i: int) -> Scalar:
        at, kind = self.scratch_place(i)
        element = REGISTER[self.kernel.instrs[i].dtype]
        value = self.v.m.emit(f"load {kind}, ptr {at}, align 4", element)
        return Scalar(value, self.kernel.instrs[i].dtype)

    def scratch_place(self, i: int) -> tuple[str, str]:
        element, name = REGISTER[self.kernel.instrs[i].dtype], f"%kept{i}"
        if f"{name} =" not in self.head:
            room = self.word("room", self.nest.loops[self.axis] + 64)
            self.head += f"  {name} = alloca {element}, i64 {room}, align 64\n"
        index = self.index[self.axis]
        at = self.lineout(f"getelementptr inbounds {element}, ptr {name}, i64 {index}")
        return at, self.v.m.type(element)

    def every(self, stride: int, at: str, dtype: str) -> Scalar:
        """Elements a little apart: all between them are loaded, which is cheaper than a gather."""
        m, memory = self.v.m, MEMORY[dtype]
        count = (m.lanes - 1) * stride + 1
        wide = f"<{count} x {memory}>"
        name = self.lineout(f"load {wide}, ptr {at}, align {ITEMSIZE[memory]}")
        picked = ", ".join(f"i32 {k * stride}" for k in range(m.lanes))
        text = f"shufflevector {wide} {name}, {wide} poison, <{m.lanes} x i32> <{picked}>"
        return self.v.from_memory(m.emit(text, memory), dtype)

    def operand(self, o: Any, known: dict[int, Scalar], vec: dict[int, Scalar]) -> Scalar:
        instr = self.kernel.instrs[o]
        if is_literal(instr):
            return evaluate(self.v, instr, [])
        return vec[o] if o in vec else self.vector(o, known, vec)

    def count_up(self, first: Scalar, step: int) -> Scalar:
        """first, first + step ... along the lanes."""
        m = self.v.m
        if m.lanes == 1:
            return first
        base = self.spread(first).value
        steps = "<" + ", ".join(f"i64 {k * step}" for k in range(m.lanes)) + ">"
        return Scalar(m.emit(f"add {m.type('i64')} {base.text}, {steps}", "i64"), "int64")

    def vstore(self, i: int, value: Scalar, at: str) -> None:
        stride, m = self.nest.strides[i][self.axis], self.v.m
        if i in self.streamed and m.lanes == self.wide and self.mask is None:
            self.v.store(value, at, MARK)
            return
        if stride == 1 or m.lanes == 1:
            self.site().store_at(value, at)
            return
        raw = self.v.to_memory(value)
        steps = ", ".join(f"i64 {k * stride}" for k in range(m.lanes))
        text = f"getelementptr {raw.element}, ptr {at}, <{m.lanes} x i64> <{steps}>"
        pointers = m.emit(text, "ptr")
        kind, align = m.type(raw.element), self.kernel.instrs[i].access.var.dtype.itemsize  # type: ignore
        m.effect(
            f"call void @llvm.masked.scatter.{m.suffix(raw.element)}.v{m.lanes}p0({kind} "
            f"{raw.text}, <{m.lanes} x ptr> align {align} {pointers.text}, "
            f"{m.type('i1')} {self.site().mask()})"
        )

    # -- addresses -------------------------------------------------------------------------

    def begin(self, i: int, known: dict[int, Scalar], inside: frozenset[int]) -> None:
        """The part of an address that the loops `inside` do not change."""
        ready = frozenset(d for d in range(len(self.nest.loops)) if d not in inside)
        if any(o not in known for _, o in self.kernel.instrs[i].access.dynamic):  # type: ignore
            return
        done = self.begun.get(i, ("", frozenset()))[1]
        if any(self.nest.strides[i][d] for d in ready - done) or i not in self.begun:
            self.begun[i] = self.address(i, known, ready), ready

    def address(self, i: int, known: dict[int, Scalar], loops: frozenset[int]) -> str:
        instr = self.kernel.instrs[i]
        assert instr.access is not None
        at, done = self.begun.get(i, ("", frozenset()))
        memory = MEMORY[instr.access.var.dtype.name]
        terms = [(self.index[d], stride) for d, stride in enumerate(self.nest.strides[i])
                 if stride and d in loops and d not in done]  # fmt: skip
        if not at:
            at = self.base(instr)
            terms += [(known[k].value.text, stride) for stride, k in instr.access.dynamic]
        for index, stride in terms:
            by = self.times(index, stride)
            at = self.lineout(f"getelementptr inbounds {memory}, ptr {at}, i64 {by}")
        return at

    def pointer(self, i: int, known: dict[int, Scalar]) -> str:
        return self.address(i, known, frozenset(range(len(self.nest.loops))))

    def times(self, index: str, stride: int) -> str:
        if stride == 1:
            return index
        return self.lineout(f"mul nsw i64 {index}, {self.number(stride)}")

    # -- reductions ------------------------------------------------------------------------

    def narrowed(self, i: int, x: Scalar, lanes: int) -> Scalar:
        """Partial results of a fold in fewer lanes: halves are combined until it is so."""
        node, have = self.kernel.instrs[i].node, x.value.emitter.lanes
        while have > lanes:
            have //= 2
            reader, element = self.reader(have), x.value.element
            wide = f"<{2 * have} x {element}> {x.value.text}"
            halves = []
            for first in (0, have):
                if have == 1:
                    text = f"extractelement {wide}, i32 {first}"
                else:
                    lanes_ = ", ".join(f"i32 {first + k}" for k in range(have))
                    poison = f"<{2 * have} x {element}> poison"
                    text = f"shufflevector {wide}, {poison}, <{have} x i32> <{lanes_}>"
                halves.append(Scalar(reader.m.emit(text, element), x.dtype))
            x = reader.combine(node, halves[0], halves[1])  # type: ignore[arg-type]
        return x

    def folded(self, i: int, total: Scalar, x: Scalar) -> Scalar:
        """One more vector in a running result; masked lanes do not count."""
        node = self.kernel.instrs[i].node
        assert node is not None
        if self.mask is not None:
            start = self.v.start(node)
            x = self.v.cast(x, total.dtype)
            m = self.v.m
            x = Scalar(m.select(m.argument(self.mask, "i1"), x.value, start.value), x.dtype)
        return self.v.combine(node, total, x)
