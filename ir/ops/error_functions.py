"""Error functions and the normal distribution: erf, erfc, erfinv; ndtr and its relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..numerics import errors, errors_single
from ..value import public
from .arithmetic import mul_number
from .kinds import pointwise, require_value
from .layouts import in_memory_order
from .special import in_double, special

SLOPE = 2 / math.sqrt(math.pi)

_erf_double = in_double("erf", errors.erf)


@in_memory_order
def _erf(x: Any) -> Any:
    single = getattr(x, "dtype", None) == np.float32
    return errors_single.erf(x) if single else _erf_double(x)


erf = pointwise("erf", "self -> result", promote="float", numpy=_erf,
                spaces="torch special", scalar=lambda s, x: s.erf(x), domain=(-3, 3),
                many_passes=True, vjp=dict(self=lambda grad, self: (
                    SLOPE * (-(self * self)).exp() * grad)))  # fmt: skip
erfc = pointwise("erfc", "self -> result", promote="float", numpy=in_double("erfc", errors.erfc),
                 spaces="torch special", scalar=lambda s, x: s.erfc(x), domain=(-3, 3),
                 vjp=dict(self=lambda grad, self: (
                     -SLOPE * (-(self * self)).exp() * grad)))  # fmt: skip
erfinv = pointwise("erfinv", "self -> result", promote="float", spaces="torch special",
                   numpy=in_double("erfinv", errors.erfinv), scalar=lambda s, x: s.erfinv(x),
                   domain=(-0.9, 0.9),
                   vjp=dict(self=lambda grad, result: (
                       (result * result).exp() * grad / SLOPE)))  # fmt: skip
erfcx = special("erfcx", errors.erfcx, domain=(-2, 4),
                vjp=dict(self=lambda grad, self, result: (
                    (2 * self * result - SLOPE) * grad)))  # fmt: skip
ndtri = special("ndtri", errors.ndtri, domain=(0.1, 0.9),
                vjp=dict(self=lambda grad, result: (
                    grad * (math.sqrt(2 * math.pi) * (result * result / 2).exp()))))  # fmt: skip


def _log_ndtr_vjp(grad: Any, self: Any) -> Any:
    slope = grad / erfcx(self * -math.sqrt(0.5)) * math.sqrt(2 / math.pi)
    return slope.masked_fill(self.eq(-math.inf), math.nan)  # torch's formula is inf - inf there


log_ndtr = special("log_ndtr", errors.log_ndtr, domain=(-3, 3), vjp=dict(self=_log_ndtr_vjp))


@public("ndtr", spaces="special", method=False)
def ndtr(input: Any) -> Any:
    """ndtr(input): the distribution function of the normal distribution."""
    require_value("special_ndtr", input)
    return mul_number(erf(input * math.sqrt(0.5)) + 1, 0.5)
