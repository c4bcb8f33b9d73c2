"""Accuracy of the math functions: 2 ulp, everywhere sampled, and exact at the edges.

benchmarks/math_accuracy.py measures the same over dense sweeps against mpmath.
"""

import ctypes
import math
import platform
import sys

import numpy as np
import pytest
from wengert.codegen.math_core import TABLE
from wengert.codegen.prelude import prelude

LONG = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "pow": np.power,
    "sigmoid": lambda x: np.where(x > 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x))),
    "erf": np.vectorize(math.erf, otypes=["g"]), "erfc": np.vectorize(math.erfc, otypes=["g"]),
}  # fmt: skip
FUNCTIONS = sorted(set(TABLE) - {"erfinv", "lgamma", "digamma"})
DOMAIN = {"acosh": (1, 50), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-1, 1), "log": (0, 9),
          "log2": (0, 9), "log10": (0, 9), "log1p": (-1, 9), "pow": (0, 30)}  # fmt: skip
EXTREME = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e-40, 1e-45, 3e38,
           1e300, -1e300, 1.7e308, 89.0, -89.0, -103.9, 710.0, -745.1, 20.0, -3e38]  # fmt: skip


def exact(name, *arrays):
    with np.errstate(all="ignore"):
        return (LONG.get(name) or getattr(np, name))(*(a.astype(np.longdouble) for a in arrays))


def arguments(name, dtype, rng, n=4000):
    low, high = DOMAIN.get(name, (-30, 30))
    x = np.concatenate([
        EXTREME, rng.uniform(low, high, n), rng.uniform(low, min(high, 1.5), n),
        np.ldexp(rng.uniform(-2, 2, n), rng.integers(-160, 140, n)),
    ])  # fmt: skip
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    return (x, rng.permutation(x)) if TABLE[name].arity == 2 else (x,)


def ulps(got, want, dtype):
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype)
        exponent = np.maximum(np.floor(np.log2(np.abs(want))), info.minexp)
        error = np.abs((got - want) / np.exp2(exponent - info.nmant)).astype(float)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, 0, np.where(np.isnan(error), np.inf, error))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_ulps(compiled, rng, name, dtype):
    arrays = arguments(name, dtype, rng)
    got = compiled(lambda s, *x: getattr(s, name)(*x), (dtype,) * len(arrays))(*arrays)
    error = ulps(got, exact(name, *arrays), dtype)
    # libm's own erf and erfc are only good to an ulp
    limit = 3 if name in ("erf", "erfc") and dtype == "float64" else 2
    bad = np.flatnonzero(~(error <= limit))[:5]
    assert not bad.size, [(*(a[i] for a in arrays), got[i], error[i]) for i in bad]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_keep_their_sign(compiled, dtype):
    for name in ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p",
                 "erf", "cbrt"):  # fmt: skip
        native = compiled(lambda s, x, name=name: getattr(s, name)(x), (dtype,))
        got = native(np.array([0.0, -0.0], dtype))
        assert got.tolist() == [0, 0] and np.signbit(got).tolist() == [False, True], name


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library for flags")
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_far_below_is_zero_without_rounding(compiled, dtype, lanes):
    """Results below normal numbers take a CPU ten times as long: scores that are masked would."""
    libm, underflow = ctypes.CDLL("libm.so.6"), 16 if platform.machine() == "x86_64" else 8
    x = np.array([-np.inf, -1e30, -1200.0, -750.0] * 8, dtype)
    functions = {
        "exp": lambda s, x: s.exp(x), "exp2": lambda s, x: s.exp2(s.add(x, x)),
        "sigmoid": lambda s, x: s.sigmoid(x), "erfc": lambda s, x: s.erfc(s.neg(x)),
        "pow": lambda s, x: s.pow(s.const(0.25, dtype), s.neg(x)),
    }  # fmt: skip
    for name, function in functions.items():
        native = compiled(function, (dtype,), lanes=lanes)
        libm.feclearexcept(underflow)
        got = native(x)
        assert not libm.fetestexcept(underflow), name
        assert not got.any() and not np.signbit(got).any(), name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_huge_angles(compiled, rng, dtype):
    top = 127 if dtype == "float32" else 1023
    x = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(10, top, 4000)).astype(dtype)
    x = np.concatenate([x, -x])
    for name in ("sin", "cos", "tan"):
        got = compiled(lambda s, v, name=name: getattr(s, name)(v), (dtype,))(x)
        assert ulps(got, exact(name, x.astype(float)), dtype).max() <= 2, name


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_where_it_is_worst_and_where_it_becomes_one(compiled, rng, dtype):
    native = compiled(lambda s, v: s.tanh(v), (dtype,))
    edges = [(0.17, 0.26), (0.39, 0.41), (2.0**-30, 2.0**-12), (3, 25), (1e3, 1e30)]
    x = np.concatenate([rng.uniform(low, high, 200_000) for low, high in edges]).astype(dtype)
    got = native(x)
    assert ulps(got, exact("tanh", x.astype(float)), dtype).max() <= 2
    assert got.max() == 1 and np.array_equal(native(-x), -got)


def test_prelude_holds_what_is_called_and_nothing_else():
    text = prelude([("sigmoid", "float", 1)])
    assert text.count("define ") == 1
    text = prelude([("sin", "float", 1)])
    assert "@w_sin_v8f32" in text and "llvm.compiler.used" in text


def test_prelude_text_does_not_depend_on_order():
    calls = [("exp", "float", 1), ("sin", "double", 1), ("erf", "float", 1)]
    assert prelude(calls) == prelude(calls[::-1])


# values by mpmath
SPECIAL = {
    "erfinv": (
        [0.1, -0.5, 0.7499, 0.7501, 0.95, -0.999999, 0.9999999999999999],
        [0.08885599049425769, -0.4769362762044699, 0.8132481216088284, 0.8135916215750183,
         1.3859038243496777, -3.458910737275499, 5.8635847487551676],
    ),
    "lgamma": (
        [1e-10, 0.3, 0.999, 1.001, 1.5, 2.0000001, 2.7, 5.5, 7.99, 8.01, 100.0, 10000000000.0,
         -0.5, -3.7],
        [23.025850929882736, 1.0957979948180756, 0.0005780385328913802, -0.0005763935982833062,
         -0.12078223763524522, 4.227843666532498e-08, 0.4348205536551047, 3.9578139676187165,
         8.50501160608848, 8.545324429747733, 359.1342053695754, 220258509288.81058,
         1.2655121234846454, -1.3797399049658245],
    ),
    "digamma": (
        [0.001, 0.5, 1.4616, 2.5, 2.999, 3.001, 50.0, 10000000000.0, -0.5, -7.25],
        [-1000.5755719318103, -1.9635100260214235, -3.110625123034165e-05, 0.7031566406452432,
         0.9223893239548869, 0.9231791921282297, 3.901989673427892, 23.025850929890456,
         0.03648997397857652, 5.189977214956288],
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(compiled, name, dtype):
    arguments, values = SPECIAL[name]
    if dtype == "float32":  # where rounding the argument does not matter
        chosen = [i for i, v in enumerate(arguments) if float(np.float32(v)) == v]
        arguments, values = [arguments[i] for i in chosen], [values[i] for i in chosen]
    got = compiled(lambda s, x: getattr(s, name)(x), (dtype,))(np.array(arguments, dtype))
    np.testing.assert_allclose(got, values, rtol=2 * np.finfo(dtype).eps, atol=1e-15)


def test_special_functions_at_their_edges(compiled):
    def at(name, *values):
        return compiled(lambda s, x: getattr(s, name)(x), ("float64",))(np.array(values)).tolist()

    inf, nan = math.inf, math.nan
    np.testing.assert_equal(at("erfinv", 0.0, 1.0, -1.0, 1.5, nan), [0, inf, -inf, nan, nan])
    np.testing.assert_equal(at("lgamma", 1, 2, 0.0, -2.0, inf, -inf, nan),
                            [0, 0, inf, inf, inf, inf, nan])  # fmt: skip
    np.testing.assert_equal(at("digamma", 0.0, -0.0, -1.0, inf, nan), [-inf, inf, nan, inf, nan])
