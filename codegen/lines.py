"""The lines of a kernel: instructions of a nest as LLVM text, and the words they need at run time.

Sizes and strides other than 0 and 1 are run-time words, so that kernels that differ in sizes only
have one text and are compiled once.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from ..ir.cached import cached_property
from . import indirect
from .kernel import (
    APPLY,
    CHECK,
    CONSTANT,
    COORDINATE,
    FOLD,
    LOAD,
    MODIFY,
    PIECE,
    STORE,
    Instr,
)
from .nest import Nest
from .reader import KernelReader, evaluate
from .scalar import MEMORY, Scalar
from .skeleton import Argument, Parameter, Part
from .target import DEFAULT, Target

LITERAL = 8  # sizes and strides up to this are written into the text
# Constants that may be run-time words: how a word is read, its bits' formats.
WORDS = {"float32": ("float", "<f", "<i"), "float64": ("double", "<d", "<q"),
         "int64": ("i64", "<q", "<q")}  # fmt: skip
STATUS_WORD = "status"  # as Argument.var: the address of the call's status word


def is_literal(instr: Instr) -> bool:
    """Is it a constant that is written into the text? Not one that looks like a size or one over
    a size, as the divisor of a mean: with the next batch it is another."""
    if instr.kind != CONSTANT:
        return False
    attributes = instr.node.attributes  # type: ignore[union-attr]
    value = attributes.get("value", attributes.get("fill_value"))
    if instr.dtype not in WORDS or not isinstance(value, int | float) or not 0 < value < 2**31:
        return True
    size = round(value if value >= 1 else 1 / value)
    return size <= LITERAL or value not in (size, 1 / size)


class Lines:
    """Emits the instructions of one nest; `buffer_of` tells which Vars share memory."""

    def __init__(self, nest: Nest, buffer_of: Any, target: Target = DEFAULT):
        self.nest, self.kernel, self.target = nest, nest.kernel, target
        self.buffer_of = buffer_of
        self.s = KernelReader("float32")
        self.readers: dict[int, KernelReader] = {1: self.s}
        self.parameters: list[Parameter] = []
        self.arguments: list[Argument] = []
        self.named: dict[Any, str] = {}
        self.index: dict[int, str] = {}
        self.count = 0
        self.marks: list[str] = []
        self.inner: list[Part] = []  # loops inside lines; see emit.Skeleton
        self.head = ""

    def reader(self, lanes: int) -> KernelReader:
        """The reader of vectors that wide; all of them add to the same lines."""
        if lanes not in self.readers:
            made = KernelReader("float32", lanes=lanes, prefix=f"w{lanes}.")
            made.m.lines, made.m.calls = self.s.m.lines, self.s.m.calls
            self.readers[lanes] = made
        return self.readers[lanes]

    # -- parameters ------------------------------------------------------------------------

    def parameter(self, key: Any, name: str, type_: str, argument: Argument) -> str:
        if key not in self.named:
            self.named[key] = f"{name}{len(self.parameters)}"
            self.parameters.append(Parameter(self.named[key], type_))
            self.arguments.append(argument)
        return f"%{self.named[key]}"

    def number(self, value: int) -> str:
        """A number known before the call: written out if small, else a run-time word."""
        if -LITERAL <= value <= LITERAL:
            return str(value)
        return self.parameter(value, "n", "i64", Argument(value))

    def word(self, role: str, value: int) -> str:
        """A number that says how work is cut: always a run-time word, one for each role, so that
        the text does not depend on which of them happen to be small or equal."""
        return self.parameter(role, "cut", "i64", Argument(value))

    def constant(self, instr: Instr) -> Scalar:
        """A constant that is no literal, as a run-time word."""
        attributes = instr.node.attributes  # type: ignore[union-attr]
        value = attributes.get("value", attributes.get("fill_value"))
        kind, packed, unpacked = WORDS[instr.dtype]
        value = int(value) if kind == "i64" else float(value)
        (bits,) = struct.unpack(unpacked, struct.pack(packed, value))
        at = self.parameter((instr.dtype, value), "size", kind, Argument(bits))
        return self.s.argument(at, instr.dtype)

    def base(self, instr: Instr) -> str:
        """The pointer an access starts from; its constant offset is part of the argument."""
        access = instr.access
        assert access is not None
        buffer = self.buffer_of(access.var)
        offset = access.offset * access.var.dtype.itemsize
        return self.parameter((buffer, offset), "b", "ptr", Argument(offset, access.var))

    # -- lines -----------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """Instructions by what a line may say it is for: their number, or their node's id."""
        instrs = enumerate(self.kernel.instrs)
        return {key: i for i, instr in instrs for key in (i, id(instr.node))}

    def capture(self, emit: Any) -> str:
        """The lines that `emit()` adds; `; %3` says that one is for instruction 3."""
        mark = len(self.s.lines)
        emit()
        marks = [self.numbers.get(line.op) for line in self.s.lines[mark:]]
        return "".join(f"  {line.text}{'' if i is None else f' ; %{i}'}\n"
                       for line, i in zip(self.s.lines[mark:], marks))  # fmt: skip

    def straight(self, wanted: Iterable[int], known: dict[int, Scalar]) -> str:
        """Lines for the wanted instructions and what they need and is not known yet."""
        return self.capture(lambda: self.need(wanted, known))

    def hoisted(self, effects: list[int], known: dict[int, Scalar], inside: list[int]) -> str:
        """Lines for what the effects need and does not vary with the loops `inside`."""
        varying = set(inside)
        found = [i for i in self.closure(effects, known)
                 if not self.nest.varies[i] & varying
                 and self.kernel.instrs[i].kind not in (STORE, MODIFY, FOLD)]  # fmt: skip
        return self.straight(found, known)

    def closure(self, wanted: Iterable[int], known: dict[int, Scalar]) -> list[int]:
        """The wanted instructions and all they need that is not known, in order."""
        found: set[int] = set()
        queue = list(wanted)
        while queue:
            i = queue.pop()
            if i in found or i in known:
                continue
            found.add(i)
            queue += [o for o in self.kernel.instrs[i].operands if o is not None]
        return sorted(found)

    def need(self, wanted: Iterable[int], known: dict[int, Scalar]) -> None:
        for i in self.closure(wanted, known):
            with self.s.at(i):
                known[i] = self.line(i, known)

    def line(self, i: int, known: dict[int, Scalar]) -> Scalar:
        instr = self.kernel.instrs[i]
        if instr.kind == LOAD:
            return self.s.load(self.pointer(i, known), instr.dtype)
        if instr.kind == STORE:
            value = known[instr.operands[0]]  # type: ignore[index]
            self.s.store(value, self.pointer(i, known))
            return value
        if instr.kind == MODIFY:
            return self.modify(i, known)
        if instr.kind == COORDINATE:
            return self.coordinate(i, known)
        if instr.kind == CONSTANT and not is_literal(instr):
            return self.constant(instr)
        if instr.kind in (APPLY, CONSTANT):
            operands = [None if o is None else known[o] for o in instr.operands]
            return evaluate(self.s, instr, operands)
        if instr.kind == PIECE:
            return self.s.argument("%piece", "int64")
        assert instr.kind == CHECK, f"{instr.kind} out of place"
        return self.checked(instr, known[instr.operands[0]])  # type: ignore[index]

    def modify(self, i: int, known: dict[int, Scalar]) -> Scalar:
        """Adds to an element in memory, or replaces it."""
        instr = self.kernel.instrs[i]
        at, value = self.pointer(i, known), known[instr.operands[0]]  # type: ignore[index]
        if instr.node.attributes["add"]:  # type: ignore[union-attr]
            value = self.s.add(self.s.load(at, instr.dtype), value)
        self.s.store(value, at)
        return value

    def checked(self, instr: Instr, raw: Scalar) -> Scalar:
        """An index; one out of range sets the status and becomes 0."""
        s, m = self.s, self.s.m
        index, wraps = s.cast(raw, "int64").value, indirect.wraps(instr.node)  # type: ignore[arg-type]
        if instr.sure and not wraps:
            return Scalar(index, "int64")
        size = m.argument(self.number(instr.limit), "i64")
        if wraps:
            index = m.select(index < 0, index + size, index)
        if instr.sure:
            return Scalar(index, "int64")
        status = self.parameter("status", "b", "ptr", Argument(0, STATUS_WORD))
        if "nowhere" not in self.head:
            self.head += "  %nowhere = alloca i64, align 8\n"
        bad = m.compare("uge", index, size)
        kind = 2 if indirect.BOUND.get(instr.node.op.name) else 1  # type: ignore[union-attr]
        at = self.lineout(f"select i1 {bad.text}, ptr {status}, ptr %nowhere")
        m.effect(f"store i64 {kind}, ptr {at}, align 8")
        return Scalar(m.select(bad, 0, index), "int64")

    def scratch_name(self) -> str:
        self.count += 1
        return f"%x{self.count}"

    def lineout(self, text: str) -> str:
        name = self.scratch_name()
        self.s.m.effect(f"{name} = {text}")
        return name

    def pointer(self, i: int, known: dict[int, Scalar]) -> str:
        """The address of an access, from the outer loops in, so that LLVM can hoist its parts."""
        instr = self.kernel.instrs[i]
        assert instr.access is not None
        at, memory = self.base(instr), MEMORY[instr.access.var.dtype.name]
        terms = [(self.index[d], stride) for d, stride in enumerate(self.nest.strides[i]) if stride]
        for stride, which in instr.access.dynamic:
            terms.append((known[which].value.text, stride))
        for index, stride in terms:
            by = (
                index
                if stride == 1
                else self.lineout(f"mul nsw i64 {index}, {self.number(stride)}")
            )
            at = self.lineout(f"getelementptr inbounds {memory}, ptr {at}, i64 {by}")
        return at

    def times(self, index: str, stride: int) -> str:
        """index * stride; a stride of the vectorised loop is written out, else LLVM would make
        another copy of the loop for the case that it is 1."""
        if stride == 1:
            return index
        literal = index == self.index.get(len(self.nest.loops) - 1) or index.startswith("%j")
        by = str(stride) if literal else self.number(stride)
        return self.lineout(f"mul nsw i64 {index}, {by}")

    def coordinate(self, i: int, known: dict[int, Scalar]) -> Scalar:
        expr = self.kernel.instrs[i].expr
        assert expr is not None
        total = self.number(expr.offset)
        terms = [(self.index[d], stride) for d, stride in enumerate(self.nest.strides[i]) if stride]
        for (stride, _), which in zip(expr.dynamic, self.kernel.instrs[i].operands):
            terms.append((known[which].value.text, stride))  # type: ignore[index]
        for index, stride in terms:
            by = (
                index
                if stride == 1
                else self.lineout(f"mul nsw i64 {index}, {self.number(stride)}")
            )
            total = self.lineout(f"add nsw i64 {total}, {by}")
        return self.s.argument(total, "int64")
