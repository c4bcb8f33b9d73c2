"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size
from .. import normal as draw_normal
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from .exp_family import ExponentialFamily
from .location_scale import LocationScale
from .utils import _standard_normal


class Normal(LocationScale, ExponentialFamily):
    """Normal(loc, scale): mean `loc`, standard deviation `scale`."""

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return draw_normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.loc + _standard_normal(self._extended_shape(sample_shape),
                                           self.loc.dtype) * self.scale  # fmt: skip

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        square = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -square - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)).erf())

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * (2 * value - 1).erfinv() * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.pow(2) / y + 0.5 * (-math.pi / y).log()
