"""Fits the coefficients of the math functions and writes codegen/coefficients.py.

    pip install mpmath && python benchmarks/fit_math.py > codegen/coefficients.py

Polynomials interpolate at Chebyshev nodes (within a small factor of the minimax error, which one
more term buys back). Every form keeps its leading terms exact and fits only what is left, a small
correction, so that rounding the coefficients afterwards costs nothing that can be measured.
"""

import mpmath as mp
import numpy as np

mp.mp.dps = 70
mpf = mp.mpf


def nodes(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * mp.cos(mp.pi * (k + mpf(1) / 2) / count)
            for k in range(count)]  # fmt: skip


def rounded(value, dtype):
    return float(np.float32(float(value))) if dtype == "float" else float(value)


def polynomial(function, low, high, terms, dtype="double"):
    """Coefficients, lowest first, of a polynomial in u close to function(u)."""
    # an odd number of nodes on a symmetric interval would hit 0, where the forms are 0/0
    points = nodes(mpf(low) * (1 - mpf(10) ** -9), mpf(high), terms)
    rows = mp.matrix(terms, terms)
    for i in range(terms):
        for j in range(terms):
            rows[i, j] = points[i] ** j
    solved = mp.lu_solve(rows, mp.matrix([function(u) for u in points]))
    return [rounded(c, dtype) for c in solved]


def rational(function, low, high, over, under):
    """Coefficients of P/Q, Q starting with 1; both lowest first."""
    count = over + under - 1
    points = nodes(mpf(low), mpf(high), count)
    rows, right = mp.matrix(count, count), mp.matrix(count, 1)
    for i, u in enumerate(points):
        value = function(u)
        for j in range(over):
            rows[i, j] = u**j
        for j in range(1, under):
            rows[i, over + j - 1] = -value * u**j
        right[i] = value
    solved = mp.lu_solve(rows, right)
    return [float(c) for c in solved[:over]], [1.0] + [float(c) for c in solved[over:]]


def odd_rest(function):
    """(f(x) - x) / x^3 as a function of u = x^2, for odd f."""
    return lambda u: (function(mp.sqrt(u)) - mp.sqrt(u)) / (u * mp.sqrt(u))


HALF_LN2 = mpf("0.34665")
EIGHTH = (mp.sqrt(2) - 1) ** 2


def log_even(u):
    """(log((1+s)/(1-s)) - 2s) / s^3 with u = s^2."""
    s = mp.sqrt(u)
    return (mp.log((1 + s) / (1 - s)) - 2 * s) / s**3


def log_single(f):
    return (mp.log1p(f) - f + f * f / 2) / f**3


def erfcx_scaled(t):
    a = 4 * (1 + t) / (1 - t)
    return (1 + 2 * a) * mp.exp(a * a) * mp.erfc(a)


def erf_log(t):
    return (-mp.log(mp.erfc(t)) - t) / t


def polynomials():
    exp_rest = lambda r: (mp.expm1(r) - r) / r**2  # noqa: E731
    cos_rest = lambda u: (mp.cos(mp.sqrt(u)) - 1 + u / 2) / u**2  # noqa: E731
    quarter = (mp.pi / 4) ** 2 * mpf("1.002")
    s_max = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.001")
    tail = lambda a: (a - 4) / (a + 4)  # noqa: E731
    yield "exp", exp_rest, -HALF_LN2, HALF_LN2, 5, 10
    yield "expm1", exp_rest, -HALF_LN2, HALF_LN2, 6, 11
    yield "log", log_single, mp.sqrt(0.5) - 1.0001, mp.sqrt(2) - 0.9999, 9, None
    yield "log_even", log_even, 0, s_max, 4, 7
    yield "log_tail", lambda u: (log_even(u) - mpf(2) / 3) / u, 0, s_max, None, 8
    yield "sinh", odd_rest(mp.sinh), 0, 1, 4, 8
    yield "sin", odd_rest(mp.sin), 0, quarter, 3, 7
    yield "cos", cos_rest, 0, quarter, 3, 7
    yield "asin", odd_rest(mp.asin), 0, 0.2501, 6, 13
    yield "atan", odd_rest(mp.atan), 0, EIGHTH * mpf("1.001"), 5, 12
    yield "erf", lambda u: mp.erf(mp.sqrt(u)) / mp.sqrt(u) - 1, 0, 1, 7, 14
    yield "erf_tail", erf_log, 0.92, 4, 7, None
    yield "erfcx", erfcx_scaled, tail(mpf(0.49)), tail(mpf(28)), None, 20
    yield "lgamma_far", lgamma_far, mpf("1e-12"), mpf(1) / 64, None, 8
    yield "digamma_far", digamma_far, mpf("1e-12"), 1 / mpf(2.25) ** 2, None, 16
    yield "cbrt", lambda m: mp.cbrt(m), 1, 2, None, 5


ERFINV_TOP, ERFINV_SPLIT = mpf(0.7225), (mpf(1.375), mpf(2.75))
DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616)


def erfinv_middle(v):
    """(erfinv(x) / x - sqrt(pi)/2) / x^2 with v = ERFINV_TOP - x^2."""
    u = ERFINV_TOP - v
    x = mp.sqrt(u)
    return (mp.erfinv(x) / x - mp.sqrt(mp.pi) / 2) / u


def erfinv_ratio(s):
    """erfinv(x) / s - 1 with s = sqrt(-log(1 - x))."""
    return mp.erfinv(1 - mp.exp(-s * s)) / s - 1


def erfinv_tail(start):
    """(erfinv_ratio(s) - its value at start) / t with s = start + t."""
    return lambda t: (erfinv_ratio(start + t) - mpf(float(erfinv_ratio(start)))) / t


def lgamma_middle(start, centre, value):
    """(lgamma(1 + z) / (z (z - 1)) - value) / (z - centre), z = start + t; value is at centre."""
    start += mpf("1e-25")  # off by a hair: at z = 0 and 1 the form is 0/0

    def middle(t):
        z = start + t
        return (mp.loggamma(1 + z).real / (z * (z - 1)) - value) / (z - centre)

    return middle


def lgamma_far(u):
    """x (lgamma(x) - Stirling) with u = 1/x^2."""
    x = 1 / mp.sqrt(u)
    return x * (mp.loggamma(x).real - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def digamma_middle(z):
    """(digamma(1 + z) / d - slope) / d, d the distance from the root, slope the one there."""
    d = 1 + z - DIGAMMA_ROOT
    return (mp.digamma(1 + z) / d - mp.psi(1, DIGAMMA_ROOT)) / d


def digamma_far(u):
    """x^2 (log(x) - 1/(2x) - digamma(x)) with u = 1/x^2."""
    x = 1 / mp.sqrt(u)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / u


def rationals():
    yield "erfinv_middle", erfinv_middle, 0, ERFINV_TOP - mpf("1e-9"), 9
    yield "erfinv_near", erfinv_tail(ERFINV_SPLIT[0]), 0, ERFINV_SPLIT[1] - ERFINV_SPLIT[0], 10
    yield "erfinv_far", erfinv_tail(ERFINV_SPLIT[1]), 0, mpf(6.1) - ERFINV_SPLIT[1], 10
    yield "lgamma_low", lgamma_middle(mpf(-0.5), 0, mp.euler), 0, 1, 9
    yield "lgamma_high", lgamma_middle(mpf(0.5), 1, 1 - mp.euler), 0, 1.5, 9
    yield "digamma", digamma_middle, 0, 1.25, 8


def quarter_turns(k):
    """2^(26 k) * 2/pi without whole turns: what a multiple of 2^(26 k) leaves of an angle."""
    value = 2 / mp.pi * mpf(2) ** (26 * k)
    return value - 4 * mp.nint(value / 4) if k else value


def turns_single():
    """Rows (scale, part, part, rest): a float's 24 bits times a 29-bit part are exact."""
    for k in range(4):
        value = quarter_turns(k)
        row = [2.0 ** (-26 * k)]
        for bits in (27, 55):
            row.append(float(mp.nint(value * mpf(2) ** bits) / mpf(2) ** bits))
            value -= mpf(row[-1])
        yield [*row, float(value)]


def turns_double():
    """For each part of four the values at k = 0 .. 37, which reach the largest double."""
    values = [quarter_turns(k) for k in range(38)]
    for _ in range(4):
        part = [float(v) for v in values]
        yield part
        values = [v - mpf(p) for v, p in zip(values, part)]


def print_table(name, values):
    print(f"{name} = (")
    line = "   "
    for text in (f" {v!r}," for v in values):
        if len(line + text) > 100:
            print(line)
            line = "   "
        line += text
    print(f"{line}\n)")


HEADER = '''"""Coefficients of the math functions, written by benchmarks/fit_math.py.

Polynomials are listed lowest power first. The comments of fit_math.py say what each one is
close to, on which interval; F32 and F64 tell the element type they serve.
"""

# fmt: off
'''


def main():
    print(HEADER)
    for name, function, low, high, single, double in polynomials():
        for suffix, dtype, terms in (("F32", "float", single), ("F64", "double", double)):
            if terms:
                print_table(f"{name.upper()}_{suffix}",
                            polynomial(function, low, high, terms, dtype))  # fmt: skip
    for name, function, low, high, terms in rationals():
        over, under = rational(function, low, high, terms, terms)
        print_table(f"{name.upper()}_OVER", over)
        print_table(f"{name.upper()}_UNDER", under)
    print_table("ERFINV_START", [float(erfinv_ratio(start)) for start in ERFINV_SPLIT])
    root = [float(DIGAMMA_ROOT)]
    root.append(float(DIGAMMA_ROOT - mpf(root[0])))
    print_table("DIGAMMA_ROOT", root)
    print(f"DIGAMMA_SLOPE = {float(mp.psi(1, DIGAMMA_ROOT))!r}")
    mp.mp.dps = 400  # the largest double times 2/pi has 1024 bits before the point
    for i, row in enumerate(turns_single()):
        print_table(f"TURNS_F32_{i}", row)
    for i, row in enumerate(turns_double()):
        print_table(f"TURNS_F64_{i}", row)


if __name__ == "__main__":
    main()
