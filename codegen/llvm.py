"""Typed LLVM instructions from Python expressions: what math functions and readers are written in.

An `Emitter` collects the lines of one straight piece of code. Values know their element type
("float", "double", "i1" ... "i64"); the emitter knows the number of lanes, so the same Python
text gives scalar code (for the loop vectoriser) and explicit vectors.

Invariants:
- Element types of operands agree; a Python number takes the type of the value it meets.
- No fast-math flags: NaN, infinities and -0.0 keep their IEEE meaning.
- Intrinsics are not declared: LLVM 20+ declares those it meets. So texts can be concatenated.
- Names start with the emitter's prefix, so lines of several emitters fit into one function.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
MANTISSA = {"float": 23, "double": 52}
BIAS = {"float": 127, "double": 1023}
INTEGER_OF = {"float": "i32", "double": "i64"}
FLOAT_OF = {"i32": "float", "i64": "double"}
SHORT = {"half": "f16", "float": "f32", "double": "f64"}

_FLOAT_OPS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def float_literal(value: float, element: str = "double") -> str:
    """LLVM's exact text of a float constant: the bits of the double of the same value."""
    with np.errstate(over="ignore"):  # too large is infinite
        if element == "float":
            value = float(np.float32(value))
        elif element == "half":
            value = float(np.float16(value))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def int_literal(value: int, element: str) -> str:
    """LLVM's text of an integer constant, wrapped to the signed range of its type."""
    if element == "i1":
        return "true" if value else "false"
    bits = int(element[1:])
    value &= (1 << bits) - 1
    return str(value - (1 << bits) if value >> (bits - 1) else value)


class Line(NamedTuple):
    """One instruction; `op` is the id of the op it was emitted for, if any."""

    text: str
    op: int | None = None


class Value:
    """An SSA value or constant, with arithmetic that emits instructions."""

    __slots__ = ("constant", "element", "emitter", "text")

    def __init__(self, emitter: Emitter, text: str, element: str, constant: float | None = None):
        self.emitter, self.text, self.element, self.constant = emitter, text, element, constant

    def __repr__(self) -> str:
        return f"{self.element} {self.text}"

    @property
    def is_float(self) -> bool:
        return self.element in FLOAT_BITS

    def __add__(self, other: Operand) -> Value:
        return self.emitter.binary("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return self.emitter.binary("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return self.emitter.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return self.emitter.binary("sub", other, self)

    def __mul__(self, other: Operand) -> Value:
        return self.emitter.binary("mul", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return self.emitter.binary("mul", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return self.emitter.binary("div", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return self.emitter.binary("div", other, self)

    def __neg__(self) -> Value:
        return self.emitter.negate(self)

    def __abs__(self) -> Value:
        return self.emitter.intrinsic("fabs", self)

    def __and__(self, other: Operand) -> Value:
        return self.emitter.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.emitter.binary("or", self, other)

    def __xor__(self, other: Operand) -> Value:
        return self.emitter.binary("xor", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return self.emitter.binary("shl", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return self.emitter.binary("ashr", self, other)

    def __lt__(self, other: Operand) -> Value:
        return self.emitter.compare("lt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.emitter.compare("le", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.emitter.compare("gt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.emitter.compare("ge", self, other)


Operand = Value | float


class Emitter:
    """Collects lines; `calls` are the prelude functions (name, element) the lines call."""

    def __init__(self, lanes: int = 1, prefix: str = "v", op: int | None = None):
        self.lanes, self.prefix, self.op = lanes, prefix, op
        self.lines: list[Line] = []
        self.calls: dict[tuple[str, str, int], None] = {}
        self.tables: dict[str, tuple[float, ...]] = {}
        self.count = 0
        self.block = "entry"

    # -- types and leaves ------------------------------------------------------------------

    def type(self, element: str) -> str:
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def suffix(self, element: str) -> str:
        short = SHORT.get(element, element)
        return short if self.lanes == 1 else f"v{self.lanes}{short}"

    def argument(self, name: str, element: str) -> Value:
        """A value that exists already, e.g. `%x`."""
        return Value(self, name, element)

    def constant(self, value: float, element: str) -> Value:
        if element in FLOAT_BITS:
            text = float_literal(float(value), element)
        else:
            text = int_literal(int(value), element)
        if self.lanes > 1:
            text = f"splat ({element} {text})"
        return Value(self, text, element, value)

    def wrap(self, x: Operand, element: str) -> Value:
        if not isinstance(x, Value):
            return self.constant(x, element)
        if x.element != element:
            raise TypeError(f"expected {element}, got {x!r}")
        return x

    # -- instructions ----------------------------------------------------------------------

    def emit(self, instruction: str, element: str) -> Value:
        """Appends `%name = instruction` and gives the value."""
        name = f"%{self.prefix}{self.count}"
        self.count += 1
        self.lines.append(Line(f"{name} = {instruction}", self.op))
        return Value(self, name, element)

    def effect(self, instruction: str) -> None:
        """Appends an instruction without a result, e.g. a store."""
        self.lines.append(Line(instruction, self.op))

    def binary(self, name: str, a: Operand, b: Operand) -> Value:
        element = a.element if isinstance(a, Value) else b.element  # type: ignore[union-attr]
        a, b = self.wrap(a, element), self.wrap(b, element)
        if a.is_float:
            name = _FLOAT_OPS[name]
        return self.emit(f"{name} {self.type(element)} {a.text}, {b.text}", element)

    def compare(self, name: str, a: Operand, b: Operand) -> Value:
        """`eq ne lt le gt ge`: ordered for floats (ne: unordered), signed for integers.

        A full LLVM predicate ("ult", "uno" ...) is taken as it is.
        """
        element = a.element if isinstance(a, Value) else b.element  # type: ignore[union-attr]
        a, b = self.wrap(a, element), self.wrap(b, element)
        if len(name) == 2:
            if a.is_float:
                name = "une" if name == "ne" else "o" + name
            elif name not in ("eq", "ne"):
                name = "s" + name
        kind = "fcmp" if a.is_float else "icmp"
        return self.emit(f"{kind} {name} {self.type(element)} {a.text}, {b.text}", "i1")

    def negate(self, x: Value) -> Value:
        if x.is_float:
            return self.emit(f"fneg {self.type(x.element)} {x.text}", x.element)
        return self.binary("sub", 0, x)

    def invert(self, x: Value) -> Value:
        return x ^ -1 if x.element != "i1" else x ^ 1

    def select(self, cond: Value, a: Operand, b: Operand) -> Value:
        element = a.element if isinstance(a, Value) else b.element  # type: ignore[union-attr]
        a, b = self.wrap(a, element), self.wrap(b, element)
        kind = self.type(element)
        text = f"select {self.type('i1')} {cond.text}, {kind} {a.text}, {kind} {b.text}"
        return self.emit(text, element)

    def intrinsic(self, name: str, *operands: Operand) -> Value:
        """`llvm.<name>.<type>` of operands that all have one type, e.g. fma, sqrt, copysign."""
        element = next(o.element for o in operands if isinstance(o, Value))
        kind = self.type(element)
        listed = ", ".join(f"{kind} {self.wrap(o, element).text}" for o in operands)
        return self.emit(f"call {kind} @llvm.{name}.{self.suffix(element)}({listed})", element)

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        return self.intrinsic("fma", a, b, c)

    def convert(self, instruction: str, x: Value, element: str) -> Value:
        """A cast instruction: bitcast, sitofp, fpext, trunc ..."""
        text = f"{instruction} {self.type(x.element)} {x.text} to {self.type(element)}"
        return self.emit(text, element)

    def bits(self, x: Value) -> Value:
        return self.convert("bitcast", x, INTEGER_OF[x.element])

    def unbits(self, i: Value) -> Value:
        return self.convert("bitcast", i, FLOAT_OF[i.element])

    def widen(self, x: Value) -> Value:
        return self.convert("fpext", x, "double")

    def narrow(self, x: Value) -> Value:
        return self.convert("fptrunc", x, "float")

    def call(self, name: str, *operands: Value) -> Value:
        """A call of a prelude function of one element type, e.g. `call("exp", x)`."""
        element = operands[0].element
        self.calls[name, element, self.lanes] = None
        kind = self.type(element)
        listed = ", ".join(f"{kind} {o.text}" for o in operands)
        return self.emit(f"call {kind} @w_{name}_{self.suffix(element)}({listed})", element)

    def lookup(self, name: str, values: tuple[float, ...], index: Value) -> Value:
        """values[index] of a table of doubles; index is i64. Lane by lane: for rare paths."""
        self.tables[name] = values
        if self.lanes == 1:
            where = self.emit(f"getelementptr double, ptr @{name}, i64 {index.text}", "ptr")
            return self.emit(f"load double, ptr {where.text}", "double")
        gathered, kind = "poison", self.type("double")
        for lane in range(self.lanes):
            i = self.emit(f"extractelement {self.type('i64')} {index.text}, i32 {lane}", "i64")
            where = self.emit(f"getelementptr double, ptr @{name}, i64 {i.text}", "ptr")
            one = self.emit(f"load double, ptr {where.text}", "double").text
            insert = f"insertelement {kind} {gathered}, double {one}, i32 {lane}"
            gathered = self.emit(insert, "double").text
        return Value(self, gathered, "double")

    def rarely(
        self, cond: Value, usual: Sequence[Value], other: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """`usual`, but `other()` in the lanes where cond holds; a branch that is seldom taken.

        Only for outlined functions: a loop with it inlined would not be vectorised.
        """
        tag, before = f"{self.prefix}{self.count}", self.block
        self.count += 1
        taken = cond
        if self.lanes > 1:
            mask = f"{self.type('i1')} {cond.text}"
            taken = self.emit(f"call i1 @llvm.vector.reduce.or.v{self.lanes}i1({mask})", "i1")
        taken = self.emit(f"call i1 @llvm.expect.i1(i1 {taken.text}, i1 false)", "i1")
        self.effect(f"br i1 {taken.text}, label %rare.{tag}, label %join.{tag}")
        self.effect(f"rare.{tag}:")
        self.block = f"rare.{tag}"
        slow = [self.select(cond, a, b) for a, b in zip(other(), usual)]
        self.effect(f"br label %join.{tag}")
        self.effect(f"join.{tag}:")
        joined = []
        for a, b in zip(usual, slow):
            phi = f"phi {self.type(a.element)} [ {a.text}, %{before} ], [ {b.text}, %{self.block} ]"
            joined.append(self.emit(phi, a.element))
        self.block = f"join.{tag}"
        return joined

    def text(self, indent: str = "  ") -> str:
        return "".join(f"{indent}{line.text}\n" for line in self.lines)
