"""Gamma functions: lgamma, digamma, the Hurwitz zeta function, polygamma.

lgamma is a Chebyshev series of lgamma(x) / ((x-1)(x-2)) on [1, 3], fitted with 50 digits and
reached by recurrence from below 10; Stirling's series above. digamma and zeta follow Cephes
(S. Moshier, BSD license).
"""

from __future__ import annotations

import math

import numpy as np

from .series import Array, clenshaw, piecewise, polynomial

# fmt: off
LGAMMA = (
    0.44148902545501423, -0.11119580321752523, 0.01951044826068884, -0.003922461463025264,
    0.0008478989895953857, -0.00019153855341365593, 4.454470184975607e-05, -1.05728743735943e-05,
    2.5474336873408417e-06, -6.208535880776316e-07, 1.5268677399071546e-07, -3.782637660291326e-08,
    9.428100823624284e-09, -2.361999702184645e-09, 5.943541905817546e-10, -1.501312977072867e-10,
    3.8050196458110534e-11, -9.672485299656325e-12, 2.465348198355661e-12, -6.298868140791711e-13,
    1.6128460030283787e-13, -4.137949206814042e-14, 1.0635701227757898e-14,
    -2.7382420786652826e-15, 7.060670507214892e-16, -1.8232177141662118e-16, 4.714169006756272e-17,
    -1.2204107319639856e-17, 3.1630451661790255e-18,
)
# fmt: on
HALF_LOG_2_PI = 0.9189385332046728
STIRLING = (-0.0019175269175269176, 0.0008417508417508417, -0.0005952380952380953,
            0.0007936507936507937, -0.002777777777777778, 0.08333333333333333)  # fmt: skip
# B(2k) / 2k from the 14th to the 2nd
DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# (2k)! / B(2k), of Euler and Maclaurin's formula
ZETA = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183792e9, 7.47242496e10,
        -2.950130727918164e12, 1.1646782814350067e14, -4.5979787224074726e15,
        1.8152105401943546e17, -7.166165256175667e18)  # fmt: skip


def sin_pi(x: Array) -> Array:
    """sin(pi x), exact at integers."""
    nearest = np.round(x)
    sine = np.sin(np.pi * (x - nearest))
    return np.where(np.mod(nearest, 2) == 0, sine, -sine)


def lgamma(x: Array) -> Array:
    """log |gamma(x)|."""
    return piecewise(
        x,
        (np.isinf(x) | ((x <= 0) & (x == np.floor(x))), lambda x: np.full_like(x, np.inf)),
        (x >= 10, _stirling),
        (x > 0, _lgamma_small),
        (True, _lgamma_reflected),
    )


def _lgamma_small(x: Array) -> Array:
    """0 < x < 10, by recurrence to [1, 3]."""
    product = np.ones_like(x)
    y = x.copy()
    for _ in range(7):
        large = y > 3
        y = np.where(large, y - 1, y)
        product = np.where(large, product * y, product)
    small = y < 1
    product = np.where(small, 1 / x, product)
    y = np.where(small, x + 1, y)
    core = (y - 1) * (y - 2) * clenshaw(y - 2, LGAMMA)
    # x + 1 rounds away the tiny x, so the distance from 1 is taken from x itself
    core = np.where(small, x * (x - 1) * clenshaw(x - 1, LGAMMA), core)
    return core + np.log(product)


def _stirling(x: Array) -> Array:
    tail = polynomial(1 / (x * x), STIRLING) / x
    return (x - 0.5) * np.log(x) - x + HALF_LOG_2_PI + tail


def _lgamma_reflected(x: Array) -> Array:
    return np.log(np.pi / np.abs(x * sin_pi(x))) - lgamma(-x)


def digamma(x: Array) -> Array:
    """The derivative of lgamma; infinite at zero and NaN at negative integers."""
    return piecewise(
        x,
        (x == 0, lambda x: np.copysign(np.inf, -x)),
        ((x < 0) & (x == np.floor(x)), lambda x: np.full_like(x, np.nan)),
        (x < 0, lambda x: _digamma_positive(1 - x) - np.pi / np.tan(np.pi * (x - np.trunc(x)))),
        (True, _digamma_positive),
    )


def _digamma_positive(x: Array) -> Array:
    total = np.zeros_like(x)
    for _ in range(10):
        small = x < 10
        total = np.where(small, total - 1 / x, total)
        x = np.where(small, x + 1, x)
    z = 1 / (x * x)
    return total + np.log(x) - 0.5 / x - z * polynomial(z, DIGAMMA)


def zeta(s: Array, q: Array) -> Array:
    """Hurwitz' zeta function, the sum of (k + q) ** -s over k >= 0."""
    s, q = np.broadcast_arrays(np.asarray(s, np.float64), np.asarray(q, np.float64))
    whole = (q <= 0) & (q == np.floor(q))
    pole = (s == 1) | whole
    value = piecewise(
        np.where(np.isnan(q), q, s),
        (s < 1, lambda s, q: np.full_like(s, np.nan)),
        (pole, lambda s, q: np.full_like(s, np.inf)),
        (q > 0, _zeta_positive),
        (s == np.floor(s), _zeta_negative),
        q=q,
    )
    return np.where(np.isnan(s) & whole, np.inf, value)


def _zeta_negative(s: Array, q: Array) -> Array:
    """An integer s: the terms below zero are those above it with the sign of (-1) ** s."""
    start = q - np.floor(q)
    sign = np.where(np.mod(s, 2) == 0, 1.0, -1.0)
    mirrored = _zeta_positive(s, np.ceil(q) - q) - _zeta_positive(s, 1 - q)
    return _zeta_positive(s, start) + sign * mirrored


def _zeta_positive(s: Array, q: Array) -> Array:
    a = q
    total = np.power(q, -s)
    converged = np.zeros(s.shape, np.bool_)
    for _ in range(10):
        a = a + 1
        term = np.power(a, -s)
        total = total + term
        converged |= term < 1.1e-16 * total
    tail = term * a / (s - 1) - 0.5 * term
    factor = np.ones_like(s)
    for k, divisor in enumerate(ZETA):
        factor = factor * (s + 2 * k)
        term = term / a
        tail = tail + factor * term / divisor
        factor = factor * (s + 2 * k + 1)
        term = term / a
    return np.where(converged, total, total + tail)


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    sign = 1.0 if n % 2 else -1.0
    if n == 1:
        return np.where(x < 0.5, np.square(np.pi / sin_pi(x)) - _trigamma(1 - x), _trigamma(x))
    return sign * math.gamma(n + 1) * zeta(np.full_like(x, n + 1.0), x)


def _trigamma(x: Array) -> Array:
    return np.where(x == np.inf, 0.0, zeta(np.full_like(x, 2.0), x))
