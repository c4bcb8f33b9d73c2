"""Measures the error of every native math function and prints a markdown table.

    pip install mpmath && python benchmarks/math_accuracy.py [--seeds=9] [name ...]

Two independent measures. Samples: float and double at random points, uniform where the function
is used, log-uniform over all exponents and close to its zeros, against mpmath. Sweep: float at
every STRIDE-th of all 2^32 bit patterns, against the double function of the same name; a float
function that is the double one rounded would be compared with itself there, so it has no sweep.
The error is in units of the last place of the exact result; inf, nan and signs of zero must agree.
"""

import ctypes
import sys
import time

import mpmath as mp
import numpy as np
from wengert.codegen.llvm import Emitter
from wengert.codegen.math_core import TABLE
from wengert.codegen.prelude import prelude
from wengert.runtime import jit

STRIDE = 61
SAMPLES = 6000
NUMPY = {"float": np.float32, "double": np.float64}
mp.mp.dps = 60

LOOP = """
define void @kernel(ptr noalias %p, ptr noalias %q, ptr noalias %r, i64 %n) nounwind {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pp = getelementptr inbounds {T}, ptr %p, i64 %i
  %x = load {T}, ptr %pp
  %qq = getelementptr inbounds {T}, ptr %q, i64 %i
  %y = load {T}, ptr %qq
{body}  %rr = getelementptr inbounds {T}, ptr %r, i64 %i
  store {T} {result}, ptr %rr
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %exit, label %loop, !llvm.loop !10
exit:
  ret void
}}
!10 = distinct !{{!10, !11, !12}}
!11 = !{{!"llvm.loop.vectorize.enable", i1 true}}
!12 = !{{!"llvm.loop.interleave.count", i32 4}}
"""


def native(name, element):
    """The function as a callable of one or two arrays; it carries its library and its text."""
    m = Emitter()
    arguments = [m.argument("%x", element), m.argument("%y", element)][: TABLE[name].arity]
    result = m.call(name, *arguments)
    text = LOOP.format(T=element, body=m.text(), result=result.text) + prelude(m.calls)
    library = jit.load(jit.compile_text(text), ["kernel"])
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)
    kernel = kind(library.address("kernel"))

    def call(x, y=None):
        x = np.ascontiguousarray(x, NUMPY[element])
        y = x if y is None else np.ascontiguousarray(y, NUMPY[element])
        out = np.empty_like(x)
        kernel(x.ctypes.data, y.ctypes.data, out.ctypes.data, len(x))
        return out

    call.library, call.text, call.kernel = library, text, kernel
    return call


def ulps(got, exact, dtype):
    """Errors in ulps of the exact value; 1e9 where inf, nan or a zero's sign is wrong."""
    info = np.finfo(dtype)
    rounded = exact.astype(dtype)
    special = ~np.isfinite(rounded) | (rounded == 0)
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log2(np.abs(exact, dtype=exact.dtype)))
        unit = np.exp2(np.maximum(exponent, info.minexp) - info.nmant)
        error = np.abs((got.astype(exact.dtype) - exact) / unit).astype(np.float64)
    same = (got == rounded) & (np.signbit(got) == np.signbit(rounded))
    same |= np.isnan(got) & np.isnan(rounded)
    # the largest finite value instead of inf (or back) is one step like any other
    edge = (np.abs(got) == info.max) & np.isinf(rounded) & (np.sign(got) == np.sign(rounded))
    back = np.isinf(got) & (np.abs(rounded) == info.max)
    edge |= (rounded == 0) & (np.abs(got) <= info.smallest_subnormal)
    error = np.where(special | np.isnan(error), 1e9, error)
    return np.where(special & same, 0.0, np.where(edge | back, 1.0, error))


MPMATH = {
    "asin": mp.asin, "acos": mp.acos, "atan": mp.atan, "atan2": mp.atan2, "pow": mp.power,
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)), "log2": lambda x: mp.log(x) / mp.log(2),
    "log10": lambda x: mp.log(x) / mp.log(10), "exp2": lambda x: mp.power(2, x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "lgamma": lambda x: mp.log(abs(mp.gamma(x))),
    "digamma": mp.digamma, "erfinv": mp.erfinv, "hypot": mp.hypot,
}  # fmt: skip


def reference(name, *arrays):
    """Exact values as longdoubles; nan where the real function has none."""
    exact = MPMATH.get(name) or getattr(mp, name)

    def one(*xs):
        xs = [mp.mpf(float(x)) for x in xs]
        try:
            value = exact(*xs)
        except (ValueError, ZeroDivisionError, OverflowError):
            return np.longdouble("nan")
        if isinstance(value, mp.mpc):
            return np.longdouble("nan")
        if mp.mpf("1e-4000") < abs(value) < mp.mpf("1e4000"):
            return np.longdouble(mp.nstr(value, 25))
        return np.longdouble(float(value))

    return np.array([one(*xs) for xs in zip(*arrays)], np.longdouble)


RANGES = {
    "exp": (-745, 710), "exp2": (-1075, 1024), "expm1": (-40, 710), "sigmoid": (-745, 40),
    "tanh": (-3, 3), "sinh": (-711, 711), "cosh": (-711, 711), "log": (0, 3), "log2": (0, 3),
    "log10": (0, 3), "log1p": (-1, 3), "asin": (-1, 1), "acos": (-1, 1), "atan": (-5, 5),
    "sin": (-1e3, 1e3), "cos": (-1e3, 1e3), "tan": (-1e3, 1e3), "erf": (-6, 6), "erfc": (-6, 27),
    "erfinv": (-1, 1), "asinh": (-5, 5), "acosh": (1, 5), "atanh": (-1, 1), "cbrt": (-10, 10),
    "lgamma": (0, 30), "digamma": (0, 30), "pow": (0, 20), "atan2": (-5, 5), "hypot": (-5, 5),
}  # fmt: skip
CLOSE_TO = {"log": 1, "log2": 1, "log10": 1, "acosh": 1, "asin": 1, "acos": 1, "atanh": 1,
            "lgamma": 2, "erfinv": 1}  # fmt: skip


EXPONENTS = {"float": (-149, 128), "double": (-1074, 1024)}


def samples(name, rng, count, element):
    """Where to measure, as doubles that the element type can hold."""
    x = _samples(name, rng, count, element)
    with np.errstate(over="ignore"):
        return x.astype(NUMPY[element]).astype(np.float64)


def _samples(name, rng, count, element):
    low, high = RANGES[name]
    uniform = rng.uniform(low, high, count)
    exponents = rng.integers(*EXPONENTS[element], count // 2)
    wide = np.ldexp(rng.uniform(1, 2, count // 2), exponents)
    small = np.ldexp(rng.uniform(1, 2, count // 4), rng.integers(-60, 3, count // 4))
    parts = [uniform, wide, -wide[: count // 4], small, -small]
    centre = CLOSE_TO.get(name, 0)
    parts.append(centre + small * 2.0**-4)
    parts.append(centre - small * 2.0**-4)
    if name in ("sin", "cos", "tan"):
        turns = np.ldexp(rng.uniform(1, 2, count), rng.integers(0, 50, count)).round()
        parts.append(turns * (np.pi / 2))  # the doubles next to multiples of pi/2
    x = np.concatenate(parts)
    # mpmath's own domains: it would compute a gamma of 1e300 for minutes
    if name in ("lgamma", "digamma"):
        x = x[(x < 1e6) & (x > 0)]
        if element == "float":  # a double is not accurate next to the zeros down there
            below = rng.uniform(-15, 0, count // 2)
            x = np.concatenate([x, below[np.abs(below - np.round(below)) > 1e-4]])
    if name == "erfc":
        x = x[np.abs(x) < 1e3]
    return x


def pairs(name, rng, count, element):
    x = samples(name, rng, count, element)
    if name != "pow":
        return x, rng.permutation(x)
    x = np.abs(x)
    size = np.abs(np.log(np.maximum(x, 1e-320)))
    limit = 700 if element == "double" else 100
    y = rng.uniform(-1, 1, len(x)) * limit / np.maximum(size, 1e-3)
    return x, y.astype(NUMPY[element]).astype(np.float64)


def measure_samples(name, element, rng):
    """(largest error, where) against mpmath."""
    function, count = native(name, element), SAMPLES if element == "double" else SAMPLES // 2
    if TABLE[name].arity == 2:
        arrays = pairs(name, rng, count, element)
    else:
        arrays = (samples(name, rng, count, element),)
    error = ulps(function(*arrays), reference(name, *arrays), NUMPY[element])
    worst = int(np.argmax(error))
    return error[worst], [a[worst] for a in arrays]


def measure_sweep(name, rng):
    """(largest error, share above one ulp, where) of float against double."""
    single, double = native(name, "float"), native(name, "double")
    worst, over, count, where = 0.0, 0, 0, None
    patterns = np.arange(0, 2**32, STRIDE, dtype=np.uint64).astype(np.uint32)
    for part in np.array_split(patterns, 32):
        x = part.view(np.float32)
        arrays = (x,) if TABLE[name].arity == 1 else (x, rng.permutation(x))
        if name == "pow":  # most random pairs overflow: choose the power for the base
            with np.errstate(all="ignore"):
                size = np.maximum(np.abs(np.log(np.abs(x.astype(np.float64)))), 1e-2)
                arrays = (x, (rng.uniform(-1, 1, len(x)) * 100 / size).astype(np.float32))
        exact = double(*(a.astype(np.float64) for a in arrays))
        error = ulps(single(*arrays), exact, np.float32)
        i = int(np.argmax(error))
        if error[i] > worst or where is None:
            worst, where = error[i], [a[i] for a in arrays]
        over, count = over + int((error > 1).sum()), count + len(x)
    return worst, over / count, where


def speed(name, element, rng):
    """Nanoseconds per element on 4096 elements of the usual range, the best of many."""
    function = native(name, element)
    low, high = RANGES[name]
    x = rng.uniform(max(low, -20), min(high, 20), 4096).astype(NUMPY[element])
    out, best = np.empty_like(x), 1e9
    pointers = x.ctypes.data, x.ctypes.data, out.ctypes.data
    for _ in range(300):
        start = time.perf_counter()
        function.kernel(*pointers, len(x))
        best = min(best, time.perf_counter() - start)
    return best / len(x) * 1e9


def main():
    rng = np.random.default_rng(0)
    flags = [a for a in sys.argv[1:] if a.startswith("--seeds=")]
    seeds = int(flags[0].partition("=")[2]) if flags else 1
    names = [a for a in sys.argv[1:] if a not in flags] or sorted(TABLE)
    print("| function | float32 sweep | over 1 ulp | float32 samples | float64 samples | "
          "ns float32 | ns float64 |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for name in names:
        with np.errstate(all="ignore"):
            double, at_double = max(
                (measure_samples(name, "double", np.random.default_rng(seed))
                 for seed in range(seeds)), key=lambda found: found[0])  # fmt: skip
            single, at_single = measure_samples(name, "float", rng)
            sweep, share, at_sweep = "-", "-", None
            if not TABLE[name].wide:
                worst, over, at_sweep = measure_sweep(name, rng)
                sweep, share = f"{worst:.2f}", f"{over:.4%}"
        print(f"| {name} | {sweep} | {share} | {single:.2f} | {double:.2f} | "
              f"{speed(name, 'float', rng):.2f} | {speed(name, 'double', rng):.2f} |",
              flush=True)  # fmt: skip
        print(f"  {name}: worst at {at_sweep}, {at_single}, {at_double}", file=sys.stderr)


if __name__ == "__main__":
    main()
