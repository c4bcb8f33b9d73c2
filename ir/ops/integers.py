"""Whole numbers: greatest common divisor, least common multiple."""

from __future__ import annotations

import numpy as np

from .compare import whole_numbers
from .kinds import pointwise, refusing

gcd = pointwise("gcd", "self other -> result", numbers="", samples=whole_numbers(2),
                numpy=refusing("gcd", "fcb", np.gcd))  # fmt: skip
lcm = pointwise("lcm", "self other -> result", numbers="", samples=whole_numbers(2),
                numpy=refusing("lcm", "fcb", np.lcm))  # fmt: skip
