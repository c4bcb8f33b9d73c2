"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, arange, broadcast_tensors, finfo, full, multinomial, nan
from ..tracer.tensor import Tensor
from . import constraints
from .distribution import Distribution
from .odds import GivenProbabilities, require_one
from .utils import lazy_property, logits_to_probs, probs_to_logits


class Categorical(GivenProbabilities):
    """Categorical(probs=None, logits=None): an index along the last dimension."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _kept = ("_num_events",)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        require_one(probs, logits)
        name, value = ("probs", probs) if probs is not None else ("logits", logits)
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = value.size(-1)
        Distribution.__init__(self, value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities, which sum to one."""
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), nan, dtype=self.probs.dtype)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return full(self._extended_shape(), nan, dtype=self.probs.dtype)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        samples = multinomial(rows, sample_shape.numel(), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        # a logit of -inf counts nothing: its probability is 0
        logits = self.logits.clamp(min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
