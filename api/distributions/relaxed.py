"""What the relaxed distributions of discrete values share."""

from __future__ import annotations

from ..tracer.tensor import Tensor
from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """Samples of a base distribution with a temperature, brought to where probabilities lie."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        """How soft the samples are."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The base distribution's logits."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
