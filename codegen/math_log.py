"""Logarithms: log, log2, log10, log1p, and the cores that pow and others build on.

x = 2^e (1 + f); with s = f / (2 + f) and h = f^2 / 2:
log(1 + f) = f - (h - s (h + R)), R = s^2 P(s^2): the large terms are exact, the rest is small.
"""

from __future__ import annotations

from . import coefficients as c
from .llvm import Emitter, Operand, Value
from .math_core import (
    CONSTANTS,
    LOG2E,
    fast_two_sum,
    function,
    infinity,
    not_a_number,
    polynomial,
    split_exponent,
    two_sum,
)

LOG_EVEN = {"float": c.LOG_EVEN_F32, "double": c.LOG_EVEN_F64}


def core(m: Emitter, x: Value) -> tuple[Value, Value, Value, Value]:
    """(e, f, h, t) with log(x) = e ln2 + f - h + t."""
    y, e = split_exponent(m, x)
    f = y - 1.0
    s = f / (f + 2.0)
    u = s * s
    h = f * f * 0.5
    return e, f, h, s * m.fma(polynomial(m, u, LOG_EVEN[x.element]), u, h)


def edges(m: Emitter, x: Value, result: Value) -> Value:
    """log's values at inf, 0, below 0 and NaN."""
    result = m.select(m.compare("eq", x, infinity(m, x)), x, result)
    result = m.select(m.compare("eq", x, 0.0), infinity(m, x, -1), result)
    return m.select(m.compare("ult", x, 0.0), not_a_number(m, x), result)


def _polynomial_log(m: Emitter, x: Value) -> Value:
    """f - f^2/2 + f^3 P(f): no division; float only, a double would need 20 terms."""
    k = CONSTANTS["float"]
    y, e = split_exponent(m, x)
    f = y - 1.0
    u = f * f
    t = m.fma(polynomial(m, f, c.LOG_F32), u * f, e * k.ln2_lo)
    return m.fma(e, k.ln2_hi, f + m.fma(u, -0.5, t))


@function()
def log(m: Emitter, x: Value) -> Value:
    if x.element == "float":
        return edges(m, x, _polynomial_log(m, x))
    k = CONSTANTS["double"]
    e, f, h, t = core(m, x)
    return edges(m, x, m.fma(e, k.ln2_hi, f - (h - m.fma(e, k.ln2_lo, t))))


def _other_base(m: Emitter, x: Value, scale: Operand, scale_lo: float, unit: tuple) -> Value:
    """log(x) * (scale + scale_lo), where the base's log of 2 is unit = (high, low)."""
    e, f, h, t = core(m, x)
    hi, lo = fast_two_sum(f, -h)
    lo = lo + t
    hi, lo = fast_two_sum(hi, lo)
    p = hi * scale
    tail = m.fma(hi, scale, -p) + m.fma(lo, scale, hi * scale_lo)
    if unit[1]:
        tail = m.fma(e, unit[1], tail)
    whole, rest = two_sum(m, e * unit[0] if unit[0] != 1 else e, p)
    return edges(m, x, whole + (rest + tail))


@function()
def log2(m: Emitter, x: Value) -> Value:
    return _other_base(m, x, LOG2E, CONSTANTS[x.element].log2e_lo, (1, 0))


@function()
def log10(m: Emitter, x: Value) -> Value:
    k = CONSTANTS[x.element]
    return _other_base(m, x, k.log10e_hi, k.log10e_lo, (k.log10_2_hi, k.log10_2_lo))


def log1p_pair(m: Emitter, x: Value, x_lo: Operand = 0.0, twos: Operand = 0.0) -> Value:
    """log(1 + x + x_lo) + twos * ln2 without edges; x_lo is what rounding x lost."""
    k = CONSTANTS[x.element]
    u, u_lo = two_sum(m, m.constant(1.0, x.element), x)
    if isinstance(x_lo, Value):
        u_lo = u_lo + x_lo
    e, f, h, t = core(m, u)
    if isinstance(twos, Value):
        e = e + twos
    t = m.fma(e, k.ln2_lo, t) + u_lo / u
    return m.fma(e, k.ln2_hi, f - (h - t))


@function()
def log1p(m: Emitter, x: Value) -> Value:
    result = m.intrinsic("copysign", log1p_pair(m, x), x)
    result = m.select(m.compare("eq", x, infinity(m, x)), x, result)
    result = m.select(m.compare("eq", x, -1.0), infinity(m, x, -1), result)
    return m.select(m.compare("ult", x, -1.0), not_a_number(m, x), result)
