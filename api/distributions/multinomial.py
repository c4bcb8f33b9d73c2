"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, ones_like
from ..tracer.creation import tensor
from ..tracer.tensor import Tensor
from . import constraints
from .binomial import Binomial
from .one_hot_categorical import OfCategorical
from .utils import broadcast_all


class Multinomial(OfCategorical):
    """Multinomial(total_count=1, probs=None, logits=None): how often each index was drawn."""

    _kept = ("total_count",)

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = Size(sample_shape)
        indices = self._categorical.sample((self.total_count, *shape)).movedim(0, -1)
        counts = indices.new_zeros(self._extended_shape(shape))
        return counts.scatter_add_(-1, indices, ones_like(indices)).type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = tensor(self.total_count)
        term = n * self._categorical.entropy() - (n + 1).lgamma()
        single = Binomial(self.total_count, probs=self.probs)
        support = single.enumerate_support(expand=False)[1:]
        return term + (single.log_prob(support).exp() * (support + 1).lgamma()).sum([0, -1])
