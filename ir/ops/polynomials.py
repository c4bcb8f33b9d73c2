"""Orthogonal polynomials of `torch.special`; torch does not differentiate them."""

from __future__ import annotations

from ..numerics import orthogonal
from .special import special

_NAMES = (
    "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "hermite_polynomial_h",
    "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p",
)  # fmt: skip
for _name in _NAMES:
    special(_name, getattr(orthogonal, _name), "self other -> result")
