"""Bessel functions of the first and second kind, modified ones, and Airy's; after Cephes.

Note [Denominators without their leading one]
    torch evaluates Cephes' monic denominators of J, Y and Ai without the leading 1, which moves
    values by up to 1e-6 relative around |x| = 6. Values must be torch's, so it is done here too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import bessel_tables as table
from .series import Array, cephes_chebyshev, piecewise, polynomial

SQRT_2_OVER_PI = 0.7978845608028654
TWO_OVER_PI = 0.6366197723675814
QUARTER_PI = 0.7853981633974483


def _rational(x: Array, top: tuple[float, ...], bottom: tuple[float, ...]) -> Array:
    return polynomial(x, top) / polynomial(x, bottom)


def _infinite(sign: float) -> Callable[[Array], Array]:
    return lambda x: np.full_like(x, sign * np.inf)


# --- J and Y -------------------------------------------------------------------------------------


def _amplitudes(x: Array, order: int) -> tuple[Array, Array]:
    """Hankel's P and Q for x > 5, Q with its factor 5 / x."""
    z = 25.0 / (x * x) if order == 0 else (5.0 / x) * (5.0 / x)
    names = ("PP", "PQ", "QP", "QQ")
    pp, pq, qp, qq = (getattr(table, f"J{order}_{name}") for name in names)
    return _rational(z, pp, pq), 5.0 / x * _rational(z, qp, qq)


def _large(order: int, second: bool) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        p, q = _amplitudes(x, order)
        angle = x - (QUARTER_PI if order == 0 else 3 * QUARTER_PI)
        wave = p * np.sin(angle) + q * np.cos(angle) if second else (
            p * np.cos(angle) - q * np.sin(angle))  # fmt: skip
        return wave * SQRT_2_OVER_PI / np.sqrt(x)

    return evaluate


def _j0_small(x: Array) -> Array:
    z = x * x
    value = _rational(z, table.J0_RP, table.J0_RQ)
    value = (z - 5.783185962946785) * (z - 30.471262343662087) * value
    return np.where(x < 1e-5, 1 - z / 4, value)


def bessel_j0(x: Array) -> Array:
    x = np.abs(x)
    return piecewise(x, (x <= 5, _j0_small), (True, _large(0, False)))


def _j1_small(x: Array) -> Array:
    z = x * x
    value = _rational(z, table.J1_RP, table.J1_RQ)
    return value * x * (z - 14.681970642123893) * (z - 49.2184563216946)


def bessel_j1(x: Array) -> Array:
    size = np.abs(x)
    value = piecewise(size, (size <= 5, _j1_small), (True, _large(1, False)))
    return np.where(x < 0, -value, value)


def bessel_y0(x: Array) -> Array:
    def small(x: Array) -> Array:
        value = _rational(x * x, table.Y0_YP, table.Y0_YQ)
        return value + TWO_OVER_PI * np.log(x) * _j0_small(x)

    negative = (x < 0, lambda x: np.full_like(x, np.nan))
    return piecewise(x, (x == 0, _infinite(-1)), negative, (x <= 5, small), (True, _large(0, True)))


def bessel_y1(x: Array) -> Array:
    def small(x: Array) -> Array:
        value = x * _rational(x * x, table.Y1_YP, table.Y1_YQ)
        return value + TWO_OVER_PI * (_j1_small(x) * np.log(x) - 1 / x)

    negative = (x < 0, lambda x: np.full_like(x, np.nan))
    return piecewise(x, (x == 0, _infinite(-1)), negative, (x <= 5, small), (True, _large(1, True)))


def spherical_bessel_j0(x: Array) -> Array:
    """sin(x) / x."""

    def near(x: Array) -> Array:
        series = (1 / 6227020800, -1 / 39916800, 1 / 362880, -1 / 5040, 1 / 120, -1 / 6, 1.0)
        return polynomial(x * x, series)

    zero = (np.isinf(x), np.zeros_like)
    return piecewise(x, zero, (np.abs(x) < 0.5, near), (True, lambda x: np.sin(x) / x))


# --- modified ------------------------------------------------------------------------------------


def _i0e_large(x: Array) -> Array:
    return cephes_chebyshev(32 / x - 2, table.I0_B) / np.sqrt(x)


def _i1e_large(x: Array) -> Array:
    return cephes_chebyshev(32 / x - 2, table.I1_B) / np.sqrt(x)


def i0e(x: Array) -> Array:
    """exp(-|x|) I0(x)."""
    x = np.abs(x)
    small = (x <= 8, lambda x: cephes_chebyshev(x / 2 - 2, table.I0_A))
    return piecewise(x, small, (True, _i0e_large))


def i1e(x: Array) -> Array:
    """exp(-|x|) I1(x)."""
    size = np.abs(x)
    small = (size <= 8, lambda x: cephes_chebyshev(x / 2 - 2, table.I1_A) * x)
    value = piecewise(size, small, (True, _i1e_large))
    return np.where(x < 0, -value, value)


def i0(x: Array) -> Array:
    return np.exp(np.abs(x)) * i0e(x)


def i1(x: Array) -> Array:
    return np.exp(np.abs(x)) * i1e(x)


def _k_small(order: int) -> Callable[[Array], Array]:
    def evaluate(x: Array) -> Array:
        log_half = np.log(0.5 * x)
        if order == 0:
            return cephes_chebyshev(x * x - 2, table.K0_A) - log_half * i0(x)
        return log_half * i1(x) + cephes_chebyshev(x * x - 2, table.K1_A) / x

    return evaluate


def _k_scaled_large(order: int) -> Callable[[Array], Array]:
    series = table.K1_B if order else table.K0_B
    return lambda x: cephes_chebyshev(8 / x - 2, series) / np.sqrt(x)


def _k(order: int, scaled: bool) -> Callable[[Array], Array]:
    small, large = _k_small(order), _k_scaled_large(order)

    def evaluate(x: Array) -> Array:
        return piecewise(
            x,
            (x == 0, _infinite(1)),
            (x < 0, lambda x: np.full_like(x, np.nan)),
            (x <= 2, lambda x: small(x) * np.exp(x) if scaled else small(x)),
            (True, lambda x: large(x) if scaled else np.exp(-x) * large(x)),
        )

    return evaluate


modified_bessel_k0, scaled_modified_bessel_k0 = _k(0, False), _k(0, True)
modified_bessel_k1, scaled_modified_bessel_k1 = _k(1, False), _k(1, True)

# --- Airy ----------------------------------------------------------------------------------------

ONE_OVER_SQRT_PI = 0.5641895835477563


def airy_ai(x: Array) -> Array:
    return piecewise(
        x,
        (np.isinf(x), lambda x: np.full_like(x, np.nan)),
        (x > 103.892, np.zeros_like),
        (x < -2.09, _airy_oscillating),
        (x >= 2.09, _airy_decaying),
        (True, _airy_series),
    )


def _airy_oscillating(x: Array) -> Array:
    zeta = -2.0 * x * np.sqrt(-x) / 3.0
    z = 1 / zeta
    f = _rational(z * z, table.AI_AFN, table.AI_AFD)
    g = _rational(z * z, table.AI_AGN, table.AI_AGD)
    angle = zeta + QUARTER_PI
    wave = np.sin(angle) * (1 + z * z * f) - np.cos(angle) * (z * g)
    return ONE_OVER_SQRT_PI / np.sqrt(np.sqrt(-x)) * wave


def _airy_decaying(x: Array) -> Any:
    zeta = 2.0 * x * np.sqrt(x) / 3.0
    ratio = _rational(1 / zeta, table.AI_AN, table.AI_AD)
    return ONE_OVER_SQRT_PI * ratio / (2 * np.sqrt(np.sqrt(x)) * np.exp(zeta))


def _airy_series(x: Array) -> Array:
    f, g = np.ones_like(x), x.copy()
    m, n, k, z = np.ones_like(x), x.copy(), 1.0, x * x * x
    for _ in range(20):  # |x| < 2.1: the terms are below the last digit by then
        m, n = m * z / ((k + 1) * (k + 2)), n * z / ((k + 2) * (k + 3))
        f, g, k = f + m, g + n, k + 3
    return 0.3550280538878172 * f - 0.2588194037928068 * g
