"""Error functions and their inverse, the gamma functions.

erfc(a) = exp(-a^2) erfcx(a), and (1 + 2a) erfcx(a) is smooth in t = (a - 4) / (a + 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from . import coefficients as c
from . import math_exp, math_power
from .llvm import Emitter, Value
from .math_core import (
    clamp,
    divide_pair,
    fast_two_sum,
    function,
    infinity,
    not_a_number,
    polynomial,
    power_of_two,
    scale_by_power,
    two_product,
    two_sum,
)

EULER = 0.5772156649015329


def _erf_float(m: Emitter, x: Value) -> Value:
    """x + x P(x^2) up to 0.93, then 1 - exp(-t - t Q(t))."""
    a = abs(x)
    near = m.fma(polynomial(m, x * x, c.ERF_F32), x, x)
    t = clamp(m, a, None, 4.0)
    w = -m.fma(polynomial(m, t, c.ERF_TAIL_F32), t, t)
    r, i = math_exp.reduce(m, w)
    far = m.fma(math_exp.exp_reduced(m, r), -power_of_two(m, i), 1.0)
    return m.select(m.compare("ugt", a, 0.93), m.intrinsic("copysign", far, x), near)


def _erfc_tail(m: Emitter, a: Value) -> Value:
    """erfc(a) for a >= 0.49: the factors as pairs, so that only the last product rounds."""
    a = clamp(m, a, None, 28.0)
    t = (a - 4.0) / (a + 4.0)
    square, low = two_product(m, a, a)
    q, q_lo, i = math_exp.exp_parts(m, -square, -low)
    p, p_lo = fast_two_sum(c.ERFCX_F64[0], polynomial(m, t, c.ERFCX_F64[1:]) * t)
    d = m.fma(a, 2.0, 1.0)
    w, w_lo = divide_pair(m, p, p_lo, d, m.fma(a, 2.0, 1.0 - d))
    y, y_lo = two_product(m, q, w)
    return scale_by_power(m, y + (y_lo + m.fma(q, w_lo, q_lo * w)), i)


@function(outline="double")
def erf(m: Emitter, x: Value) -> Value:
    if x.element == "float":
        return _erf_float(m, x)
    a = abs(x)
    near = m.fma(polynomial(m, x * x, c.ERF_F64), x, x)
    far = m.intrinsic("copysign", 1.0 - _erfc_tail(m, clamp(m, a, 0.5, None)), x)
    return m.select(a < 1.0, near, far)


@function(outline="float double", wide=True)
def erfc(m: Emitter, x: Value) -> Value:
    a = abs(x)
    near = 1.0 - m.fma(polynomial(m, x * x, c.ERF_F64), x, x)
    tail = _erfc_tail(m, clamp(m, a, 0.49, None))
    return m.select(a < 0.5, near, m.select(x < 0.0, 2.0 - tail, tail))


def _ratio(m: Emitter, x: Value, over: Sequence[float], under: Sequence[float]) -> Value:
    return polynomial(m, x, over) / polynomial(m, x, under)


def _chosen(m: Emitter, cond: Value, a: Sequence[float], b: Sequence[float]) -> list[Value]:
    """The coefficients of a where cond holds, else of b."""
    return [m.select(cond, m.constant(p, "double"), q) for p, q in zip(a, b)]


@function(outline="float double", wide=True)
def erfinv(m: Emitter, x: Value) -> Value:
    """Up to 0.85, x (sqrt(pi)/2 + x^2 R); beyond, s (1 + start + t R(t)) in two pieces, where
    s = sqrt(-log(1 - |x|)) and t is its distance from the piece's start."""
    a = abs(x)
    u = x * x
    r = _ratio(m, 0.7225 - u, c.ERFINV_MIDDLE_OVER, c.ERFINV_MIDDLE_UNDER)
    middle = m.fma(a, 0.8862269254527580, a * (u * r))
    v = -m.call("log", clamp(m, 1.0 - a, 2.0**-54, 0.15))
    s = m.intrinsic("sqrt", v)
    s_lo = m.fma(-s, s, v) / (s + s)
    near = s < 2.75
    t = s - m.select(near, 1.375, m.constant(2.75, "double"))
    start = m.select(near, c.ERFINV_START[0], m.constant(c.ERFINV_START[1], "double"))
    over = _chosen(m, near, c.ERFINV_NEAR_OVER, c.ERFINV_FAR_OVER)
    under = _chosen(m, near, c.ERFINV_NEAR_UNDER, c.ERFINV_FAR_UNDER)
    ratio = m.fma(polynomial(m, t, over) / polynomial(m, t, under), t, start)
    tail = s + m.fma(ratio, s, s_lo)
    result = m.select(a < 0.85, middle, tail)
    result = m.select(m.compare("eq", a, 1.0), infinity(m, x), result)
    result = m.select(m.compare("ugt", a, 1.0), not_a_number(m, x), result)
    return m.intrinsic("copysign", result, x)


def _lgamma_positive(m: Emitter, x: Value) -> Value:
    """x < 1/2: lgamma(1 + x) - log(x). Below 3: z (z - 1) (value + (z - centre) R), z = x - 1.
    Below 8: down to [2, 3) by the product of the steps. Then Stirling's series. One logarithm
    serves all."""
    one = m.constant(1.0, "double")
    tiny, far = x < 0.5, x >= 8.0
    y, product = x, one
    for _ in range(5):
        above = y >= 3.0
        y = m.select(above, y - 1.0, y)
        product = m.select(above, product * y, product)
    z = m.select(tiny, x, y - 1.0)
    low = z < 0.5
    t = z + m.select(low, 0.5, m.constant(-0.5, "double"))
    value = m.select(low, EULER, m.constant(1 - EULER, "double"))
    step = m.select(low, z, z - 1.0)
    over = _chosen(m, low, c.LGAMMA_LOW_OVER, c.LGAMMA_HIGH_OVER)
    under = _chosen(m, low, c.LGAMMA_LOW_UNDER, c.LGAMMA_HIGH_UNDER)
    r = m.fma(polynomial(m, t, over) / polynomial(m, t, under), step, value)
    w, w_lo = two_product(m, z, z - 1.0)
    log, log_lo = math_power.log_pair(m, m.select(tiny | far, x, product))
    near = m.fma(w, r, m.fma(w_lo, r, m.select(tiny, -log, log)))
    inverse = one / x
    series = polynomial(m, inverse * inverse, c.LGAMMA_FAR_F64) * inverse
    series = m.fma(x - 0.5, log_lo, series + 0.4189385332046727)
    stirling = m.fma(x - 0.5, log - 1.0, series)
    return m.select(far, stirling, near)


def _from_whole(m: Emitter, x: Value) -> Value:
    """x - round(x), exactly."""
    return x - m.intrinsic("roundeven", x)


@function(outline="float double", wide=True)
def lgamma(m: Emitter, x: Value) -> Value:
    """log |Gamma(x)|; for x <= 0 by reflection, so the zeros there have absolute accuracy only."""
    a = abs(x)
    positive = _lgamma_positive(m, a)

    def reflected() -> list[Value]:
        sine = abs(m.call("sin", _from_whole(m, a) * math.pi))
        return [m.call("log", math.pi / (a * sine)) - positive]

    result = m.rarely(x < 0.0, [positive], reflected)[0]
    whole = m.compare("eq", x, m.intrinsic("trunc", x)) & (x <= 0.0)
    pole = whole | m.compare("eq", a, infinity(m, x))
    return m.select(pole, infinity(m, x), result)


def _digamma_positive(m: Emitter, x: Value) -> Value:
    """Below 1, psi(x + 1) - 1/x; to 2.25, d (slope + d R), d = x - root; then a series."""
    far, below = x >= 2.25, x < 1.0
    inverse = 1.0 / x
    z = m.select(below, x, x - 1.0)
    r = _ratio(m, z, c.DIGAMMA_OVER, c.DIGAMMA_UNDER)
    d, d_lo = two_sum(m, z, m.constant(1.0 - c.DIGAMMA_ROOT[0], "double"))
    d_lo = d_lo - c.DIGAMMA_ROOT[1]
    r = m.fma(r, d, c.DIGAMMA_SLOPE)
    zero = m.constant(0.0, "double")
    lost = m.fma(inverse, x, -1.0) * inverse  # what rounding added to 1/x
    near = m.fma(d, r, m.select(below, -inverse, zero))
    near = near + m.fma(d_lo, r, m.select(below & (x > 0.01), lost, zero))
    square = inverse * inverse
    series = m.fma(polynomial(m, square, c.DIGAMMA_FAR_F64), square, inverse * 0.5)
    log, log_lo = math_power.log_pair(m, x)
    result = m.select(far, log - (series - log_lo), near)
    return m.select(m.compare("eq", x, infinity(m, x)), x, result)


@function(outline="float double", wide=True)
def digamma(m: Emitter, x: Value) -> Value:
    """For x < 0 psi(1 - x) - pi / tan(pi x); poles give NaN, and +-inf at the zeros."""
    below = x < 0.0
    positive = _digamma_positive(m, m.select(below, 1.0 - x, x))

    def reflected() -> list[Value]:
        return [positive - math.pi / m.call("tan", _from_whole(m, x) * math.pi)]

    result = m.rarely(below, [positive], reflected)[0]
    pole = below & m.compare("eq", x, m.intrinsic("trunc", x))
    result = m.select(pole, not_a_number(m, x), result)
    zero = m.intrinsic("copysign", infinity(m, x), -x)
    return m.select(m.compare("eq", x, 0.0), zero, result)
