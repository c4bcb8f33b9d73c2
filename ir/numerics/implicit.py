"""How gamma and beta samples move with their parameters, in float64.

A sample x of a distribution function F(x; a) held at its quantile moves by dx/da = -(dF/da) / p,
where p is the density. F is a known factor times a series or a continued fraction, which is
evaluated together with its derivative by the parameter.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .gamma import digamma

Array = np.ndarray

_MOST_TERMS = 4000
_LARGE = 2e4  # from this shape on, the quantile's expansion in 1 / sqrt(shape) is exact enough
_EPSILON = 1e-16
_TINY = 1e-300


def gamma_slope(shape: Array, x: Array) -> Array:
    """dx/dshape of a sample x of the gamma distribution of unit scale."""
    shape, x = np.broadcast_arrays(np.asarray(shape, np.float64), np.asarray(x, np.float64))
    result = np.full(shape.shape, np.nan)
    with np.errstate(all="ignore"):
        usual = (shape > 0) & (x >= 0) & np.isfinite(shape) & np.isfinite(x)
        result[usual & (x == 0)] = 0.0
        usual &= x > 0
        large = usual & (shape >= _LARGE)
        below = usual & ~large & (x < shape + 1)
        above = usual & ~large & ~below
        for where, slope in ((large, _by_quantile), (below, _by_series), (above, _by_fraction)):
            if where.any():
                result[where] = slope(shape[where], x[where])
    return result


def _by_series(a: Array, x: Array) -> Array:
    # F / p = x S with S the sum of x^n / (a (a+1) ... (a+n)); all terms are positive
    term, rate = 1 / a, -1 / a
    total, slope = term, term * rate
    for n in range(1, _MOST_TERMS):
        term = term * x / (a + n)
        rate = rate - 1 / (a + n)
        total = total + term
        slope = slope + term * rate
        if not (term * np.abs(rate) > _EPSILON * np.abs(slope)).any():
            break
    result: Array = -x * (total * (np.log(x) - digamma(a)) + slope)
    return result


def _by_fraction(a: Array, x: Array) -> Array:
    # (1 - F) / p = x C with C = 1 / (b0 + a1 / (b1 + ...)), bn = x + 2n + 1 - a, an = n (a - n)
    b = x + 1 - a
    c, d = _Dual(np.full_like(x, 1 / _TINY)), _Dual(b, -1.0).reciprocal()
    h = d
    for n in range(1, _MOST_TERMS):
        numerator, b = _Dual(n * (a - n), float(n)), b + 2
        denominator = _Dual(b, -1.0)
        d = (numerator * d + denominator).reciprocal()
        c = denominator + numerator * c.reciprocal()
        factor = c * d
        h = h * factor
        if not (np.abs(factor.value - 1) + np.abs(factor.slope) > 4 * _EPSILON).any():
            break
    result: Array = x * (h.value * (np.log(x) - digamma(a)) + h.slope)
    return result


def _by_quantile(a: Array, x: Array) -> Array:
    # Cornish and Fisher: x = a + r z + (z^2-1)/3 + (z^3-7z)/(36 r) - (3z^4+7z^2-16)/(810 a),
    # r = sqrt(a), z the normal quantile; z is found by fixed-point steps
    r = np.sqrt(a)
    y = (x - a) / r
    z = y
    for _ in range(8):
        square = z * z
        z = (y - (square - 1) / (3 * r) - z * (square - 7) / (36 * a)
             + (3 * square * square + 7 * square - 16) / (810 * a * r))  # fmt: skip
    square = z * z
    result: Array = (1 + z / (2 * r) - z * (square - 7) / (72 * a * r)
                     + (3 * square * square + 7 * square - 16) / (810 * a * a))  # fmt: skip
    return result


def beta_slope(x: Array, a: Array, b: Array) -> Array:
    """dx/da of a sample x of the beta distribution (a, b), divided by 1 - x.

    That is what a share of a Dirichlet sample needs: the other shares give way in proportion.
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (x, a, b)))
    x, a, b = (v.reshape(-1) for v in arrays)
    result = np.full(x.shape, np.nan)
    with np.errstate(all="ignore"):
        usual = (a > 0) & (b > 0) & (x > 0) & (x < 1)
        result[(x == 0) & (a > 0)] = 0.0
        low = usual & (x < (a + 1) / (a + b + 2))
        high = usual & ~low
        if low.any():
            x1, a1, b1 = x[low], a[low], b[low]
            h = _beta_fraction(x1, _Dual(a1, 1.0), _Dual(b1, 0.0))
            rate = np.log(x1) - 1 / a1 - digamma(a1) + digamma(a1 + b1)
            result[low] = -x1 / a1 * (h.value * rate + h.slope)
        if high.any():  # F(x; a, b) = 1 - F(1 - x; b, a)
            x1, a1, b1 = x[high], a[high], b[high]
            h = _beta_fraction(1 - x1, _Dual(b1, 0.0), _Dual(a1, 1.0))
            rate = np.log(x1) - digamma(a1) + digamma(a1 + b1)
            result[high] = x1 / b1 * (h.value * rate + h.slope)
    return result.reshape(arrays[0].shape)


def _beta_fraction(x: Array, a: _Dual, b: _Dual) -> _Dual:
    """The continued fraction 1 / (1 + d1 / (1 + d2 / ...)) of the incomplete beta function."""
    one = _Dual(np.ones_like(x))
    c, d, h = one, _Dual(np.zeros_like(x)), one
    for k in range(1, _MOST_TERMS):
        m = k // 2
        edge = (a + 2 * m) * (a + (2 * m + 1 if k % 2 else 2 * m - 1))
        step = (a + m) * (a + b + m) * -1.0 if k % 2 else (b + -m) * float(m)
        step = step * edge.reciprocal() * x
        d = (one + step * d).reciprocal()
        c = one + step * c.reciprocal()
        factor = c * d
        h = h * factor
        if not (np.abs(factor.value - 1) + np.abs(factor.slope) > 4 * _EPSILON).any():
            break
    return h.reciprocal()


class _Dual:
    """A value with its derivative by the parameter."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Any, slope: Any = 0.0) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> _Dual:
        if isinstance(other, _Dual):
            return _Dual(self.value + other.value, self.slope + other.slope)
        return _Dual(self.value + other, self.slope)

    def __mul__(self, other: Any) -> _Dual:
        if isinstance(other, _Dual):
            return _Dual(self.value * other.value,
                         self.slope * other.value + self.value * other.slope)  # fmt: skip
        return _Dual(self.value * other, self.slope * other)

    def reciprocal(self) -> _Dual:
        # the value must not be zero: Lentz's method moves it a little
        value = 1 / np.where(self.value == 0, _TINY, self.value)
        return _Dual(value, -self.slope * value * value)
