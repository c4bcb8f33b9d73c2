"""Bessel and Airy functions; torch differentiates only i0, i0e, i1 and i1e."""

from __future__ import annotations

from typing import Any

from ..numerics import bessel
from .kinds import pointwise
from .special import in_double, special

i0 = pointwise("i0", "self -> result", promote="float", numpy=in_double("i0", bessel.i0),
               spaces="torch special", domain=(-3, 3),
               vjp=dict(self=lambda grad, self: grad * i1(self)))  # fmt: skip


EPSILON = {"float64": 2.220446049250313e-16, "float32": 1.1920928955078125e-07}


def _i1_slope(formula: Any) -> Any:
    """The slope of i1 and i1e at zero is a half; the formula there is 0 / 0."""

    def rule(grad: Any, self: Any, result: Any) -> Any:
        usual = self.abs() > EPSILON.get(self.dtype.name, 1e-3)
        slope = formula(self.masked_fill(usual.logical_not(), 1.0), result)
        return grad * slope.masked_fill(usual.logical_not(), 0.5)

    return rule


i0e = special("i0e", bessel.i0e, domain=(0.3, 3),
              vjp=dict(self=lambda grad, self, result: (
                  grad * (i1e(self) - self.sgn() * result))))  # fmt: skip
i1: Any = special("i1", bessel.i1, domain=(0.3, 3), vjp=dict(
    self=_i1_slope(lambda x, result: i0(x) - result / x)))  # fmt: skip
i1e: Any = special("i1e", bessel.i1e, domain=(0.3, 3), vjp=dict(
    self=_i1_slope(lambda x, result: i0e(x) - result * (x.sgn() + 1 / x))))  # fmt: skip

modified_bessel_i0 = special("modified_bessel_i0", bessel.i0)
modified_bessel_i1 = special("modified_bessel_i1", bessel.i1)
for _name in (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0",
    "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "spherical_bessel_j0",
):  # fmt: skip
    special(_name, getattr(bessel, _name))
