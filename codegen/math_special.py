"""Error functions and their inverse, the gamma functions.

erfc(a) = exp(-a^2) erfcx(a), and (1 + 2a) erfcx(a) is smooth in t = (a - 4) / (a + 4).
"""

from __future__ import annotations

from . import coefficients as c
from . import math_exp
from .llvm import Emitter, Value
from .math_core import (
    clamp,
    divide_pair,
    fast_two_sum,
    function,
    polynomial,
    power_of_two,
    scale_by_power,
    two_product,
)


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


@function(outline="double", wide=True)
def erfc(m: Emitter, x: Value) -> Value:
    a = abs(x)
    near = 1.0 - m.fma(polynomial(m, x * x, c.ERF_F64), x, x)
    tail = _erfc_tail(m, clamp(m, a, 0.49, None))
    return m.select(a < 0.5, near, m.select(x < 0.0, 2.0 - tail, tail))


