"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, finfo
from ..tracer.tensor import Tensor
from .location_scale import LocationScale


class Laplace(LocationScale):
    """Laplace(loc, scale): two exponential tails around `loc`."""

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        u = self.loc.new_empty(self._extended_shape(sample_shape))
        u.uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * term.sign() * (-2 * term.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
