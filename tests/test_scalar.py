"""The scalar protocol read with NumPy: torch's semantics, dtype by dtype."""

import math

import numpy as np
import pytest
from wengert.ir import scalar as protocol
from wengert.ir.scalar_python import PythonReader

PARTS = ("UNARY_MATH", "ROUNDING", "CLASSIFY", "ARITHMETIC", "FLOAT_BINARY", "EXTREMA",
         "COMPARISONS", "LOGICAL", "BITWISE")  # fmt: skip
METHODS = {name for part in PARTS for name in getattr(protocol, part)}
METHODS |= {"const", "cast", "select", "neg", "abs", "sign", "logical_not", "bitwise_not"}


def of(reader, values, dtype):
    return reader.value(np.array(values), dtype)


def test_tables_name_every_method_of_the_protocol():
    declared = {n for n in vars(protocol.ScalarReader) if not n.startswith("_")}
    assert declared == METHODS
    assert all(hasattr(PythonReader, name) for name in METHODS)


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_division_rounds_as_torch_does(dtype):
    s = PythonReader(dtype)
    a, b = of(s, [7, -7, 7, -7], dtype), of(s, [2, 2, -2, -2], dtype)
    assert s.floor_divide(a, b).array.tolist() == [3, -4, -4, 3]
    assert s.remainder(a, b).array.tolist() == [1, 1, -1, -1]
    assert s.fmod(a, b).array.tolist() == [1, -1, 1, -1]


def test_integer_div_truncates_and_pow_wraps():
    s = PythonReader("int8")
    assert s.div(of(s, [-7], "int8"), of(s, [2], "int8")).array.tolist() == [-3]
    bases, powers = of(s, [3, -1, 2, 5], "int8"), of(s, [5, -3, -1, 0], "int8")
    assert s.pow(bases, powers).array.tolist() == [-13, -1, 0, 1]


def test_shifts_outside_the_width():
    s = PythonReader("int32")
    a, n = of(s, [5, -5, -5], "int32"), of(s, [40, 40, -1], "int32")
    assert s.shl(a, n).array.tolist() == [0, 0, 0]
    assert s.shr(a, n).array.tolist() == [0, -1, -1]


def test_nan_goes_through_maximum_but_not_fmax():
    s = PythonReader("float32")
    a, b = of(s, [np.nan, 1], "float32"), of(s, [1, np.nan], "float32")
    assert np.isnan(s.maximum(a, b).array).all()
    assert s.fmax(a, b).array.tolist() == [1, 1]


def test_cast_rounds_half_precision_to_even():
    s = PythonReader("float32")
    x = of(s, [1 + 2**-8, 1 + 3 * 2**-8, np.nan], "float32")
    assert s.cast(x, "bfloat16").array[:2].tolist() == [1.0, 1 + 2**-6]
    assert np.isnan(s.cast(x, "bfloat16").array[2])
    assert s.cast(of(s, [1 + 2**-11], "float32"), "float16").array.tolist() == [1.0]


def test_relu_as_a_catalogue_writes_it():
    relu = lambda s, x: s.select(s.gt(x, s.const(0)), x, s.const(0))  # noqa: E731
    s = PythonReader("float32")
    assert relu(s, of(s, [-1, 2], "float32")).array.tolist() == [0, 2]


def test_special_functions_of_the_oracle():
    s = PythonReader("float64")
    euler = 0.57721566490153286
    assert s.digamma(s.const(1.0)).array == pytest.approx(-euler, rel=1e-14)
    assert s.digamma(s.const(-0.5)).array == pytest.approx(0.03648997397857652, rel=1e-12)
    assert s.erfinv(s.const(math.erf(1.25))).array == pytest.approx(1.25, rel=1e-14)
    assert s.lgamma(s.const(-3.0)).array == math.inf


def test_mixed_dtypes_are_refused():
    s = PythonReader("float32")
    with pytest.raises(TypeError, match="cast first"):
        s.add(s.const(1), s.const(1, "int32"))
