"""Powers and roots (pow, cbrt, hypot) and the inverse hyperbolic functions."""

from __future__ import annotations

from . import coefficients as c
from . import math_exp, math_log
from .llvm import Emitter, Value
from .math_core import (
    CONSTANTS,
    clamp,
    divide_pair,
    fast_two_sum,
    function,
    infinity,
    is_nan,
    not_a_number,
    polynomial,
    power_of_two,
    round_scaled,
    split_exponent,
    two_product,
    two_sum,
)

TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def log_pair(m: Emitter, x: Value) -> tuple[Value, Value]:
    """log(x), x > 0, as a sum of two doubles, good to about 2^-65.

    log(y) = 2s + s^3 (2/3 + u T(u)), s = (y - 1) / (y + 1), u = s^2; all but T in pairs.
    """
    k = CONSTANTS["double"]
    y, e = split_exponent(m, x)
    s, s_lo = divide_pair(m, y - 1.0, 0.0, *two_sum(m, y, m.constant(1.0, "double")))
    u, u_lo = two_product(m, s, s)
    u_lo = m.fma(s + s, s_lo, u_lo)
    v, v_lo = fast_two_sum(TWO_THIRDS[0], u * polynomial(m, u, c.LOG_TAIL_F64))
    v_lo = v_lo + TWO_THIRDS[1]
    w, w_lo = two_product(m, s, u)
    w_lo = w_lo + m.fma(s, u_lo, s_lo * u)
    z, z_lo = two_product(m, w, v)
    z_lo = z_lo + m.fma(w, v_lo, w_lo * v)
    hi, lo = fast_two_sum(e * k.ln2_hi, s + s)
    hi, lo_2 = fast_two_sum(hi, z)
    lo = lo + lo_2 + (z_lo + m.fma(e, k.ln2_lo, s_lo + s_lo))
    return fast_two_sum(hi, lo)


def _pow_double(m: Emitter, a: Value, y: Value) -> Value:
    log_hi, log_lo = log_pair(m, a)
    p, p_lo = two_product(m, log_hi, y)
    p_lo = m.fma(log_lo, y, p_lo)
    # beyond exp's range only the side counts, and p_lo may be inf - inf
    p_lo = m.select(abs(p) < 1000.0, p_lo, 0.0)
    return math_exp.exp_pair(m, p, p_lo)


def _pow_float(m: Emitter, a: Value, y: Value) -> Value:
    """In plain doubles: their 29 spare bits cover the exponent's 8."""
    k = CONSTANTS["double"]
    e, f, h, t = math_log.core(m, m.widen(a))
    log = m.fma(e, k.ln2_hi, f - (h - m.fma(e, k.ln2_lo, t)))
    p = clamp(m, log * m.widen(y), -200.0, 200.0)
    r, i = math_exp.reduce(m, p)
    # what rounds to 0 is 0 before: see split_power
    scale = m.select(p < math_exp.EXP_RANGE["float"][0], 0.0, power_of_two(m, i))
    return m.narrow(math_exp.exp_reduced(m, r) * scale)


@function(arity=2, outline="float double")
def pow_(m: Emitter, x: Value, y: Value) -> Value:
    a, inf = abs(x), infinity(m, x)
    result = (_pow_float if x.element == "float" else _pow_double)(m, a, y)
    zero = m.constant(0.0, x.element)
    down = y < 0.0
    a_inf = m.compare("eq", a, inf)
    result = m.select(m.compare("eq", a, 0.0), m.select(down, inf, zero), result)
    result = m.select(a_inf, m.select(down, zero, inf), result)
    result = m.select(m.compare("eq", a, 1.0), 1.0, result)
    whole = m.compare("eq", y, m.intrinsic("trunc", y))
    half = y * 0.5
    odd = whole & m.compare("ne", half, m.intrinsic("trunc", half))
    result = m.select((m.bits(x) < 0) & odd, -result, result)
    no_root = (x < 0.0) & m.invert(whole) & m.invert(a_inf)
    result = m.select(no_root, not_a_number(m, x), result)
    result = m.select(is_nan(m, x) | is_nan(m, y), x + y, result)
    return m.select(m.compare("eq", y, 0.0) | m.compare("eq", x, 1.0), 1.0, result)


@function(wide=True, outline="float double")
def cbrt(m: Emitter, x: Value) -> Value:
    """2^n cbrt(t), t = y 2^j with j in -1, 0, 1; a cubic estimate and two Halley steps."""
    y, e = split_exponent(m, abs(x))
    n, i = round_scaled(m, e, 1 / 3)
    j = e - n * 3.0
    t = y * m.select(j > 0.0, 2.0, m.select(j < 0.0, m.constant(0.5, "double"), 1.0))
    b = polynomial(m, t, c.CBRT_F64)
    for _ in range(2):  # Halley: error to the third power, 2e-3 to 1e-9 to far below an ulp
        cube = b * b * b
        b = b - b * ((cube - t) / (cube + cube + t))
    # one Newton step with the residual t - b^3 exact to twice the precision
    q, q_lo = two_product(m, b, b)
    p, p_lo = two_product(m, q, b)
    rest = (t - p) - m.fma(q_lo, b, p_lo)
    b = b + rest / (q * 3.0)
    result = m.intrinsic("copysign", b * power_of_two(m, i), x)
    odd = m.compare("eq", x, 0.0) | m.compare("ueq", abs(x), infinity(m, x))
    return m.select(odd, x, result)


def _hypot_double(m: Emitter, a: Value, b: Value) -> Value:
    """sqrt(a^2 + b^2) with the squares' errors, scaled away from overflow and underflow."""
    big, small = m.select(a > b, a, b), m.select(a > b, b, a)
    step, one = 2.0**600, m.constant(1.0, "double")
    tiny, huge = big < 1e-140, big > 1e150
    up = m.select(tiny, step, m.select(huge, 1 / step, one))
    down = m.select(tiny, 1 / step, m.select(huge, step, one))
    p, q = big * up, small * up
    s, s_lo = two_product(m, p, p)
    t, t_lo = two_product(m, q, q)
    total, rest = fast_two_sum(s, t)
    root = m.intrinsic("sqrt", total)
    correction = (m.fma(-root, root, total) + (rest + (s_lo + t_lo))) / (root + root)
    return m.select(m.compare("eq", total, 0.0), root, root + correction) * down


@function(arity=2, outline="double")
def hypot(m: Emitter, x: Value, y: Value) -> Value:
    a, b = abs(x), abs(y)
    if x.element == "float":  # the squares of floats are exact doubles
        p, q = m.widen(x), m.widen(y)
        result = m.narrow(m.intrinsic("sqrt", m.fma(p, p, q * q)))
    else:
        result = _hypot_double(m, a, b)
    inf = infinity(m, x)
    any_inf = m.compare("eq", a, inf) | m.compare("eq", b, inf)
    result = m.select(is_nan(m, x) | is_nan(m, y), x + y, result)
    return m.select(any_inf, inf, result)


@function(wide=True, outline="float double")
def asinh(m: Emitter, x: Value) -> Value:
    """log1p(a + a^2 / (1 + sqrt(a^2 + 1))); beyond 2^28, log(2a)."""
    a = abs(x)
    far = a > 2.0**28
    near = m.select(far, 1.0, a)
    square = near * near
    rest = square / (m.intrinsic("sqrt", square + 1.0) + 1.0)
    w, w_lo = fast_two_sum(near, rest)
    zero = m.constant(0.0, "double")
    w, w_lo = m.select(far, a - 1.0, w), m.select(far, zero, w_lo)
    result = math_log.log1p_pair(m, w, w_lo, m.select(far, 1.0, zero))
    result = m.select(m.compare("ueq", a, infinity(m, x)), a, result)
    return m.intrinsic("copysign", result, x)


@function(wide=True, outline="float double")
def acosh(m: Emitter, x: Value) -> Value:
    """log1p(t + sqrt(t (t + 2))), t = x - 1; beyond 2^28, log(2x)."""
    far = x > 2.0**28
    t = m.select(far, 1.0, x - 1.0)
    p, p_lo = two_product(m, t, t + 2.0)
    root = m.intrinsic("sqrt", p)
    fix = (m.fma(-root, root, p) + p_lo) / (root + root)
    fix = m.select(m.compare("eq", p, 0.0), 0.0, fix)
    w, w_lo = two_sum(m, t, root)
    zero = m.constant(0.0, "double")
    w, w_lo = m.select(far, x - 1.0, w), m.select(far, zero, w_lo + fix)
    result = math_log.log1p_pair(m, w, w_lo, m.select(far, 1.0, zero))
    result = m.select(m.compare("eq", x, infinity(m, x)), x, result)
    return m.select(m.compare("ult", x, 1.0), not_a_number(m, x), result)


@function(wide=True, outline="float double")
def atanh(m: Emitter, x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2."""
    a = abs(x)
    q, q_lo = divide_pair(m, a + a, 0.0, *two_sum(m, m.constant(1.0, "double"), -a))
    result = math_log.log1p_pair(m, q, q_lo) * 0.5
    result = m.select(m.compare("eq", a, 1.0), infinity(m, x), result)
    result = m.select(a > 1.0, not_a_number(m, x), result)
    return m.intrinsic("copysign", result, x)
