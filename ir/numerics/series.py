"""Evaluation of polynomials and Chebyshev series, and choosing between branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's rule; the coefficient of the highest power comes first."""
    result = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        result *= x
        result += coefficient
    return result


def monic(x: Array, coefficients: Sequence[float]) -> Array:
    """The polynomial with leading coefficient 1, which is left out of `coefficients`."""
    return polynomial(x, (1.0, *coefficients))


def clenshaw(x: Array, coefficients: Sequence[float]) -> Array:
    """The sum of c[k] T_k(x), lowest order first."""
    twice = x + x
    first, second = np.zeros_like(x), np.zeros_like(x)
    for coefficient in reversed(coefficients[1:]):
        first, second = twice * first - second + coefficient, first
    return x * first - second + coefficients[0]


def cephes_chebyshev(x: Array, coefficients: Sequence[float]) -> Array:
    """Cephes' `chbevl`: argument x / 2, highest order first, half of the last coefficient."""
    low, high = np.zeros_like(x), np.zeros_like(x)
    current = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        high, low = low, current
        current = x * low - high + coefficient
    return 0.5 * (current - high)


def piecewise(x: Array, *branches: tuple[Any, Callable[..., Array]], **more: Array) -> Array:
    """Evaluates each (condition, function) only where its condition is the first to hold.

    `more` are further arguments of x's shape; elements that no condition claims are NaN.
    """
    result = np.full(x.shape, np.nan)
    open_ = ~np.isnan(x)
    for condition, function in branches:
        chosen = open_ & condition
        if chosen.all() and result.size:
            return function(x, **more)
        if chosen.any():
            result[chosen] = function(x[chosen], **{k: v[chosen] for k, v in more.items()})
        open_ &= ~chosen
    return result
