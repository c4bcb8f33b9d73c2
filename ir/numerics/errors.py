"""Error functions: erf, erfc, erfcx, their inverse, and the normal distribution's.

The Chebyshev series were fitted with 50 digits: erf(x)/x in x^2 on [0, 1], and
(1 + 2x) erfcx(x) in (x - 3.75) / (x + 3.75) on [0, inf), after Shepherd and Laframboise (1981).
`ndtri` follows Cephes (S. Moshier, BSD license).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .series import Array, clenshaw, piecewise, polynomial

# fmt: off
ERF = (
    0.9754769393826541, -0.14226120510371365, 0.010035582187599796, -0.0005768764699767485,
    2.741993125219606e-05, -1.1043175507344507e-06, 3.8488755420345036e-08,
    -1.1808582533875466e-09, 3.2334215826050907e-11, -7.991015947004549e-13,
    1.7990725113961456e-14, -3.718635487818693e-16, 7.103599003714253e-18,
)
ERFCX = (
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.945586854577735e-13, -9.65469674843344e-13, 3.2525481481487414e-14,
    3.347811948286807e-14, -1.8645628804192992e-15, -1.2507950530688508e-15, 7.418235256625416e-17,
    5.0681489047974706e-17, -2.237056659422547e-18, -2.187342944289709e-18,
)
# fmt: on
TWO_OVER_SQRT_PI = 1.1283791670955126
SQRT_2_PI = 2.5066282746310002
SQRT_HALF = 0.7071067811865476


def _erf_near_zero(x: Array) -> Array:
    return x * clenshaw(2 * x * x - 1, ERF)


def _erfcx_positive(x: Array) -> Array:
    # x / (x + K) is inf / inf at infinity
    t = np.where(x > 1e18, 1.0, (x - 3.75) / (x + 3.75))
    return clenshaw(t, ERFCX) / (1 + 2 * x)


def exp_minus_square(x: Array) -> Array:
    """exp(-x^2) without the rounding error of x^2."""
    x = np.clip(x, -40.0, 40.0)
    head = np.round(x * 16) / 16
    return np.exp(-head * head) * np.exp(-(x - head) * (x + head))


def _erfc_positive(x: Array) -> Array:
    return exp_minus_square(x) * _erfcx_positive(x)


def erf(x: Array) -> Array:
    return piecewise(
        x,
        (np.abs(x) < 1, _erf_near_zero),
        (x > 0, lambda x: 1 - _erfc_positive(x)),
        (x < 0, lambda x: _erfc_positive(-x) - 1),
    )


def erfc(x: Array) -> Array:
    return piecewise(
        x,
        (np.abs(x) < 0.5, lambda x: 1 - _erf_near_zero(x)),
        (x > 0, _erfc_positive),
        (x < 0, lambda x: 2 - _erfc_positive(-x)),
    )


def erfcx(x: Array) -> Array:
    """exp(x^2) erfc(x)."""
    return piecewise(
        x,
        (x >= 0, _erfcx_positive),
        (x < -26.7, lambda x: np.full_like(x, np.inf)),
        (x < 0, lambda x: 2 / exp_minus_square(x) - _erfcx_positive(-x)),
    )


def erfinv(y: Array) -> Array:
    """The inverse of erf: a rational estimate and two steps of Newton and Halley."""
    return piecewise(
        y,
        (np.abs(y) == 1, lambda y: np.copysign(np.inf, y)),
        (np.abs(y) <= 0.7, _erfinv_central),
        (np.abs(y) < 1, _erfinv_tail),
    )


def _erfinv_central(y: Array) -> Array:
    z = y * y
    top = polynomial(z, (-0.140543331, 0.914624893, -1.645349621, 0.886226899))
    x = y * top / polynomial(z, (0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0))
    for _ in range(2):
        step = (erf(x) - y) / (TWO_OVER_SQRT_PI * np.exp(-x * x))
        x = x - step / (1 + x * step)
    return x


def _erfinv_tail(y: Array) -> Array:
    rest = 1 - np.abs(y)
    z = np.sqrt(-np.log(rest / 2))
    x = polynomial(z, (1.641345311, 3.429567803, -1.624906493, -1.970840454))
    x = x / polynomial(z, (1.6370678, 3.5438892, 1.0))
    for _ in range(2):
        step = (rest - erfc(x)) / (TWO_OVER_SQRT_PI * exp_minus_square(x))
        x = x - step / (1 + x * step)
    return np.copysign(x, y)


# --- the normal distribution ---------------------------------------------------------------------


def log_ndtr(x: Array) -> Array:
    """log of the normal distribution function, accurate in the lower tail."""
    t = x * SQRT_HALF
    return piecewise(
        t,
        (x < -1, lambda t: np.log(_erfcx_positive(-t) / 2) - t * t),
        (True, lambda t: np.log1p(-erfc(t) / 2)),
    )


EXP_MINUS_2 = 0.1353352832366127
NDTRI_P0 = (-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968,
            -1.2391658386738125)  # fmt: skip
NDTRI_Q0 = (1.9544885833814176, 4.676279128988815, 86.36024213908905, -225.46268785411937,
            200.26021238006066, -82.03722561683334, 15.90562251262117,
            -1.1833162112133)  # fmt: skip
NDTRI_P1 = (4.0554489230596245, 31.525109459989388, 57.16281922464213, 44.08050738932008,
            14.684956192885803, 2.1866330685079025, -0.1402560791713545, -0.03504246268278482,
            -0.0008574567851546854)  # fmt: skip
NDTRI_Q1 = (15.779988325646675, 45.39076351288792, 41.3172038254672, 15.04253856929075,
            2.504649462083094, -0.14218292285478779, -0.03808064076915783,
            -0.0009332594808954574)  # fmt: skip
NDTRI_P2 = (3.2377489177694603, 6.915228890689842, 3.9388102529247444, 1.3330346081580755,
            0.20148538954917908, 0.012371663481782003, 0.00030158155350823543,
            2.6580697468673755e-06, 6.239745391849833e-09)  # fmt: skip
NDTRI_Q2 = (6.02427039364742, 3.6798356385616087, 1.3770209948908132, 0.21623699359449663,
            0.013420400608854318, 0.00032801446468212774, 2.8924786474538068e-06,
            6.790194080099813e-09)  # fmt: skip


def ndtri(p: Array) -> Array:
    """The inverse of the normal distribution function."""
    return piecewise(
        p,
        (p == 0, lambda p: np.full_like(p, -np.inf)),
        (p == 1, lambda p: np.full_like(p, np.inf)),
        ((p < 0) | (p > 1), lambda p: np.full_like(p, np.nan)),
        (p > 1 - EXP_MINUS_2, lambda p: _ndtri_tail(1 - p)),
        (p > EXP_MINUS_2, _ndtri_central),
        (True, lambda p: -_ndtri_tail(p)),
    )


def _ndtri_central(p: Array) -> Array:
    y = p - 0.5
    z = y * y
    ratio = polynomial(z, NDTRI_P0) / polynomial(z, (1.0, *NDTRI_Q0))
    return (y + y * (z * ratio)) * SQRT_2_PI


def _ndtri_tail(p: Array) -> Any:
    x = np.sqrt(-2 * np.log(p))
    z = 1 / x
    near = z * polynomial(z, NDTRI_P1) / polynomial(z, (1.0, *NDTRI_Q1))
    far = z * polynomial(z, NDTRI_P2) / polynomial(z, (1.0, *NDTRI_Q2))
    return x - np.log(x) / x - np.where(x < 8, near, far)
