"""Trigonometric functions and their inverses.

An angle is reduced to r in [-pi/4, pi/4] and a count i of quarter turns. The usual range takes a
few multiply-adds. Beyond it, a rare branch: with x = a 2^(26k), the table holds 2^(26k) * 2/pi
without its whole turns, so the product with a is small; its parts are exact and only whole turns
are dropped. So every finite argument is reduced to full precision.
"""

from __future__ import annotations

import math

from . import coefficients as c
from .llvm import Emitter, Value
from .math_core import (
    CONSTANTS,
    divide_pair,
    fast_two_sum,
    function,
    infinity,
    is_nan,
    polynomial,
    power_of_two,
    round_scaled,
    two_product,
    two_sum,
)

SIN = {"float": c.SIN_F32, "double": c.SIN_F64}
COS = {"float": c.COS_F32, "double": c.COS_F64}
ASIN = {"float": c.ASIN_F32, "double": c.ASIN_F64}
ATAN = {"float": c.ATAN_F32, "double": c.ATAN_F64}

# pi/2 in three parts; the float's first is short, so that n * part is exact up to 48000
PIO2 = {
    "float": (1.57079601287841796875, 3.1391647326017846e-7, 5.390302529957765e-15),
    "double": (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
TURNS_F32 = (c.TURNS_F32_0, c.TURNS_F32_1, c.TURNS_F32_2, c.TURNS_F32_3)
TURNS_F64 = (c.TURNS_F64_0, c.TURNS_F64_1, c.TURNS_F64_2, c.TURNS_F64_3)


def _drop(x: Value, multiple: float) -> Value:
    """x without the nearest multiple; exact for |x| < multiple * 2^51."""
    magic = 1.5 * 2.0**52 * multiple
    return x - ((x + magic) - magic)


def _huge_float(m: Emitter, x: Value) -> list[Value]:
    a = m.widen(x)
    size = abs(a)
    row = [m.constant(v, "double") for v in TURNS_F32[0]]
    for k in (1, 2, 3):
        beyond = size >= 2.0 ** (25 + 26 * k)
        row = [m.select(beyond, v, w) for v, w in zip(TURNS_F32[k], row)]
    a = a * row[0]
    v, w = _drop(a * row[1], 4.0), _drop(a * row[2], 4.0)
    n, i = round_scaled(m, v + w, 1.0)
    turns = ((v - n) + w) + a * row[3]
    return [m.narrow(turns * (math.pi / 2)), m.convert("trunc", i, "i32")]


def _reduce_float(m: Emitter, x: Value) -> list[Value]:
    """[r, i]."""
    n, i = round_scaled(m, x, 2 / math.pi)
    r = x
    for part in PIO2["float"]:
        r = m.fma(n, -part, r)
    beyond = m.compare("ugt", abs(x), 48000.0)
    return m.rarely(beyond, [r, i], lambda: _huge_float(m, x))


def _huge_double(m: Emitter, x: Value) -> list[Value]:
    exponent = m.binary("lshr", m.bits(abs(x)), 52)
    steps = exponent - (1023 + 52)
    steps = m.select(steps < 0, 0, steps)
    # floor(steps / 26), exact for all of them; infinities and NaN are kept inside the table
    k = m.binary("lshr", steps * 2521, 16)
    k = m.select(k > 37, 37, k)
    a = x * power_of_two(m, k * -26)
    parts = [m.lookup(f"w_turns_{j}", TURNS_F64[j], k) for j in range(4)]
    p, p_lo = two_product(m, a, parts[0])
    q, q_lo = two_product(m, a, parts[1])
    t, t_lo = two_product(m, a, parts[2])
    s, low = two_sum(m, _drop(_drop(p, 2.0**28), 4.0), _drop(p_lo, 4.0))
    s, e = two_sum(m, s, _drop(q, 4.0))
    low = low + e
    n, i = round_scaled(m, s, 1.0)
    s, e = two_sum(m, s - n, q_lo)
    low = low + e
    s, e = two_sum(m, s, t)
    low = low + e + m.fma(a, parts[3], t_lo)
    s, low = two_sum(m, s, low)
    r, r_lo = two_product(m, s, PIO2["double"][0])
    r_lo = r_lo + m.fma(low, PIO2["double"][0], s * PIO2["double"][1])
    return [r, r_lo, i]


def _reduce_double(m: Emitter, x: Value) -> list[Value]:
    """[r, r_lo, i]."""
    n, i = round_scaled(m, x, 2 / math.pi)
    p, p_lo = two_product(m, n, PIO2["double"][0])
    q, q_lo = two_product(m, n, PIO2["double"][1])
    r, e = two_sum(m, x - p, -p_lo)
    r, f = two_sum(m, r, -q)
    low = (e + f) - m.fma(n, PIO2["double"][2], q_lo)
    r, low = fast_two_sum(r, low)
    beyond = m.compare("ugt", abs(x), 2.0**50)
    return m.rarely(beyond, [r, low, i], lambda: _huge_double(m, x))


def _sine_and_cosine(m: Emitter, r: Value, low: Value | None) -> list[tuple[Value, Value]]:
    """sin and cos of r + low, each as a value and a correction."""
    u = r * r
    cube = polynomial(m, u, SIN[r.element]) * u * r
    half = u * 0.5
    w = 1.0 - half
    rest = (1.0 - w) - half
    fourth = polynomial(m, u, COS[r.element]) * u
    if low is None:
        return [(r, cube), (w, m.fma(fourth, u, rest))]
    return [(r, m.fma(low, w, cube)), (w, m.fma(fourth, u, rest - r * low))]


def _turn(m: Emitter, x: Value, ahead: int) -> Value:
    """sin(x + ahead * pi/2)."""
    reduced = _reduce_float(m, x) if x.element == "float" else _reduce_double(m, x)
    r, i = reduced[0], reduced[-1]
    (s, s_lo), (w, w_lo) = _sine_and_cosine(m, r, reduced[1] if len(reduced) == 3 else None)
    if ahead:
        i = i + ahead
    value = m.select(m.compare("ne", i & 1, 0), w + w_lo, s + s_lo)
    sign = (i & 2) << (30 if x.element == "float" else 62)
    return m.unbits(m.bits(value) ^ sign)


@function(outline="float double")
def sin(m: Emitter, x: Value) -> Value:
    # the sums turn -0.0 into 0.0
    return m.select(m.compare("eq", x, 0.0), x, _turn(m, x, 0))


@function(outline="float double")
def cos(m: Emitter, x: Value) -> Value:
    return _turn(m, x, 1)


@function(outline="float double", wide=True)
def tan(m: Emitter, x: Value) -> Value:
    r, low, i = _reduce_double(m, x)
    pairs = _sine_and_cosine(m, r, low)
    (s, s_lo), (w, w_lo) = (fast_two_sum(*pair) for pair in pairs)
    odd = m.compare("ne", i & 1, 0)
    over, under = m.select(odd, -w, s), m.select(odd, s, w)
    over_lo, under_lo = m.select(odd, -w_lo, s_lo), m.select(odd, s_lo, w_lo)
    q, q_lo = divide_pair(m, over, over_lo, under, under_lo)
    return m.select(m.compare("eq", x, 0.0), x, q + q_lo)


def _asin_core(m: Emitter, x: Value) -> tuple[Value, Value, Value]:
    """(outer, s, t): |x| > 1/2; asin(s) = s + t for s = |x|, or sqrt((1 - |x|) / 2) if outer."""
    a = abs(x)
    outer = a > 0.5
    u = m.select(outer, m.fma(a, -0.5, 0.5), x * x)
    s = m.select(outer, m.intrinsic("sqrt", u), a)
    return outer, s, polynomial(m, u, ASIN[x.element]) * u * s


@function()
def asin(m: Emitter, x: Value) -> Value:
    hi, lo, _ = _pio2_pair(x)
    outer, s, t = _asin_core(m, x)
    far = hi - ((s + s) - (lo - (t + t)))
    return m.intrinsic("copysign", m.select(outer, far, s + t), x)


@function()
def acos(m: Emitter, x: Value) -> Value:
    hi, lo, _ = _pio2_pair(x)
    outer, s, t = _asin_core(m, x)
    twice = (s + t) * 2.0
    far = m.select(x < 0.0, (hi - (m.fma(t, 1.0, s) - lo)) * 2.0, twice)
    t = m.intrinsic("copysign", t, x)
    return m.select(outer, far, hi - (x - (lo - t)))


def _pio2_pair(x: Value) -> tuple[float, float, float]:
    """pi/2 rounded, what is lost, and pi/4."""
    if x.element == "float":
        return 1.5707963705062866, -4.371139000186241e-08, 0.7853981852531433
    return 1.5707963267948966, 6.123233995736766e-17, 0.7853981633974483


def _atan_ratio(m: Emitter, y: Value, x: Value) -> Value:
    """atan(y / x) for y, x >= 0, x or y not 0, without overflow of y + x."""
    hi, lo, _ = _pio2_pair(y)
    steep, middle = y > x * 2.4142135623730950, y > x * 0.4142135623730950
    over = m.select(steep, -x, m.select(middle, y - x, y))
    under = m.select(steep, y, m.select(middle, y + x, x))
    t = over / under
    u = t * t
    rest = polynomial(m, u, ATAN[y.element]) * u * t
    zero = m.constant(0.0, y.element)
    base = m.select(steep, hi, m.select(middle, hi / 2, zero))
    base_lo = m.select(steep, lo, m.select(middle, lo / 2, zero))
    return base + (t + (rest + base_lo))


@function()
def atan(m: Emitter, x: Value) -> Value:
    a = abs(x)
    hi, _, _ = _pio2_pair(x)
    result = _atan_ratio(m, a, m.constant(1.0, x.element))
    result = m.select(m.compare("eq", a, infinity(m, x)), hi, result)
    return m.intrinsic("copysign", result, x)


@function(arity=2, outline="float double")
def atan2(m: Emitter, y: Value, x: Value) -> Value:
    b, a = abs(y), abs(x)
    hi, lo, _ = _pio2_pair(y)
    # infinities: only their ratio counts; large values are scaled so that a + b is finite
    limit = CONSTANTS[y.element].huge
    b_inf, a_inf = m.compare("eq", b, infinity(m, y)), m.compare("eq", a, infinity(m, y))
    any_inf = b_inf | a_inf
    one, zero = m.constant(1.0, y.element), m.constant(0.0, y.element)
    down = (b > limit / 4) | (a > limit / 4)
    b1 = m.select(any_inf, m.select(b_inf, one, zero), m.select(down, b * 0.125, b))
    a1 = m.select(any_inf, m.select(a_inf, one, zero), m.select(down, a * 0.125, a))
    origin = m.compare("eq", b1, 0.0) & m.compare("eq", a1, 0.0)
    angle = _atan_ratio(m, b1, m.select(origin, one, a1))
    left = m.bits(x) < 0  # the sign bit: -0.0 counts
    angle = m.select(left, 2 * hi - (angle - 2 * lo), angle)
    nan = is_nan(m, y) | is_nan(m, x)
    return m.select(nan, y + x, m.intrinsic("copysign", angle, y))
