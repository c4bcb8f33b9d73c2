"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

from .. import finfo, full_like, ones_like
from ..tracer.tensor import Tensor
from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


class Gumbel(TransformedDistribution):
    """Gumbel(loc, scale): the largest of many, -log(-log(u)) scaled and moved."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _own = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        facts = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, facts.tiny), full_like(self.loc, 1 - facts.eps),
                       validate_args=validate_args)  # fmt: skip
        transforms = [ExpTransform().inv, AffineTransform(0, -ones_like(self.scale)),
                      ExpTransform().inv, AffineTransform(loc, -self.scale)]  # fmt: skip
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        """Written out: more exact than through the transforms."""
        self._check(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)
