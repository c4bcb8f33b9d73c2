"""The native scalar reader: catalogue expressions become LLVM lines.

    s = LLVMReader("float32")
    x = s.load("%p.x", "float32")          # or s.argument("%x", "float32")
    s.store(s.mul(s.tanh(x), s.const(2)), "%p.y")
    lines = s.lines                        # with op ids; text = s.text()
    module = kernel_text + prelude(s.calls)

Invariants:
- In registers a bool is i1 and a 16-bit float is a float; in memory they are i8, half, i16.
- Math functions are calls of the prelude; `calls` names those that the module must define.
- With `lanes` > 1 every value is a vector and loads and stores are of contiguous elements.
- No result is poison for any input: shifts, divisions and conversions are guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.scalar import FLOATS, HALVES, INTEGERS, SIGNED, dtype_name
from .integers import IntegerOps
from .llvm import Emitter, Line, Value

REGISTER = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "i8", "uint16": "i16", "uint32": "i32", "uint64": "i64",
    "float16": "float", "bfloat16": "float", "float32": "float", "float64": "double",
}  # fmt: skip
MEMORY = REGISTER | {"bool": "i8", "float16": "half", "bfloat16": "i16"}
ITEMSIZE = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8}


class Scalar(NamedTuple):
    """A value of LLVMReader: what it is in registers and torch's name of its dtype."""

    value: Value
    dtype: str


def _math(name: str) -> Callable[..., Scalar]:
    def method(self: LLVMReader, *operands: Scalar) -> Scalar:
        dtype = self.same(name, operands, FLOATS)
        return Scalar(self.m.call(name, *(o.value for o in operands)), dtype)

    method.__name__ = name
    return method


def _rounding(intrinsic: str) -> Callable[..., Scalar]:
    def method(self: LLVMReader, x: Scalar) -> Scalar:
        if x.dtype not in FLOATS:
            return x
        return Scalar(self.m.intrinsic(intrinsic, x.value), x.dtype)

    return method


def _comparison(name: str) -> Callable[..., Scalar]:
    def method(self: LLVMReader, a: Scalar, b: Scalar) -> Scalar:
        dtype = self.same(name, (a, b))
        unsigned = dtype not in FLOATS + SIGNED and name not in ("eq", "ne")
        predicate = "u" + name if unsigned else name
        return Scalar(self.m.compare(predicate, a.value, b.value), "bool")

    return method


def _bitwise(name: str, logical: bool = False) -> Callable[..., Scalar]:
    def method(self: LLVMReader, a: Scalar, b: Scalar) -> Scalar:
        if logical:
            a, b = self.cast(a, "bool"), self.cast(b, "bool")
        dtype = self.same(name, (a, b), (*INTEGERS, "bool"))
        return Scalar(self.m.binary(name, a.value, b.value), dtype)

    return method


def _extremum(sign: str, prefer_number: bool) -> Callable[..., Scalar]:
    def method(self: LLVMReader, a: Scalar, b: Scalar) -> Scalar:
        m, dtype = self.m, self.same(sign, (a, b))
        predicate = sign if dtype in FLOATS + SIGNED else "u" + sign
        chosen = m.select(m.compare(predicate, a.value, b.value), a.value, b.value)
        if dtype in FLOATS:  # the comparison is false for NaN and so chose b
            watched = b if prefer_number else a
            nan = m.compare("uno", watched.value, watched.value)
            chosen = m.select(nan, a.value, chosen)
        return Scalar(chosen, dtype)

    return method


class LLVMReader(IntegerOps):
    """Emits the lines of scalar expressions; `dtype` is what a bare `const` takes."""

    def __init__(self, dtype: Any = "float32", lanes: int = 1, prefix: str = "v"):
        self.dtype = dtype_name(dtype)
        self.m = Emitter(lanes, prefix)

    # -- what was emitted ------------------------------------------------------------------

    @property
    def lines(self) -> list[Line]:
        return self.m.lines

    @property
    def calls(self) -> list[tuple[str, str, int]]:
        """The prelude functions called: (name, element, lanes)."""
        return list(self.m.calls)

    def text(self, indent: str = "  ") -> str:
        return self.m.text(indent)

    @contextmanager
    def at(self, op: int, dtype: Any = None) -> Iterator[None]:
        """Lines emitted inside carry this op id; constants are of its dtype."""
        before = self.m.op, self.dtype
        self.m.op = op
        if dtype is not None:
            self.dtype = dtype_name(dtype)
        try:
            yield
        finally:
            self.m.op, self.dtype = before

    # -- operands --------------------------------------------------------------------------

    def same(self, what: str, operands: tuple[Scalar, ...], among: tuple[str, ...] = ()) -> str:
        """The one dtype of all operands, which must be among the given ones."""
        dtype = operands[0].dtype
        if any(o.dtype != dtype for o in operands):
            found = ", ".join(o.dtype for o in operands)
            raise TypeError(f"{what}: operands differ in dtype ({found}); cast them to one first")
        if among and dtype not in among:
            raise TypeError(f"{what} does not take {dtype}; cast to one of {', '.join(among)}")
        return dtype

    def argument(self, name: str, dtype: Any) -> Scalar:
        """A register that exists already, e.g. `%x`, holding a value of dtype."""
        name_of = dtype_name(dtype)
        return Scalar(self.m.argument(name, REGISTER[name_of]), name_of)

    def const(self, value: float | bool, dtype: Any = None) -> Scalar:
        name = self.dtype if dtype is None else dtype_name(dtype)
        # any number but zero is true, where an integer would be cut off
        value = bool(value) if name == "bool" else value
        return Scalar(self.m.constant(value, REGISTER[name]), name)

    def load(self, pointer: str, dtype: Any, extra: str = "") -> Scalar:
        """The element (or the lanes) at `pointer`; `extra` is appended, e.g. metadata."""
        m, name = self.m, dtype_name(dtype)
        memory = MEMORY[name]
        text = f"load {m.type(memory)}, ptr {pointer}, align {ITEMSIZE[memory]}{extra}"
        return self.from_memory(m.emit(text, memory), name)

    def from_memory(self, raw: Value, dtype: str) -> Scalar:
        """A loaded value as it is computed with."""
        m = self.m
        if dtype == "bool":
            return Scalar(m.compare("ne", raw, 0), dtype)
        if dtype == "float16":
            return Scalar(m.convert("fpext", raw, "float"), dtype)
        if dtype == "bfloat16":
            return Scalar(m.unbits(m.convert("zext", raw, "i32") << 16), dtype)
        return Scalar(raw, dtype)

    def to_memory(self, x: Scalar) -> Value:
        """The value as it is stored: 16-bit floats round to nearest, ties to even."""
        m = self.m
        if x.dtype == "bool":
            return m.convert("zext", x.value, "i8")
        if x.dtype == "float16":
            return m.convert("fptrunc", x.value, "half")
        if x.dtype == "bfloat16":
            bits = m.bits(x.value)
            up = m.binary("lshr", bits, 16) & 1
            kept = m.binary("lshr", bits + up + 0x7FFF, 16)
            nan = m.compare("uno", x.value, x.value)
            return m.convert("trunc", m.select(nan, 0x7FC0, kept), "i16")
        return x.value

    def store(self, x: Scalar, pointer: str, extra: str = "") -> None:
        m, raw = self.m, self.to_memory(x)
        align = ITEMSIZE[raw.element]
        m.effect(f"store {m.type(raw.element)} {raw.text}, ptr {pointer}, align {align}{extra}")

    # -- conversions and choice ------------------------------------------------------------

    def cast(self, x: Scalar, dtype: Any) -> Scalar:
        name = dtype_name(dtype)
        if name == x.dtype:
            return x
        if name == "bool":
            return Scalar(self.m.compare("ne", x.value, 0), name)
        if name in INTEGERS:
            return Scalar(self.to_integer(x, name), name)
        return self._to_float(x, name)

    def _to_float(self, x: Scalar, dtype: str) -> Scalar:
        m, value = self.m, x.value
        element = REGISTER[dtype]
        if x.dtype == "bool":
            value = m.select(value, m.constant(1.0, element), 0.0)
        elif x.dtype in INTEGERS:
            value = m.convert("sitofp" if x.dtype in SIGNED else "uitofp", value, element)
        elif value.element != element:
            value = m.widen(value) if element == "double" else m.narrow(value)
        if x.dtype == "float64" and dtype == "float16":
            # else LLVM rounds once, by a function of a library that is not there, where the
            # half's sign alone is used (copysign)
            value = m.intrinsic("arithmetic.fence", value)
        if dtype in HALVES:  # what the memory would hold
            return self.from_memory(self.to_memory(Scalar(value, dtype)), dtype)
        return Scalar(value, dtype)

    def select(self, cond: Scalar, a: Scalar, b: Scalar) -> Scalar:
        dtype = self.same("select", (a, b))
        return Scalar(self.m.select(self.cast(cond, "bool").value, a.value, b.value), dtype)

    # -- arithmetic: floats here, integers in IntegerOps -----------------------------------

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        return self._arithmetic("add", a, b)

    def sub(self, a: Scalar, b: Scalar) -> Scalar:
        return self._arithmetic("sub", a, b)

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        return self._arithmetic("mul", a, b)

    def _arithmetic(self, name: str, a: Scalar, b: Scalar) -> Scalar:
        dtype = self.same(name, (a, b))
        if dtype == "bool":  # torch: + is or, * is and
            name = {"add": "or", "mul": "and", "sub": "xor"}[name]
        return Scalar(self.m.binary(name, a.value, b.value), dtype)

    def div(self, a: Scalar, b: Scalar) -> Scalar:
        if self.same("div", (a, b)) in FLOATS:
            return Scalar(a.value / b.value, a.dtype)
        return Scalar(self.divide_integers(a, b)[0], a.dtype)

    def fmod(self, a: Scalar, b: Scalar) -> Scalar:
        m = self.m
        if self.same("fmod", (a, b)) in FLOATS:
            kind = m.type(a.value.element)
            text = f"frem {kind} {a.value.text}, {b.value.text}"
            return Scalar(m.emit(text, a.value.element), a.dtype)
        return Scalar(self.divide_integers(a, b)[1], a.dtype)

    def remainder(self, a: Scalar, b: Scalar) -> Scalar:
        m, rest = self.m, self.fmod(a, b).value
        if a.dtype not in FLOATS + SIGNED:
            return Scalar(rest, a.dtype)
        return Scalar(m.select(self._other_side(rest, b.value), rest + b.value, rest), a.dtype)

    def _other_side(self, rest: Value, divisor: Value) -> Value:
        """rest is not 0 and its sign is not the divisor's."""
        m = self.m
        return m.compare("ne", rest, 0) & ((rest < 0) ^ (divisor < 0))

    def floor_divide(self, a: Scalar, b: Scalar) -> Scalar:
        m = self.m
        if self.same("floor_divide", (a, b)) in FLOATS:
            return Scalar(self._floor_divide_floats(a, b), a.dtype)
        quotient, rest = self.divide_integers(a, b)
        if a.dtype in SIGNED:
            below = m.convert("zext", self._other_side(rest, b.value), quotient.element)
            quotient = quotient - below
        return Scalar(quotient, a.dtype)

    def _floor_divide_floats(self, a: Scalar, b: Scalar) -> Value:
        """As torch (and Python) do it: from fmod, so that a == q * b + remainder holds."""
        m, rest = self.m, self.fmod(a, b).value
        true = a.value / b.value
        quotient = (a.value - rest) / b.value
        quotient = m.select(self._other_side(rest, b.value), quotient - 1.0, quotient)
        whole = m.intrinsic("floor", quotient)
        whole = m.select(quotient - whole > 0.5, whole + 1.0, whole)
        zero = m.intrinsic("copysign", 0.0, true)
        whole = m.select(m.compare("eq", quotient, 0.0), zero, whole)
        return m.select(m.compare("eq", b.value, 0.0), true, whole)

    def neg(self, x: Scalar) -> Scalar:
        return Scalar(-x.value, x.dtype)

    def abs(self, x: Scalar) -> Scalar:
        if x.dtype in FLOATS:
            return Scalar(abs(x.value), x.dtype)
        return Scalar(self.absolute_integer(x), x.dtype)

    def sign(self, x: Scalar) -> Scalar:
        m, value = self.m, x.value
        if x.dtype == "bool":
            return x
        if x.dtype not in FLOATS + SIGNED:
            return Scalar(m.convert("zext", m.compare("ne", value, 0), value.element), x.dtype)
        zero = m.constant(0, value.element)
        return Scalar(m.select(value > 0, 1, m.select(value < 0, -1, zero)), x.dtype)

    def pow(self, a: Scalar, b: Scalar) -> Scalar:
        if self.same("pow", (a, b)) not in FLOATS:
            return Scalar(self.integer_power(a, b), a.dtype)
        x, known = a.value, b.value.constant
        if known == 2:
            return Scalar(x * x, a.dtype)
        if known == 3:
            return Scalar(x * x * x, a.dtype)
        if known == -1:
            return Scalar(1.0 / x, a.dtype)
        if known == 0.5:  # as torch: sqrt, also for -inf and -0.0
            return self.sqrt(a)
        return Scalar(self.m.call("pow", x, b.value), a.dtype)

    # -- functions -------------------------------------------------------------------------

    def sqrt(self, x: Scalar) -> Scalar:
        return Scalar(self.m.intrinsic("sqrt", x.value), self.same("sqrt", (x,), FLOATS))

    def rsqrt(self, x: Scalar) -> Scalar:
        return Scalar(1.0 / self.sqrt(x).value, x.dtype)

    def reciprocal(self, x: Scalar) -> Scalar:
        return Scalar(1.0 / x.value, self.same("reciprocal", (x,), FLOATS))

    exp, exp2, expm1, sigmoid = _math("exp"), _math("exp2"), _math("expm1"), _math("sigmoid")
    log, log2, log10, log1p = _math("log"), _math("log2"), _math("log10"), _math("log1p")
    sin, cos, tan, cbrt = _math("sin"), _math("cos"), _math("tan"), _math("cbrt")
    asin, acos, atan, atan2 = _math("asin"), _math("acos"), _math("atan"), _math("atan2")
    sinh, cosh, tanh, hypot = _math("sinh"), _math("cosh"), _math("tanh"), _math("hypot")
    asinh, acosh, atanh = _math("asinh"), _math("acosh"), _math("atanh")
    erf, erfc, erfinv = _math("erf"), _math("erfc"), _math("erfinv")
    lgamma, digamma = _math("lgamma"), _math("digamma")

    def copysign(self, a: Scalar, b: Scalar) -> Scalar:
        dtype = self.same("copysign", (a, b), FLOATS)
        return Scalar(self.m.intrinsic("copysign", a.value, b.value), dtype)

    def nextafter(self, a: Scalar, b: Scalar) -> Scalar:
        dtype, m = self.same("nextafter", (a, b), ("float32", "float64")), self.m
        x, y = a.value, b.value
        outward = (x < y) ^ (m.bits(x) < 0)  # away from zero: the bits grow
        bits = m.bits(x)
        moved = m.unbits(m.select(outward, bits + 1, bits - 1))
        least = m.unbits(m.constant(1, bits.element))
        moved = m.select(m.compare("eq", x, 0.0), m.intrinsic("copysign", least, y), moved)
        moved = m.select(m.compare("eq", x, y), y, moved)
        return Scalar(m.select(m.compare("uno", x, y), x + y, moved), dtype)

    floor, ceil = _rounding("floor"), _rounding("ceil")
    trunc, round = _rounding("trunc"), _rounding("roundeven")

    def isnan(self, x: Scalar) -> Scalar:
        if x.dtype not in FLOATS:
            return self.const(False, "bool")
        return Scalar(self.m.compare("uno", x.value, x.value), "bool")

    def isinf(self, x: Scalar) -> Scalar:
        if x.dtype not in FLOATS:
            return self.const(False, "bool")
        return Scalar(self.m.compare("eq", abs(x.value), float("inf")), "bool")

    def isfinite(self, x: Scalar) -> Scalar:
        if x.dtype not in FLOATS:
            return self.const(True, "bool")
        return Scalar(self.m.compare("lt", abs(x.value), float("inf")), "bool")

    def signbit(self, x: Scalar) -> Scalar:
        if x.dtype in FLOATS:
            return Scalar(self.m.bits(x.value) < 0, "bool")
        return Scalar(x.value < 0, "bool") if x.dtype in SIGNED else self.const(False, "bool")

    minimum, maximum = _extremum("lt", False), _extremum("gt", False)
    fmin, fmax = _extremum("lt", True), _extremum("gt", True)
    eq, ne, lt = _comparison("eq"), _comparison("ne"), _comparison("lt")
    le, gt, ge = _comparison("le"), _comparison("gt"), _comparison("ge")
    bitwise_and, bitwise_or = _bitwise("and"), _bitwise("or")
    bitwise_xor, logical_and = _bitwise("xor"), _bitwise("and", logical=True)
    logical_or, logical_xor = _bitwise("or", logical=True), _bitwise("xor", logical=True)

    def logical_not(self, x: Scalar) -> Scalar:
        return Scalar(self.m.invert(self.cast(x, "bool").value), "bool")

    def bitwise_not(self, x: Scalar) -> Scalar:
        return Scalar(self.m.invert(x.value), self.same("bitwise_not", (x,), (*INTEGERS, "bool")))
