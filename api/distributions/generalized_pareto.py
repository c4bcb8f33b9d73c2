"""The generalized Pareto distribution: tails of other distributions."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, rand, where
from ..tracer.tensor import Tensor
from . import constraints
from .distribution import Elementwise


class GeneralizedPareto(Elementwise):
    """GeneralizedPareto(loc, scale, concentration): exponential where concentration is 0."""

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._set(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, where(self.concentration < 0, end, math.inf))

    def _shape(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is zero, and the concentration with 1 instead of zero."""
        zero = self.concentration.isclose(self.concentration.new_zeros(()))
        return zero, where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, shape = self._shape()
        power = 1 / shape + z.new_ones(z.shape)
        decay = where(power == 0, power, power * (shape * z).log1p())
        return -self.scale.log() - where(zero, z, decay)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of more than `value`."""
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, shape = self._shape()
        return where(zero, -z, -(shape * z).log1p() / shape)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, shape = self._shape()
        rest = (-value).log1p()
        curved = self.loc + self.scale / shape * (-shape * rest).expm1()
        return where(zero, self.loc - self.scale * rest, curved)

    def _below(self, limit: float, value: Any) -> Tensor:
        """`value` of a concentration below `limit`; NaN elsewhere."""
        valid = self.concentration < limit
        return where(valid, value(where(valid, self.concentration, limit / 2)), math.nan)

    @property
    def mean(self) -> Tensor:
        return self._below(1, lambda c: self.loc + self.scale / (1 - c))

    @property
    def variance(self) -> Tensor:
        return self._below(0.5, lambda c: self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)))

    @property
    def mode(self) -> Tensor:
        return self.loc

    def entropy(self) -> Tensor:
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)
