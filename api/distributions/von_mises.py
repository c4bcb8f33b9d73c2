"""The von Mises distribution, on the circle."""

from __future__ import annotations

import math
from typing import Any

from .. import Size, bool, empty, float64, rand, special, where, zeros
from ..tracer.modes import no_grad
from ..tracer.tensor import Tensor
from . import constraints
from .location_scale import Centred
from .utils import lazy_property


class VonMises(Centred):
    """VonMises(loc, concentration): angles around `loc`."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: Any = None) -> None:
        self._set(validate_args, loc=loc, concentration=concentration)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        # i0e is exp(-k) i0(k), so that nothing overflows
        log_bessel = special.i0e(self.concentration).log() + self.concentration
        along = self.concentration * (value - self.loc).cos()
        return along - math.log(2 * math.pi) - log_bessel

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance."""
        return 1 - special.i1e(self.concentration) / special.i0e(self.concentration)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        kappa = self.concentration.to(float64)
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """By rejection from a wrapped Cauchy distribution (Best and Fisher, 1979)."""
        with no_grad():
            shape = self._extended_shape(sample_shape)
            loc, kappa, r = self.loc.to(float64), self.concentration.to(float64), self._proposal_r
            x, done = empty(shape, dtype=float64), zeros(shape, dtype=bool)
            while not done.all():
                u1, u2, u3 = rand((3, *shape), dtype=float64).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
