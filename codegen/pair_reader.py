"""Scalar expressions of complex numbers, read as expressions of their parts.

`PairReader` takes part in the scalar protocol (ir/scalar.py) with pairs of values of the graph.
What it lacks, complex numbers have no kernel for: the op is called on the host.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..ir.op import TABLE
from ..ir.scalar import dtype_name
from ..ir.types import BY_NAME

COUNTED = 64  # whole exponents up to this are multiplications


class Pair(NamedTuple):
    """Real and imaginary part: values, or numbers."""

    real: Any
    imag: Any


def is_whole(x: Pair) -> bool:
    """Is it a whole number, known here?"""
    return isinstance(x.imag, int | float) and x.imag == 0 and float(x.real).is_integer()


def choose(cond: Any, a: Any, b: Any) -> Any:
    return TABLE["where"](cond, a, b)


class PairReader:
    """Complex numbers are Pairs; bools and real results (of `abs`) are plain values."""

    def const(self, value: Any, dtype: Any = None) -> Any:
        if dtype is not None and not BY_NAME[dtype_name(dtype)].is_complex:
            return value
        return Pair(value.real, value.imag)

    def cast(self, x: Any, dtype: Any) -> Any:
        wanted = BY_NAME[dtype_name(dtype)]
        if not wanted.is_complex:
            return real_cast(x, wanted)
        re, im = x if isinstance(x, Pair) else (x, 0.0)
        return Pair(real_cast(re, wanted.to_real()), real_cast(im, wanted.to_real()))

    def select(self, cond: Any, a: Any, b: Any) -> Any:
        if not isinstance(a, Pair):
            return choose(cond, a, b)
        return Pair(choose(cond, a.real, b.real), choose(cond, a.imag, b.imag))

    # -- parts -----------------------------------------------------------------------------

    def real(self, x: Pair) -> Any:
        return x.real

    def conj(self, x: Pair) -> Pair:
        return Pair(x.real, -x.imag)

    def complex(self, a: Any, b: Any) -> Pair:
        return Pair(a, b)

    def abs(self, x: Pair) -> Any:
        return x.real.hypot(x.imag)

    def angle(self, x: Pair) -> Any:
        return x.imag.atan2(x.real)

    # -- arithmetic ------------------------------------------------------------------------

    def add(self, a: Pair, b: Pair) -> Pair:
        return Pair(a.real + b.real, a.imag + b.imag)

    def sub(self, a: Pair, b: Pair) -> Pair:
        return Pair(a.real - b.real, a.imag - b.imag)

    def neg(self, x: Pair) -> Pair:
        return Pair(-x.real, -x.imag)

    def mul(self, a: Pair, b: Pair) -> Pair:
        return Pair(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)

    def div(self, a: Pair, b: Pair) -> Pair:
        """Smith's way: no square that could overflow; what is divided by 0 is inf or NaN."""
        if not (hasattr(b.real, "abs") and hasattr(b.imag, "abs")):
            b = Pair(b.real + 0 * a.real, b.imag + 0 * a.real)
        steep = b.real.abs() < b.imag.abs()
        large, small = choose(steep, b.imag, b.real), choose(steep, b.real, b.imag)
        ratio = small / large
        scale = 1 / (large + small * ratio)
        re = choose(steep, a.real * ratio + a.imag, a.real + a.imag * ratio) * scale
        im = choose(steep, a.imag * ratio - a.real, a.imag - a.real * ratio) * scale
        zero, none = large.eq(0), b.real.abs()
        return Pair(choose(zero, a.real / none, re), choose(zero, a.imag / none, im))

    def reciprocal(self, x: Pair) -> Pair:
        return self.div(Pair(1 + 0 * x.real, 0 * x.real), x)

    def sign(self, x: Pair) -> Pair:
        size = self.abs(x)
        zero = size.eq(0)
        return Pair(choose(zero, 0.0, x.real / size), choose(zero, 0.0, x.imag / size))

    # -- functions -------------------------------------------------------------------------

    def exp(self, x: Pair) -> Pair:
        size = x.real.exp()
        level, none = x.imag.eq(0), size.eq(0)  # where products would be inf * 0 or 0 * NaN
        re, im = size * x.imag.cos(), size * x.imag.sin()
        return Pair(choose(level.logical_or(none), size, re),
                    choose(level, x.imag, choose(none, 0.0, im)))  # fmt: skip

    def log(self, x: Pair) -> Pair:
        a, b = x.real.abs(), x.imag.abs()
        large, small = a.maximum(b), a.minimum(b)
        near = ((large - 1) * (large + 1) + small * small).log1p() * 0.5  # where sizes are near 1
        middle = (large > 0.5).logical_and(large < 2)
        return Pair(choose(middle, near, self.abs(x).log()), self.angle(x))

    def exp2(self, x: Pair) -> Pair:
        return self.exp(self.scaled(x, math.log(2)))

    def log2(self, x: Pair) -> Pair:
        return self.scaled(self.log(x), 1 / math.log(2))

    def log10(self, x: Pair) -> Pair:
        return self.scaled(self.log(x), 1 / math.log(10))

    def scaled(self, x: Pair, by: float) -> Pair:
        return Pair(x.real * by, x.imag * by)

    def sqrt(self, x: Pair) -> Pair:
        size = ((self.abs(x) + x.real.abs()) * 0.5).sqrt()
        other = choose(size.eq(0), 0.0, x.imag.abs() / (2 * size))
        right = x.real >= 0
        re, im = choose(right, size, other), choose(right, other, size)
        return Pair(re, im.copysign(x.imag))

    def rsqrt(self, x: Pair) -> Pair:
        return self.reciprocal(self.sqrt(x))

    def pow(self, a: Pair, b: Pair) -> Pair:
        if is_whole(b) and abs(b.real) <= COUNTED:
            power = self.counted(a, int(abs(b.real)))
            return self.reciprocal(power) if b.real < 0 else power
        result = self.exp(self.mul(b, self.log(a)))
        zero = a.real.eq(0).logical_and(a.imag.eq(0))
        re, im = self.power_of_zero((a.real * 0).abs(), b)
        return Pair(choose(zero, re, result.real), choose(zero, im, result.imag))

    def power_of_zero(self, nil: Any, b: Pair) -> tuple[Any, Any]:
        """nil ** b for a zero, as NumPy has it: 1, 0 or nothing that can be told."""
        re, im = nil + b.real, nil + b.imag  # values, where parts of `b` are numbers
        nothing = choose(re > 0, nil, nil + math.nan)
        one = re.eq(0).logical_and(im.eq(0))
        return choose(one, nil + 1.0, nothing), choose(one, nil, nothing)

    def counted(self, a: Pair, count: int) -> Pair:
        """a * a * ... by squares."""
        if count < 2:
            return a if count else Pair(1.0, 0.0)
        half = self.counted(a, count // 2)
        square = self.mul(half, half)
        return self.mul(square, a) if count % 2 else square

    def sigmoid(self, x: Pair) -> Pair:
        e = self.exp(self.neg(x))
        return self.reciprocal(Pair(1 + e.real, e.imag))

    def sin(self, x: Pair) -> Pair:
        return Pair(x.real.sin() * x.imag.cosh(), x.real.cos() * x.imag.sinh())

    def cos(self, x: Pair) -> Pair:
        return Pair(x.real.cos() * x.imag.cosh(), -(x.real.sin() * x.imag.sinh()))

    def sinh(self, x: Pair) -> Pair:
        return Pair(x.real.sinh() * x.imag.cos(), x.real.cosh() * x.imag.sin())

    def cosh(self, x: Pair) -> Pair:
        return Pair(x.real.cosh() * x.imag.cos(), x.real.sinh() * x.imag.sin())

    def tanh(self, x: Pair) -> Pair:
        """Kahan's way; far out, where cosh overflows, the limit."""
        far = x.real.abs() > 20
        a = choose(far, 0.0, x.real)
        tan, sinh = x.imag.tan(), a.sinh()
        beta, rho = 1 + tan * tan, (1 + sinh * sinh).sqrt()
        below = 1 + beta * sinh * sinh
        limit = 4 * x.imag.sin() * x.imag.cos() * (-2 * x.real.abs()).exp()
        ones = 1 + 0 * a
        return Pair(choose(far, ones.copysign(x.real), beta * rho * sinh / below),
                    choose(far, limit, tan / below))  # fmt: skip

    def tan(self, x: Pair) -> Pair:
        turned = self.tanh(Pair(-x.imag, x.real))  # tan(z) = -i tanh(iz)
        return Pair(turned.imag, -turned.real)

    # -- questions -------------------------------------------------------------------------

    def eq(self, a: Pair, b: Pair) -> Any:
        return a.real.eq(b.real).logical_and(a.imag.eq(b.imag))

    def ne(self, a: Pair, b: Pair) -> Any:
        return a.real.ne(b.real).logical_or(a.imag.ne(b.imag))

    def isnan(self, x: Pair) -> Any:
        return x.real.isnan().logical_or(x.imag.isnan())

    def isinf(self, x: Pair) -> Any:
        return x.real.isinf().logical_or(x.imag.isinf())

    def isfinite(self, x: Pair) -> Any:
        return x.real.isfinite().logical_and(x.imag.isfinite())

    def logical_not(self, x: Any) -> Any:
        return x.logical_not()


def real_cast(x: Any, wanted: Any) -> Any:
    """A real value, or the real part of a pair, in another dtype; true is what is not 0."""
    if isinstance(x, Pair):
        if wanted.name == "bool":
            return x.real.ne(0).logical_or(x.imag.ne(0))
        x = x.real
    return x.to(wanted) if hasattr(x, "to") else x
