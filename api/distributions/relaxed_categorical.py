"""One-hot samples made continuous, and their logarithms."""

from __future__ import annotations

from typing import Any

from .. import Size, full_like, rand
from ..tracer.tensor import Tensor
from . import constraints
from .one_hot_categorical import OfCategorical
from .relaxed import Relaxed
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs


class ExpRelaxedCategorical(OfCategorical):
    """ExpRelaxedCategorical(temperature, probs=None, logits=None): logarithms of shares."""

    support = constraints.real_vector  # the exponentials lie on the simplex
    has_rsample = True
    _kept = ("temperature",)

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(rand(shape, dtype=self.logits.dtype))
        scores = (self.logits + -(-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(1 - k)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """RelaxedOneHotCategorical(temperature, probs=None, logits=None): shares."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(self, temperature: Tensor, probs: Any = None, logits: Any = None,
                 validate_args: bool | None = None) -> None:  # fmt: skip
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
