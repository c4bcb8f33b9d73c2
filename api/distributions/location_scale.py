"""What distributions with a location and a scale have in common."""

from __future__ import annotations

from typing import Any

from ..tracer.tensor import Tensor
from . import constraints
from .distribution import Elementwise


class Centred(Elementwise):
    """Mean and mode are at `loc`."""

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Centred):
    """Symmetric around `loc`, as wide as `scale` says; on all real numbers."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._set(validate_args, loc=loc, scale=scale)
