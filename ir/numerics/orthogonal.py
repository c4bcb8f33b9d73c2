"""Orthogonal polynomials of every degree at once: Chebyshev, Hermite, Laguerre, Legendre.

`x` and the degree `n` are float64 arrays of one shape; n is rounded to zero, and a negative degree
gives 0. Chebyshev polynomials of a high degree go through angles within [-1, 1], as torch's do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .series import Array

Step = Callable[[int, Array, Array, Array], Array]


def _recurrence(x: Array, n: Array, first: Array, step: Step) -> Array:
    """P(n) from P(0) = 1, P(1) = first and P(k+1) = step(k, x, P(k), P(k-1))."""
    before, current = np.ones_like(x), first
    result = np.where(n == 0, before, np.where(n == 1, first, 0.0))
    for k in range(1, int(n.max(initial=0))):
        before, current = current, step(k, x, current, before)
        result = np.where(n == k + 1, current, result)
    return result


def _degrees(x: Array, n: Array) -> tuple[Array, Array]:
    x, n = np.broadcast_arrays(x, n)
    whole = np.where(np.isfinite(n), np.trunc(n), -1.0)
    return x, whole


def _chebyshev(kind: str, shifted: bool) -> Callable[[Array, Array], Array]:
    limit = {"t": 6, "u": 6 if shifted else 8, "v": 6 if shifted else 8, "w": 4 if shifted else 8}

    def evaluate(x: Array, n: Array) -> Array:
        x, n = _degrees(x, n)
        y = x + x - 1 if shifted else x
        inside = np.abs(y) < 1
        by_angle = inside & (n > limit[kind])
        first = y + _FIRST[kind](y)
        low = _recurrence(y, np.where(by_angle, 0.0, n), first, lambda k, x, p, q: 2 * x * p - q)
        low = np.where(np.isnan(y) & (n > 0), np.nan, low)
        result = np.where(by_angle, _by_angle(kind, np.where(inside, y, 0.0), n), low)
        even = np.mod(n, 2) == 0
        result = np.where(y == 1, _AT_ONE[kind](n), result)
        ends = _AT_ONE[_MIRROR[kind]](n)
        result = np.where(y == -1, np.where(even, ends, -ends), result)
        return np.where(n < 0, 0.0, result)

    return evaluate


_FIRST: dict[str, Callable[[Array], Any]] = {
    "t": lambda y: 0.0, "u": lambda y: y, "v": lambda y: y - 1, "w": lambda y: y + 1,
}  # fmt: skip
_AT_ONE: dict[str, Callable[[Array], Array]] = {
    "t": np.ones_like, "u": lambda n: n + 1, "v": np.ones_like, "w": lambda n: n + n + 1,
}  # fmt: skip
# V(n, -x) is W(n, x) up to the sign of (-1) ** n
_MIRROR = {"t": "t", "u": "u", "v": "w", "w": "v"}


def _by_angle(kind: str, y: Array, n: Array) -> Array:
    angle = np.arccos(y)
    if kind == "t":
        return np.cos(n * angle)
    if kind == "u":
        return np.sin((n + 1) * angle) / np.sin(angle)
    if kind == "v":
        return np.cos((n + 0.5) * angle) / np.cos(angle / 2)
    return np.sin((n + 0.5) * angle) / np.sin(angle / 2)


chebyshev_polynomial_t, chebyshev_polynomial_u = _chebyshev("t", False), _chebyshev("u", False)
chebyshev_polynomial_v, chebyshev_polynomial_w = _chebyshev("v", False), _chebyshev("w", False)
shifted_chebyshev_polynomial_t = _chebyshev("t", True)
shifted_chebyshev_polynomial_u = _chebyshev("u", True)
shifted_chebyshev_polynomial_v = _chebyshev("v", True)
shifted_chebyshev_polynomial_w = _chebyshev("w", True)


def _hermite(scale: int) -> Callable[[Array, Array], Array]:
    def evaluate(x: Array, n: Array) -> Array:
        x, n = _degrees(x, n)
        bounded = np.where(n > 512, -1.0, n)
        value = _recurrence(x, bounded, scale * x, lambda k, x, p, q: scale * (x * p - k * q))
        return np.where(n > 512, np.nan, value)

    return evaluate


hermite_polynomial_h, hermite_polynomial_he = _hermite(2), _hermite(1)


def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    x, n = _degrees(x, n)
    return _recurrence(x, n, 1 - x, lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1))


def legendre_polynomial_p(x: Array, n: Array) -> Array:
    x, n = _degrees(x, n)
    return _recurrence(x, n, x, lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1))
