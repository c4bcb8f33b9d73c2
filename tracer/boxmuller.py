"""Box-Muller as torch's CPU kernels compute it: normal numbers from blocks of 16 uniforms.

In a block, uniforms 0..7 give radii and 8..15 give angles; the cosines go to the places of the
radii, the sines to those of the angles. In double precision the kernel calls the C library, as
NumPy does. In single precision it runs the Cephes polynomials in AVX2 with fused multiply-adds.

Note [Fused by way of double]: a single-precision fused multiply-add is emulated by a product
(exact) and a sum in double, rounded to single. Rounding twice could differ in the last bit, but
a uniform has only 2^24 values and on all of them the radius, sine and cosine have the kernel's
bits; `tests/test_generator.py` checks a sum over all values. Where a product has at most 24
bits (z * 0.5, e * 0.693359375, j * 0.78515625) plain single-precision operations round once too.
"""

from __future__ import annotations

import numpy as np

from ..ir import cephes
from .rounding import CHUNK

Array = np.ndarray
BLOCK = 16
HALF = BLOCK // 2

_f = np.float32
_LOG = [np.float64(_f(c)) for c in cephes.LOG]
_SIN = [np.float64(_f(c)) for c in cephes.SIN]
_COS = [np.float64(_f(c)) for c in cephes.COS]
_PI_4 = (_f(cephes.PI_4[0]), _f(cephes.PI_4[1]), np.float64(_f(cephes.PI_4[2])))
_LOG_2 = (_f(cephes.LOG_2[0]), _f(cephes.LOG_2[1]))
_SQRT_HALF, _FOUR_OVER_PI = _f(cephes.SQRT_HALF), _f(cephes.FOUR_OVER_PI)
_TWO_PI = _f(cephes.TWO_PI)


def normal_blocks(uniforms: Array) -> Array:
    """Standard normals from uniforms of shape (blocks, 16), float32 or float64."""
    out = np.empty_like(uniforms)
    rows = CHUNK // HALF
    for start in range(0, len(uniforms), rows):
        part, target = uniforms[start : start + rows], out[start : start + rows]
        if uniforms.dtype == np.float32:
            r = radius(part[:, :HALF])
            sine, cosine = sine_cosine(part[:, HALF:])
        else:
            r = np.sqrt(-2.0 * np.log(1.0 - part[:, :HALF]))
            angle = 2.0 * np.pi * part[:, HALF:]
            sine, cosine = np.sin(angle), np.cos(angle)
        np.multiply(r, cosine, out=target[:, :HALF])
        np.multiply(r, sine, out=target[:, HALF:])
    return out


def radius(uniform: Array) -> Array:
    """sqrt(-2 log(1 - u)) in single precision, for u a multiple of 2^-24 in [0, 1)."""
    x, exponent = np.frexp(_f(1) - uniform)
    e = exponent.astype(np.float32)
    small = x < _SQRT_HALF
    x += np.where(small, x, _f(0)) - _f(1)
    e -= small
    z = x * x
    wide = x.astype(np.float64)
    y = _horner(_LOG, wide)
    y *= x
    y = _fused(y, z.astype(np.float64), e * _LOG_2[1])
    y -= z * _f(0.5)
    x += y
    x += e * _LOG_2[0]
    return np.sqrt(x * _f(-2))


def sine_cosine(uniform: Array) -> tuple[Array, Array]:
    """Sine and cosine of 2 pi u in single precision, for u a multiple of 2^-24 in [0, 1)."""
    x = _TWO_PI * uniform
    octant = (x * _FOUR_OVER_PI).astype(np.int32)
    octant += 1
    octant &= ~1
    y = octant.astype(np.float32)
    x += y * _PI_4[0]
    x += y * _PI_4[1]
    x = _fused(y, _PI_4[2], x)
    z = x * x
    wide = z.astype(np.float64)
    cosine = _horner(_COS, wide)
    cosine *= z
    cosine = _fused(cosine, wide, z * _f(-0.5))
    cosine += _f(1)
    sine = _horner(_SIN, wide)
    sine *= z
    sine = _fused(sine, x.astype(np.float64), x)
    swap = octant & 2 != 0
    sine, cosine = np.where(swap, cosine, sine), np.where(swap, sine, cosine)
    np.negative(sine, out=sine, where=octant & 4 != 0)
    np.negative(cosine, out=cosine, where=(octant + 2) & 4 != 0)
    return sine, cosine


def _horner(coefficients: list[np.float64], wide: Array) -> Array:
    y = (wide * coefficients[0] + coefficients[1]).astype(np.float32)
    for c in coefficients[2:]:
        y = _fused(y, wide, c)
    return y


def _fused(a: Array, b: Array | np.float64, c: Array | np.float64) -> Array:
    wide = np.multiply(a, b, dtype=np.float64)
    wide += c
    return wide.astype(np.float32)
