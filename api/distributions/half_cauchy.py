"""The half-Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import as_tensor, full
from ..tracer.tensor import Tensor
from .cauchy import Cauchy
from .half_normal import Folded
from .transforms import AbsTransform


class HalfCauchy(Folded):
    """HalfCauchy(scale): the absolute value of a Cauchy variable around zero."""

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full(self._extended_shape(), math.inf, dtype=self.scale.dtype)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        return super().log_prob(as_tensor(value, dtype=self.scale.dtype))
