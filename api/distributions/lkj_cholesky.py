"""Random correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, arange, cat, finfo, randn
from ..tracer.tensor import Tensor
from . import constraints
from .beta import Beta
from .distribution import Distribution, Elementwise
from .utils import broadcast_all


class LKJCholesky(Elementwise):
    """LKJCholesky(dim, concentration=1.0): more concentrated, less correlated."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _kept = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: Any = None) -> None:
        if dim < 2:
            raise ValueError("Expected dim to be an integer greater than or equal to 2. Found "
                             f"dim={dim}.")  # fmt: skip
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        Distribution.__init__(self, self.concentration.size(), Size((dim, dim)), validate_args)

    def _beta(self) -> Beta:
        """Row lengths by the onion method (Lewandowski, Kurowicka and Joe, 2009)."""
        offset = arange(self.dim - 1, dtype=self.concentration.dtype)
        offset = cat([offset.new_zeros((1,)), offset])
        marginal = self.concentration + 0.5 * (self.dim - 2)
        return Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        y = self._beta().sample(sample_shape).unsqueeze(-1)
        directions = randn(self._extended_shape(sample_shape), dtype=y.dtype).tril(-1)
        directions = directions / directions.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)
        w = y.sqrt() * directions
        rest = (1 - (w**2).sum(dim=-1)).clamp(min=finfo(w.dtype).tiny).sqrt()
        return w + rest.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - arange(2, self.dim + 1)
        free = self.dim - 1
        alpha = self.concentration + 0.5 * free
        norm = 0.5 * free * math.log(math.pi) + (alpha - 0.5).mvlgamma(free) - alpha.lgamma() * free
        return (order * diagonal.log()).sum(dim=-1) - norm
