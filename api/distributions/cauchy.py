"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, full
from ..tracer.tensor import Tensor
from .location_scale import LocationScale


class Cauchy(LocationScale):
    """Cauchy(loc, scale): median `loc`, half width at half height `scale`."""

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.nan, dtype=self.loc.dtype)

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.loc.dtype)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        draws = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + draws * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        square = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - self.scale.log() - square.log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
