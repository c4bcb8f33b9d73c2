"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from .. import Size, finfo
from ..nn.functional import binary_cross_entropy_with_logits
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from . import constraints
from .odds import Odds
from .utils import broadcast_all


class Geometric(Odds):
    """Geometric(probs=None, logits=None): failures before the first success."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_odds(validate_args, probs, logits)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"of distribution {self!r} to be positive but found invalid values:\n"
                f"{value.data[~(value > 0)]}"
            )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return self.probs.new_zeros(self.probs.shape)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape))
            u.uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        misses = probs.masked_fill((probs == 1) & (value == 0), 0)
        return value * (-misses).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        binary = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return binary / self.probs
