"""The native reader against the NumPy reader, method by method and dtype by dtype."""

import numpy as np
import pytest
from wengert.codegen.scalar import LLVMReader
from wengert.ir import scalar as protocol
from wengert.ir.scalar_python import PythonReader

FLOATS = ("float32", "float64")
INTEGERS = ("int8", "int32", "int64", "uint8")
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.5, -2.5, np.inf, -np.inf, np.nan, 7.0, -7.0, 1e-40]
# inside every function's domain or NaN in both; no subnormals of float32 here
N = 67


def draw(rng, dtype, n=N):
    if dtype in protocol.FLOATS:
        values = np.concatenate([SPECIAL, rng.normal(0, 3, n - len(SPECIAL))])
        return rng.permutation(values).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    info = np.iinfo(dtype)
    edge = [0, 1, 2, 3, info.min, info.max, info.max - 1]
    low = -9 if info.min < 0 else 0
    return np.concatenate([np.array(edge, dtype), rng.integers(low, 9, n - len(edge), dtype)])


def check(compiled, rng, method, dtypes, ulps=0.0, lanes=1, n=N):
    function = lambda s, *xs: getattr(s, method)(*xs)  # noqa: E731
    arrays = [rng.permutation(draw(rng, d, n)) for d in dtypes]
    native = compiled(function, dtypes, lanes=lanes)
    got = native(*arrays)
    s = PythonReader(dtypes[0])
    with np.errstate(all="ignore"):
        want = getattr(s, method)(*(s.value(a, d) for a, d in zip(arrays, dtypes)))
    assert native.dtype == want.dtype
    if want.dtype in FLOATS:
        tolerance = ulps * np.spacing(np.abs(want.array))
        close = np.abs(got - want.array) <= tolerance
        same = (got == want.array) | (np.isnan(got) & np.isnan(want.array)) | close
    else:
        same = got == want.array
    bad = np.flatnonzero(~same)[:5]
    assert not bad.size, [(*(a[i] for a in arrays), got[i], want.array[i]) for i in bad]


def exact_cases():
    for dtype in FLOATS:
        for method in (*protocol.ROUNDING, *protocol.CLASSIFY, "neg", "abs", "sign", "sqrt",
                       "reciprocal", "logical_not"):  # fmt: skip
            yield method, (dtype,)
        for method in (*protocol.EXTREMA, *protocol.COMPARISONS, *protocol.LOGICAL, "add", "sub",
                       "mul", "div", "fmod", "remainder", "floor_divide", "copysign",
                       "nextafter"):  # fmt: skip
            yield method, (dtype, dtype)
    for dtype in INTEGERS:
        for method in ("neg", "abs", "sign", "bitwise_not", "logical_not", "signbit"):
            yield method, (dtype,)
        for method in (*protocol.ARITHMETIC, *protocol.EXTREMA, *protocol.COMPARISONS,
                       *protocol.LOGICAL, *protocol.BITWISE):  # fmt: skip
            yield method, (dtype, dtype)
    for method in ("eq", "lt", "bitwise_and", "bitwise_xor", "logical_or", "maximum"):
        yield method, ("bool", "bool")


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("method,dtypes", list(exact_cases()), ids=lambda v: str(v))
def test_exact_methods(compiled, rng, method, dtypes):
    check(compiled, rng, method, dtypes)


@pytest.mark.parametrize("dtype", FLOATS)
def test_vector_form_equals_scalar_form(compiled, rng, dtype):
    gelu = lambda s, x: s.mul(x, s.add(s.erf(x), s.tanh(x)))  # noqa: E731
    x = draw(rng, dtype, 64)
    scalar, vector = compiled(gelu, (dtype,)), compiled(gelu, (dtype,), lanes=8)
    np.testing.assert_array_equal(scalar(x), vector(x))


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("source", ["bool", "uint8", "int8", "int32", "int64", *protocol.FLOATS])
def test_casts(compiled, rng, source, lanes):
    values = draw(rng, source if source not in ("float16", "bfloat16") else "float32", 64)
    if source == "float16":
        values = values.astype(np.float16)
    if source == "bfloat16":
        raw = (values.view(np.uint32) >> 16).astype(np.uint16)
        values = (raw.astype(np.uint32) << 16).view(np.float32)
    for goal in ("bool", "uint8", "int8", "int32", "int64", *protocol.FLOATS):
        native = compiled(lambda s, x, goal=goal: s.cast(x, goal), (source,), lanes=lanes)
        got = native(raw if source == "bfloat16" else values)
        if goal == "bfloat16":
            got = (got.astype(np.uint32) << 16).view(np.float32)
        s = PythonReader(source)
        want = s.cast(s.value(values, source), goal).array
        np.testing.assert_array_equal(got, want.astype(got.dtype), err_msg=goal)


def test_half_precision_computes_in_float32(compiled):
    x = np.array([1.0, 1 + 2**-10, 65504.0, 2e-8], np.float16)
    got = compiled(lambda s, a: s.mul(s.add(a, a), s.const(0.5)), ("float16",))(x)
    np.testing.assert_array_equal(got, x)  # 2 * 65504 would overflow a half


def test_lines_carry_their_op():
    s = LLVMReader("float32")
    x = s.argument("%x", "float32")
    with s.at(12):
        y = s.exp(x)
    s.store(y, "%p")
    assert [line.op for line in s.lines] == [12, None]
    assert s.calls == [("exp", "float", 1)]


def test_mixed_dtypes_are_refused_with_advice():
    s = LLVMReader("float32")
    with pytest.raises(TypeError, match="cast them to one first"):
        s.add(s.const(1), s.const(1, "int32"))
    with pytest.raises(TypeError, match="exp does not take int32"):
        s.exp(s.const(1, "int32"))
