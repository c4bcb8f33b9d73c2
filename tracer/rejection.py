"""Samplers that accept or reject: poisson, binomial, gamma, dirichlet, with torch's exact values.

How many words a sample takes depends on the words, so these run element by element. They draw
ahead in bulk and, when done, put the generator where torch's would be. Arithmetic is plain
double precision (torch does not fuse multiply and add in these kernels) through the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .generator import Generator
from .rounding import STORAGE, cast, dtype_name
from .sampling import not_implemented

Array = np.ndarray

_STIRLING_TAIL = (
    0.0810614667953272,
    0.0413406959554092,
    0.0276779256849983,
    0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707,
    0.0118967099458917,
    0.0104112652619720,
    0.00925546218271273,
    0.00833056343336287,
)
_SQUEEZE = float(np.float32(0.0331))
_THIRD = np.float32(1.0) / np.float32(3.0)


class _Stream:
    """Float64 uniforms drawn ahead; `close` gives back those not taken."""

    def __init__(self, generator: Generator, expected: int) -> None:
        self._generator, self._start = generator, generator.snapshot()
        self._size = min(max(expected, 16), 1 << 16)
        self._taken, self._values = 0, iter(())

    def uniform(self) -> float:
        for value in self._values:
            self._taken += 1
            return value
        self._values = iter(self._generator.doubles(self._size).tolist())
        return self.uniform()

    def normal(self) -> float:
        kept = self._generator.next_normal
        if kept is not None:
            self._generator.next_normal = None
            return kept
        u1, u2 = self.uniform(), self.uniform()
        r, angle = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
        self._generator.next_normal = r * math.sin(angle)
        return r * math.cos(angle)

    def close(self) -> None:
        kept = self._generator.next_normal
        self._generator.resume(self._start)
        self._generator.skip(2 * self._taken)
        self._generator.next_normal = kept


def _draw(generator: Generator, size: int, sample: Callable[[_Stream], list[float]]) -> Array:
    stream = _Stream(generator, 4 * size)
    try:
        return np.array(sample(stream), np.float64)
    finally:
        stream.close()


def poisson(generator: Generator, rates: Array, dtype: str | None = None) -> Array:
    """`torch.poisson`: one count for each rate."""
    name = _floating(rates, dtype, "poisson_cpu")
    flat = rates.reshape(-1).tolist()
    values = _draw(generator, len(flat), lambda s: [_poisson(rate, s) for rate in flat])
    return cast(values, name).reshape(rates.shape)


def binomial(generator: Generator, count: Array, prob: Array, dtype: str | None = None) -> Array:
    """`torch.binomial`: successes among `count` trials of probability `prob`, broadcast."""
    name = _floating(count, dtype, "binomial_cpu", reduced=False)
    kind = STORAGE[name].type
    counts, probs = np.broadcast_arrays(count, prob)
    pairs = list(zip(counts.reshape(-1), probs.reshape(-1)))
    with np.errstate(all="ignore"):
        values = _draw(
            generator, len(pairs), lambda s: [_binomial(kind(n), kind(p), s) for n, p in pairs]
        )
    return cast(values, name).reshape(counts.shape)


def standard_gamma(generator: Generator, alpha: Array, dtype: str | None = None) -> Array:
    """`torch._standard_gamma`: one sample of unit scale for each concentration."""
    name = _floating(alpha, dtype, "gamma_cpu", reduced=False)
    flat = alpha.astype(STORAGE[name]).reshape(-1)
    with np.errstate(all="ignore"):
        values = _draw(generator, flat.size, lambda s: [_gamma(a, s) for a in flat])
    smallest = np.finfo(STORAGE[name]).tiny
    # fmax: a concentration below zero gives NaN, which torch's maximum drops
    return np.fmax(smallest, cast(values, name)).reshape(alpha.shape)


def sample_dirichlet(generator: Generator, alpha: Array, dtype: str | None = None) -> Array:
    """`torch._sample_dirichlet`: gammas drawn in double precision, divided by their row sum.

    The row sum is NumPy's: float64 results may differ from torch's in the last digit.
    """
    name = _floating(alpha, dtype, "dirichlet", reduced=False)
    storage = STORAGE[name]
    gammas = standard_gamma(generator, alpha.astype(np.float64), "float64")
    if alpha.ndim == 0:
        shares = gammas / gammas
    else:
        shares = gammas / gammas.sum(-1, keepdims=True)
    below_one = np.nextafter(storage.type(1), storage.type(0))
    return np.minimum(below_one, np.fmax(np.finfo(storage).tiny, cast(shares, name)))


def _poisson(rate: float, stream: _Stream) -> float:
    if not rate >= 0:
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    if rate >= 10:
        return _poisson_large(rate, stream)
    if rate == 0:
        return 0.0
    bound, product, count = math.exp(-rate), 1.0, 0.0
    while True:
        product *= stream.uniform()
        if product <= bound:
            return count
        count += 1.0


def _poisson_large(rate: float, stream: _Stream) -> float:
    # Hoermann, "The transformed rejection method" (1993)
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    log_inverse_alpha = math.log(1.1239 + 1.1328 / (b - 3.4))
    box = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + rate + 0.43) if us else -1
        if us >= 0.07 and v <= box:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        if _log(v) + log_inverse_alpha - math.log(a / (us * us) + b) <= (
            -rate + k * log_rate - math.lgamma(k + 1.0)
        ):
            return float(k)


def _binomial(count: np.floating, prob: np.floating, stream: _Stream) -> float:
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return float(count)
    if np.isnan(prob):
        return math.nan
    if prob <= 0.5:
        return _binomial_below_half(count, prob, stream)
    other = type(prob)(1.0 - float(prob))
    return float(count - type(count)(_binomial_below_half(count, other, stream)))


def _binomial_below_half(count: np.floating, prob: np.floating, stream: _Stream) -> float:
    if count * prob >= 10.0:
        return _binomial_rejection(count, prob, stream)
    log_miss = float(np.log1p(-prob))
    trials, successes = 0.0, 0.0
    while True:
        wait = _log(stream.uniform()) / log_miss
        trials += math.ceil(wait) if wait < math.inf else wait
        if trials > count:
            return successes
        successes += 1.0


def _binomial_rejection(count: np.floating, prob: np.floating, stream: _Stream) -> float:
    # Hoermann's BTRS (1993); steps taken in the dtype of the arguments stay NumPy scalars
    kind, n, p = type(count), float(count), float(prob)
    deviation = float(np.sqrt(count * prob * (1 - prob)))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = float(count * prob) + 0.5
    box = 0.92 - 4.2 / b
    odds = float(prob / (1 - prob))
    alpha = (2.83 + 5.1 / b) * deviation
    mode = float(np.floor((count + 1) * prob))
    while True:
        u, v = stream.uniform() - 0.5, stream.uniform()
        us = 0.5 - abs(u)
        if us == 0:
            continue
        k = float(kind(math.floor((2 * a / us + b) * u + c)))
        if k < 0 or k > n:
            continue
        if us >= 0.07 and v <= box:
            return k
        v = _log(v * alpha / (a / (us * us) + b))
        more = float(count - kind(k) + 1)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
            + float(count + 1) * math.log((n - mode + 1) / more)
            + (k + 0.5) * math.log(odds * more / float(kind(k) + 1))
            + _stirling_tail(mode)
            + _stirling_tail(n - mode)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        if v <= bound:
            return k


def _stirling_tail(k: float) -> float:
    if k < len(_STIRLING_TAIL):
        return _STIRLING_TAIL[int(k)]
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _gamma(alpha: np.floating, stream: _Stream) -> float:
    # Marsaglia and Tsang (2000); alpha is stepped in its own precision, the rest in double
    scale = 1.0
    one = type(alpha)(1)
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = float(np.power(1.0 - stream.uniform(), float(one / alpha)))
        alpha = alpha + one
    d = float(alpha - type(alpha)(_THIRD))
    c = 1.0 / math.sqrt(9.0 * d) if d > 0 else math.nan
    while True:
        y = 0.0
        while y <= 0:
            x = stream.normal()
            y = 1.0 + c * x
        v = y * y * y
        u = 1.0 - stream.uniform()
        square = x * x
        if u < 1.0 - _SQUEEZE * square * square:
            return scale * d * v
        if _log(u) < 0.5 * square + d * (1.0 - v + _log(v)):
            return scale * d * v


def _log(x: float) -> float:
    """The C library's log, which gives -inf at zero where Python's raises."""
    return math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def _floating(values: Array, dtype: str | None, kernel: str, reduced: bool = True) -> str:
    name = dtype_name(dtype or values.dtype)
    allowed = ("float32", "float64", "float16", "bfloat16")[: 4 if reduced else 2]
    if name not in allowed:
        not_implemented(kernel, name)
    return name
