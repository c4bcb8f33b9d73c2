"""Whole numbers: greatest common divisor, least common multiple."""

from __future__ import annotations

import numpy as np

from .kinds import pointwise, refusing

gcd = pointwise("gcd", "self other -> result", numbers="",
                numpy=refusing("gcd", "fcb", np.gcd))  # fmt: skip
lcm = pointwise("lcm", "self other -> result", numbers="",
                numpy=refusing("lcm", "fcb", np.lcm))  # fmt: skip
