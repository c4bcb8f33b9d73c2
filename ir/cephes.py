"""The numbers of Box-Muller in single precision, as torch's CPU kernels have them from Cephes.

Eager evaluates them by NumPy (`tracer/boxmuller.py`), native code by a template; both in the
same order, with the same fused multiply-adds.
"""

from __future__ import annotations

# of log(1 + x), sin(x) / x - 1 and cos(x) - 1 + x * x / 2, the highest power first
LOG = (7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
       -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1)  # fmt: skip
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
# pi/4 in three parts and log(2) in two: the leading parts have few bits, so multiples are exact
PI_4 = (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8)
LOG_2 = (0.693359375, -2.12194440e-4)
SQRT_HALF, FOUR_OVER_PI, TWO_PI = 0.707106781186547524, 1.27323954473516, 6.283185307179586
