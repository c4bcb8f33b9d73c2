"""What the math functions share: their table, polynomials, exponents, double-double arithmetic.

A math function is a Python function of an Emitter and values, generic in the element type and in
the number of lanes.

Note [Outlined functions]
    Long ones, and those with a rarely taken branch, stay out of line and name vector variants of
    themselves, which LLVM's loop vectoriser calls; the others are inlined into the loop. So a long
    body is compiled once, not once per unrolled copy.

Invariants: no flags, no undefined results: a conversion that could be poison is never emitted.
Error-free steps (two_sum, two_product) rely on fma and on LLVM not reassociating.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .llvm import BIAS, MANTISSA, Emitter, Operand, Value


@dataclass(frozen=True)
class MathFunction:
    """One entry of the prelude; `wide` bodies serve float by computing in double."""

    name: str
    arity: int
    body: Callable[..., Value]
    outline: tuple[str, ...]
    wide: bool


TABLE: dict[str, MathFunction] = {}


def function(arity: int = 1, outline: str = "", wide: bool = False) -> Callable:
    """Enters a body into the table under its own name (a trailing underscore is dropped).

    `outline` lists the element types, e.g. "double", for which it stays out of line.
    """

    def enter(body: Callable[..., Value]) -> Callable[..., Value]:
        name = body.__name__.rstrip("_")
        TABLE[name] = MathFunction(name, arity, body, tuple(outline.split()), wide)
        return body

    return enter


@dataclass(frozen=True)
class Constants:
    """Numbers that depend on the element type.

    magic: adding it leaves an integer in the low bits; ln2_hi has so few bits that n * ln2_hi is
    exact for every exponent n; the other pairs are a constant rounded and what rounding lost.
    """

    magic: float
    ln2_hi: float
    ln2_lo: float
    log2e_lo: float
    log10e_hi: float
    log10e_lo: float
    log10_2_hi: float
    log10_2_lo: float
    tiny: float
    huge: float


# Takes the smallest results below normal numbers; the least exponent, whose first factor is 0
DOWN = {"float": 2.0**-25, "double": 2.0**-54}
LEAST = {"float": -152, "double": -1077}
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453

CONSTANTS = {
    "float": Constants(
        magic=12582912.0,
        ln2_hi=0.693145751953125,
        ln2_lo=1.4286068203094173e-06,
        log2e_lo=1.9259629911266175e-08,
        log10e_hi=0.4342944920063019,
        log10e_lo=-1.0103050052231683e-08,
        log10_2_hi=0.301025390625,
        log10_2_lo=4.605038981195214e-06,
        tiny=1.1754943508222875e-38,
        huge=3.4028234663852886e38,
    ),
    "double": Constants(
        magic=6755399441055744.0,
        ln2_hi=float.fromhex("0x1.62e42fefa3000p-1"),
        ln2_lo=float.fromhex("0x1.3de6af278ece6p-42"),
        log2e_lo=2.0355273740931033e-17,
        log10e_hi=0.4342944819032518,
        log10e_lo=1.098319650216765e-17,
        log10_2_hi=float.fromhex("0x1.34413509f7000p-2"),
        log10_2_lo=float.fromhex("0x1.3fde623e2566bp-43"),
        tiny=2.2250738585072014e-308,
        huge=1.7976931348623157e308,
    ),
}


def polynomial(m: Emitter, x: Value, coefficients: Sequence[Operand]) -> Value:
    """Horner's rule, lowest power first."""
    result = m.wrap(coefficients[-1], x.element)
    for c in coefficients[-2::-1]:
        result = m.fma(result, x, c)
    return result


def paired(m: Emitter, x: Value, square: Value, coefficients: Sequence[Operand]) -> Value:
    """A polynomial whose pairs of terms are made side by side: half as long a chain."""
    pairs = [m.fma(b, x, a) for a, b in zip(coefficients[::2], coefficients[1::2])]
    return polynomial(m, square, [*pairs, *coefficients[2 * len(pairs) :]])


def clamp(m: Emitter, x: Value, low: float | None, high: float | None) -> Value:
    """x kept in [low, high]; the comparisons are false for NaN, which so passes."""
    if low is not None:
        x = m.select(x < low, low, x)
    return x if high is None else m.select(x > high, high, x)


def with_sign(m: Emitter, y: Value, x: Value) -> Value:
    """y >= 0 with the sign of x: one instruction less than copysign, which clears y's sign."""
    return m.unbits(m.bits(y) | (m.bits(x) & m.bits(m.constant(-0.0, x.element))))


def round_scaled(m: Emitter, x: Value, scale: Operand) -> tuple[Value, Value]:
    """round(x * scale) as a float and as an integer, without a conversion; |.| < 2^22 or 2^51."""
    magic = CONSTANTS[x.element].magic
    t = m.fma(x, scale, magic)
    offset = 0x4B400000 if x.element == "float" else 0x4338000000000000
    return t - magic, m.bits(t) - offset


def power_of_two(m: Emitter, i: Value) -> Value:
    """2^i for exponents of normal numbers."""
    element = "float" if i.element == "i32" else "double"
    return m.unbits((i + BIAS[element]) << MANTISSA[element])


def split_power(m: Emitter, i: Value) -> tuple[Value, Value]:
    """2^i as two factors: x * first is exact for x near 1, so that x * first * last rounds once,
    for denormal results too. The last is one of two, so that the first is a normal number.

    At the least exponent the first is 0, by its bits. So what is clamped there, as the scores that
    a mask makes -inf in a softmax, never meets the multipliers as a result below normal numbers:
    those take a CPU ten times as long.
    """
    element = "float" if i.element == "i32" else "double"
    last = m.select(i < 0, DOWN[element], m.constant(2.0, element))
    first = ((i + 2 * BIAS[element]) << MANTISSA[element]) - m.bits(last)
    return m.unbits(first), last


def scale_by_power(m: Emitter, x: Value, i: Value) -> Value:
    """x * 2^i for x near 1."""
    first, last = split_power(m, i)
    return x * first * last


def split_exponent(m: Emitter, x: Value) -> tuple[Value, Value]:
    """x > 0 as (y, e) with x = y * 2^e, y in [sqrt(1/2), sqrt(2)), e a float. Denormals too."""
    element, bits = x.element, MANTISSA[x.element]
    small = x < CONSTANTS[element].tiny
    x = m.select(small, x * 2.0 ** (bits + 1), x)
    root, one = (
        (0x3F3504F3, 0x3F800000) if element == "float" else (0x3FE6A09E667F3BCD, 0x3FF0000000000000)
    )
    shifted = m.bits(x) + (one - root)
    y = m.unbits((shifted & ((1 << bits) - 1)) + root)
    # the exponent becomes a float by placing it into the mantissa of 2^bits
    e = m.unbits(m.binary("lshr", shifted, bits) | ((BIAS[element] + bits) << bits))
    offset = 2.0**bits + BIAS[element]
    return y, e - m.select(small, offset + bits + 1, m.constant(offset, element))


def two_sum(m: Emitter, a: Value, b: Value) -> tuple[Value, Value]:
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def fast_two_sum(a: Operand, b: Value) -> tuple[Value, Value]:
    """a + b exactly as two values; |a| >= |b| or a == 0."""
    s = a + b
    return s, b - (s - a)


def two_product(m: Emitter, a: Value, b: Operand) -> tuple[Value, Value]:
    p = a * b
    return p, m.fma(a, b, -p)


def divide_pair(
    m: Emitter, a: Value, a_lo: Operand, b: Value, b_lo: Operand
) -> tuple[Value, Value]:
    """(a + a_lo) / (b + b_lo) as an unevaluated sum."""
    q = a / b
    rest = m.fma(-q, b, a) + a_lo
    if isinstance(b_lo, Value) or b_lo != 0:
        rest = rest - q * b_lo
    return q, rest / b


def infinity(m: Emitter, x: Value, sign: float = 1.0) -> Value:
    return m.constant(sign * math.inf, x.element)


def not_a_number(m: Emitter, x: Value) -> Value:
    return m.constant(math.nan, x.element)


def is_nan(m: Emitter, x: Value) -> Value:
    return m.compare("uno", x, x)
