"""`torch.quasirandom`: Sobol sequences, whose points fill a cube more evenly than random ones.

Note [Direction numbers]
    Dimension 0 counts in binary. Each further dimension has a primitive polynomial over GF(2) of
    degree s and s odd numbers m_j < 2**j, found by Joe and Kuo's search D(6) up to dimension 21201.
    `sobol_numbers.bin` holds them as bits, by degree: for each dimension the s - 1 inner
    coefficients, then of m_2 ... m_s the bits above the lowest, which is 1.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np

from . import cat
from .ir.types import default_dtype
from .tracer.creation import from_numpy
from .tracer.generator import Generator
from .tracer.random import randint
from .tracer.tensor import Tensor

__all__ = ["SobolEngine"]
MAXBIT = 30
# how many primitive polynomials there are of degree 1, 2, ...
_COUNTS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)


@functools.cache
def _packed() -> np.ndarray:
    path = os.path.join(os.path.dirname(__file__), "sobol_numbers.bin")
    return np.fromfile(path, np.uint8)


def _of_degree(degree: int, start: int, count: int) -> np.ndarray:
    """The direction numbers of the first `count` dimensions of a degree; see the Note."""
    width = (degree - 1) + degree * (degree - 1) // 2
    bits = np.unpackbits(_packed()[start:], count=count * width).reshape(count, width)
    poly = np.concatenate((bits[:, : degree - 1], np.ones((count, 1), np.uint8)), axis=1)
    m = np.ones((count, MAXBIT), np.int64)
    place = degree - 1
    for j in range(1, degree):
        m[:, j] += (bits[:, place : place + j].astype(np.int64) << np.arange(1, j + 1)).sum(1)
        place += j
    for j in range(degree, MAXBIT):
        m[:, j] = m[:, j - degree]
        for k in range(degree):
            m[:, j] ^= (m[:, j - k - 1] << (k + 1)) * poly[:, k]
    return m


def direction_numbers(dimension: int) -> np.ndarray:
    """int64[dimension, MAXBIT]."""
    parts, left, start = [np.ones((1, MAXBIT), np.int64)], dimension - 1, 0
    for degree, full in enumerate(_COUNTS, 1):
        if left <= 0:
            break
        parts.append(_of_degree(degree, start, min(full, left)))
        width = (degree - 1) + degree * (degree - 1) // 2
        start, left = start + -(-full * width // 8), left - full
    return np.concatenate(parts) << np.arange(MAXBIT - 1, -1, -1)


def _scrambled(numbers: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """The bits of each number, multiplied by its dimension's lower triangular matrix over GF(2)."""
    down = np.arange(MAXBIT - 1, -1, -1)
    bits = (numbers[:, :, None] >> down) & 1
    mixed = np.einsum("dpk,djk->djp", matrices, bits) & 1
    return (mixed << down).sum(-1)


class SobolEngine:
    """SobolEngine(dimension, scramble=False, seed=None): draws points of a Sobol sequence.

    >>> SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = MAXBIT
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        self.sobolstate = from_numpy(direction_numbers(dimension))
        self.shift = from_numpy(np.zeros(dimension, np.int64))
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Tensor:
        """draw(n=1): the next n points, one a row."""
        dtype = dtype or default_dtype()
        first = self.num_generated == 0
        points = self._walk(n - 1 if first else n)
        result = from_numpy(points).to(dtype) * 2.0**-MAXBIT
        if first:
            result = cat((self._first_point.to(dtype), result))
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Tensor:
        """draw_base2(m): the next 2**m points, where that keeps the sequence balanced."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """fast_forward(n): leaves out the next n points."""
        self._walk(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def _walk(self, steps: int) -> np.ndarray:
        """The next points as integers: each turns over the bits of the lowest 0 of its number."""
        first = max(self.num_generated - 1, 0)
        count = np.arange(first, first + steps, dtype=np.int64)
        lowest = ~count & (count + 1)
        which = np.log2(np.maximum(lowest, 1)).astype(np.int64)
        now = self.quasi.numpy()
        moves = np.concatenate((now[None], self.sobolstate.numpy().T[which]))
        points = np.bitwise_xor.accumulate(moves, axis=0)
        self.quasi.copy_(from_numpy(points[-1].copy()))
        return points[1:]

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        size = (self.dimension, MAXBIT)
        bits = randint(2, size, generator=generator).numpy()
        self.shift = from_numpy((bits << np.arange(MAXBIT)).sum(1))
        matrices = randint(2, (*size, MAXBIT), generator=generator).tril().numpy()
        matrices[:, range(MAXBIT), range(MAXBIT)] = 1
        self.sobolstate = from_numpy(_scrambled(self.sobolstate.numpy(), matrices))

    def __repr__(self) -> str:
        facts = [f"dimension={self.dimension}"]
        facts += ["scramble=True"] if self.scramble else []
        facts += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(facts)})"
