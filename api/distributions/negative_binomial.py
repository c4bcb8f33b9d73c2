"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, poisson
from ..nn.functional import logsigmoid
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from . import constraints
from .gamma import Gamma
from .odds import Odds


class NegativeBinomial(Odds):
    """NegativeBinomial(total_count, probs=None, logits=None): successes before the failures."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0),
                       "probs": constraints.half_open_interval(0.0, 1.0),
                       "logits": constraints.real}  # fmt: skip
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        self._set_odds(validate_args, probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._param)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():  # a count of zero is no valid shape of a gamma, but drawn all the same
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        count = self.total_count
        weight = count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -(count + value).lgamma() + (1.0 + value).lgamma() + count.lgamma()
        return weight - ways.masked_fill(count + value == 0.0, 0.0)
