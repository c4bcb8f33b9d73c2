"""Integer arithmetic of the native reader, guarded so that no input traps or is undefined.

Division by zero gives 0, the least integer over -1 wraps, shifts outside the width give what torch
gives, and a float that does not fit converts as the CPU's own instruction would.
"""

from __future__ import annotations

from typing import Any

from ..ir.scalar import INTEGERS, SIGNED
from .llvm import Emitter, Value

WIDTH = {name: int(name.lstrip("uint")) for name in INTEGERS}


class IntegerOps:
    """The part of LLVMReader that deals with integers; values are its `Scalar`s."""

    m: Emitter

    def same(self, what: str, operands: tuple[Any, ...], among: tuple[str, ...] = ()) -> str:
        raise NotImplementedError

    def divide_integers(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Quotient towards zero and remainder; both 0 for b == 0."""
        m, x, y = self.m, a.value, b.value
        self.same("integer division", (a, b), INTEGERS)
        zero = m.compare("eq", y, 0)
        if a.dtype not in SIGNED:
            safe = m.select(zero, 1, y)
            quotient, rest = m.binary("udiv", x, safe), m.binary("urem", x, safe)
            return m.select(zero, 0, quotient), m.select(zero, 0, rest)
        # the least integer / -1 traps: that quotient is made by negation instead
        minus = m.compare("eq", y, -1)
        safe = m.select(zero | minus, 1, y)
        quotient, rest = m.binary("sdiv", x, safe), m.binary("srem", x, safe)
        return m.select(zero, 0, m.select(minus, -x, quotient)), m.select(zero, 0, rest)

    def absolute_integer(self, x: Any) -> Value:
        m = self.m
        if x.dtype not in SIGNED:
            return x.value
        return m.select(x.value < 0, -x.value, x.value)

    def integer_power(self, a: Any, b: Any) -> Value:
        """a ** b, wrapping; a negative b gives 0, or for a = 1, -1 a sign."""
        m, element = self.m, a.value.element
        dtype = self.same("pow", (a, b), INTEGERS)
        extend = "sext" if dtype in SIGNED else "zext"
        wide = [v if element == "i64" else m.convert(extend, v, "i64") for v in (a.value, b.value)]
        if m.lanes == 1:
            result = m.call("ipow", *wide)
        else:
            result = self._power_by_lanes(*wide)
        return result if element == "i64" else m.convert("trunc", result, element)

    def _power_by_lanes(self, a: Value, b: Value) -> Value:
        m, gathered = self.m, "poison"
        kind = m.type("i64")
        m.calls["ipow", "i64", 1] = None
        for lane in range(m.lanes):
            x = m.emit(f"extractelement {kind} {a.text}, i32 {lane}", "i64").text
            n = m.emit(f"extractelement {kind} {b.text}, i32 {lane}", "i64").text
            one = m.emit(f"call i64 @w_ipow_i64(i64 {x}, i64 {n})", "i64").text
            text = f"insertelement {kind} {gathered}, i64 {one}, i32 {lane}"
            gathered = m.emit(text, "i64").text
        return Value(m, gathered, "i64")

    def to_integer(self, x: Any, dtype: str) -> Value:
        """Casts any dtype to an integer one; integers wrap, floats round towards zero."""
        m, value, element = self.m, x.value, f"i{WIDTH[dtype]}"
        if x.dtype == "bool":
            return m.convert("zext", value, element)
        if x.dtype in INTEGERS:
            before, after = WIDTH[x.dtype], WIDTH[dtype]
            if before == after:
                return value
            if before > after:
                return m.convert("trunc", value, element)
            return m.convert("sext" if x.dtype in SIGNED else "zext", value, element)
        if dtype == "uint64":
            return self._to_unsigned_64(value)
        # Narrow ones go through i32, unsigned 32 bits through i64, as C compilers do
        wide = "i64" if dtype in ("int64", "uint32") else "i32"
        whole = self._to_signed(value, wide)
        return whole if wide == element else m.convert("trunc", whole, element)

    def _to_signed(self, x: Value, element: str) -> Value:
        """Towards zero; what does not fit (and NaN) becomes the least integer, as x86 does."""
        m, limit = self.m, 2.0 ** (int(element[1:]) - 1)
        fits = (x >= -limit) & (x < limit)
        least = m.constant(-(2 ** (int(element[1:]) - 1)), element)
        return m.select(fits, m.convert("fptosi", x, element), least)

    def _to_unsigned_64(self, x: Value) -> Value:
        m = self.m
        upper = x >= 2.0**63
        low = self._to_signed(m.select(upper, x - 2.0**63, x), "i64")
        return m.select(upper, low ^ -(2**63), low)

    def _shift(self, name: str, a: Any, b: Any, outside: Value) -> Any:
        m, dtype = self.m, self.same(name, (a, b), INTEGERS)
        inside = m.compare("ult", b.value, WIDTH[dtype])  # negative counts are large, unsigned
        count = m.select(inside, b.value, 0)
        return type(a)(m.select(inside, m.binary(name, a.value, count), outside), dtype)

    def shl(self, a: Any, b: Any) -> Any:
        return self._shift("shl", a, b, self.m.constant(0, a.value.element))

    def shr(self, a: Any, b: Any) -> Any:
        m = self.m
        if a.dtype not in SIGNED:
            return self._shift("lshr", a, b, m.constant(0, a.value.element))
        sign = m.binary("ashr", a.value, WIDTH[a.dtype] - 1)
        return self._shift("ashr", a, b, sign)
