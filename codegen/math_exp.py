"""Exponentials: exp, exp2, expm1, sigmoid, the hyperbolic functions and their core.

exp(x) = 2^i * e^r with r in [-ln2/2, ln2/2], e^r = 1 + r + r^2 P(r).
"""

from __future__ import annotations

from . import coefficients as c
from .llvm import BIAS, MANTISSA, Emitter, Operand, Value
from .math_core import (
    CONSTANTS,
    LEAST,
    LN2,
    LOG2E,
    clamp,
    fast_two_sum,
    function,
    paired,
    polynomial,
    power_of_two,
    round_scaled,
    split_power,
    two_sum,
    with_sign,
)

EXP = {"float": c.EXP_F32, "double": c.EXP_F64}
EXPM1 = {"float": c.EXPM1_F32, "double": c.EXPM1_F64}
SINH = {"float": c.SINH_F32, "double": c.SINH_F64}

# Beyond these the result is 0 or inf after rounding; clamped so that exponents stay in range, and
# what is below is 0 without rounding (see split_power).
EXP_RANGE = {"float": (LEAST["float"] * LN2, 88.8), "double": (LEAST["double"] * LN2, 709.9)}
EXP2_RANGE = {"float": (LEAST["float"], 128.0), "double": (LEAST["double"], 1024.0)}
EXPM1_RANGE = {"float": (-18.0, 88.8), "double": (-38.0, 709.9)}
TANH_LIMIT = {"float": 10.0, "double": 22.0}
# ln2 / 2: as a float it is off by a 60th of its last place, so that one part is enough.
HALF_LN2 = {"float": (LN2 / 2,),
            "double": (CONSTANTS["double"].ln2_hi / 2, CONSTANTS["double"].ln2_lo / 2)}  # fmt: skip


def reduce(m: Emitter, x: Value) -> tuple[Value, Value]:
    """(r, i) with x = r + i * ln2."""
    k = CONSTANTS[x.element]
    n, i = round_scaled(m, x, LOG2E)
    r = m.fma(n, -k.ln2_hi, x)
    return m.fma(n, -k.ln2_lo, r), i


def less_one(m: Emitter, r: Value) -> Value:
    """e^r - 1"""
    square = r * r
    return m.fma(paired(m, r, square, EXP[r.element]), square, r)


def exp_reduced(m: Emitter, r: Value) -> Value:
    return less_one(m, r) + 1.0


def exp_scaled(m: Emitter, r: Value, i: Value) -> Value:
    """e^r 2^i"""
    first, last = split_power(m, i)
    return m.fma(less_one(m, r), first, first) * last


def exp_pair(m: Emitter, hi: Value, lo: Operand) -> Value:
    """exp(hi + lo), |lo| small against hi."""
    x = clamp(m, hi, *EXP_RANGE[hi.element])
    r, i = reduce(m, x)
    return exp_scaled(m, r + lo, i)


def exp_parts(m: Emitter, hi: Value, lo: Value) -> tuple[Value, Value, Value]:
    """exp(hi + lo) as (q, q_lo, i), meaning (q + q_lo) 2^i, better than one rounding."""
    k = CONSTANTS[hi.element]
    x = clamp(m, hi, *EXP_RANGE[hi.element])
    n, i = round_scaled(m, x, LOG2E)
    whole = m.fma(n, -k.ln2_hi, x)
    r = m.fma(n, -k.ln2_lo, whole)
    # lo may be many ulps of r, so it must enter the polynomial
    r, r_lo = two_sum(m, r, m.fma(n, -k.ln2_lo, whole - r) + lo)
    t = m.fma(polynomial(m, r, EXP[hi.element]), r * r, r_lo)
    s, s_lo = fast_two_sum(m.constant(1.0, hi.element), r)
    q, q_lo = fast_two_sum(s, t)
    return q, q_lo + s_lo, i


@function()
def exp(m: Emitter, x: Value) -> Value:
    r, i = reduce(m, clamp(m, x, *EXP_RANGE[x.element]))
    return exp_scaled(m, r, i)


@function()
def exp2(m: Emitter, x: Value) -> Value:
    x = clamp(m, x, *EXP2_RANGE[x.element])
    n, i = round_scaled(m, x, 1.0)
    return exp_scaled(m, (x - n) * LN2, i)


@function()
def expm1(m: Emitter, x: Value) -> Value:
    """2^i (e^r - 1) + (2^i - 1), halved meanwhile because 2^i may overflow alone."""
    y = clamp(m, x, *EXPM1_RANGE[x.element])
    r, i = reduce(m, y)
    q = m.fma(polynomial(m, r, EXPM1[x.element]), r * r, r)
    s = power_of_two(m, i - 1)
    e = m.fma(s, q, s - 0.5)
    return m.intrinsic("copysign", e + e, x)  # the sums lose the sign of -0.0


@function()
def sigmoid(m: Emitter, x: Value) -> Value:
    """1 / (1 + exp(-x)), from exp(-|x|) so that small results keep their precision."""
    r, i = reduce(m, clamp(m, -abs(x), EXP_RANGE[x.element][0], None))
    e = exp_scaled(m, r, i)
    over = m.select(x < 0.0, e, 1.0)
    # over / (e + 1), written so that where e is small only its own error counts
    return m.fma(-over, e / (e + 1.0), over)


@function()
def tanh(m: Emitter, x: Value) -> Value:
    """h / (1 + h) with h = (exp(2|x|) - 1) / 2, as c - c (c / (1 + h)) with c = min(h, 1): where h
    is small only its rounding counts, where it is large only the last one."""
    a = clamp(m, abs(x), None, TANH_LIMIT[x.element])
    magic = CONSTANTS[x.element].magic + BIAS[x.element]
    t = m.fma(a, 2 * LOG2E, magic)
    power = m.unbits(m.bits(t) << MANTISSA[x.element])  # 2^n: the bias is in t already
    n, r = t - magic, a
    for part in HALF_LN2[x.element]:
        r = m.fma(n, -part, r)
    square = r * r
    halved = [2 ** (k + 1) * c for k, c in enumerate(EXP[x.element])]  # of (exp(2r) - 1) / 2
    tail, base = paired(m, r, square, halved), m.fma(power, 0.5, -0.5)
    if x.element == "float":  # the shorter chain; doubles have an error in r already
        h = m.fma(tail, power * square, m.fma(power, r, base))
    else:
        h = m.fma(power, m.fma(tail, square, r), base)
    c = clamp(m, h, None, 1.0)
    return with_sign(m, m.fma(-c, c / (h + 1.0), c), x)


def half_exp(m: Emitter, a: Value) -> Value:
    """exp(a) / 2 for a >= 0; infinite only where exp(a) / 2 is."""
    r, i = reduce(m, clamp(m, a, None, EXP_RANGE[a.element][1] + LN2))
    return exp_scaled(m, r, i - 1)


@function()
def sinh(m: Emitter, x: Value) -> Value:
    a = abs(x)
    u = x * x
    small = m.fma(polynomial(m, u, SINH[x.element]) * u, a, a)
    h = half_exp(m, a)
    return m.intrinsic("copysign", m.select(a < 1.0, small, h - 0.25 / h), x)


@function()
def cosh(m: Emitter, x: Value) -> Value:
    h = half_exp(m, abs(x))
    return h + 0.25 / h
