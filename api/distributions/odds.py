"""Distributions given by probabilities or by logits, whichever is at hand."""

from __future__ import annotations

from typing import Any

from .. import Size
from ..tracer.tensor import Tensor
from .distribution import Elementwise
from .utils import lazy_property, logits_to_probs, probs_to_logits


def require_one(probs: Any, logits: Any) -> None:
    """Raises unless just one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class GivenProbabilities(Elementwise):
    """`probs` or `logits` were given; the others are made of them when asked for."""

    @property
    def _param(self) -> Tensor:
        return self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @property
    def param_shape(self) -> Size:
        """The shape of the probabilities."""
        return self._param.size()


class Odds(GivenProbabilities):
    """Each element has a probability; `logits` are its log odds."""

    def _set_odds(self, validate_args: bool | None, probs: Any, logits: Any, **others: Any) -> None:
        require_one(probs, logits)
        given = {"probs": probs} if probs is not None else {"logits": logits}
        self._set(validate_args, **others, **given)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, is_binary=True)
