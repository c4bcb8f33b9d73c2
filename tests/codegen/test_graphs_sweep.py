"""Calls of the catalogue's ops beside their samples: other dtypes, odd sizes, extreme values.

Samples are changed by one mechanism each, forward and backward; calls that eager refuses are left
out. A part of the catalogue is in every run, the rest in `-m slow`.
"""

import zlib

import numpy as np
import pytest
from graphs import assert_same, check, reference
from table_graphs import (
    REFUSED,
    Case,
    cases_of,
    eager_takes,
    evaluated,
    gradient_of,
    graph_of,
    is_number,
    native_ops,
)
from wengert.backend import compile_graph
from wengert.ir import passes
from wengert.ir.op import TABLE, Decompose

TORCH_REFUSES = ("not implemented", "groups to divide channels in must be positive")
HALVES = ("float16", "bfloat16")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32")
SIZES = (0, 1, 2, 3, 5, 7, 13, 17, 31, 37, 67, 127, 131)  # around those of vectors and tiles
SIZE_ATTRIBUTES = ("size", "shape", "input_size", "input_sizes", "output_size", "normalized_shape")
CALLS = 16  # in one graph: LLVM's time grows faster than a graph
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -1e-45, 1.1754942e-38, 1.1754944e-38]
HUGE = [3.4028235e38, -3.4028235e38, 1e20, -1e-20]
ORDINARY = [1.0, -1.0, 0.5, -2.5, 7.0]
# Compiled, the gradient of a convolution's input is a convolution of a frame of zeros, and zero
# times an infinite weight is NaN. See docs/numerics.md.
ZERO_FRAMES = {"conv_input", "conv_tbc", "convolution"}
SORTED = {"searchsorted"}  # of a sequence that is not in order anything may come
# Operands that say where something is in others, which must not become smaller then.
PLACES = {"max_pool", "nll_loss", "nll_loss2d", "plane_gather"}
# Operands with sizes that are products or sums of others': layers and pools vary these
# (tests/nn, tests/ops/test_nn_functional.py).
TIED = {"gru_grad", "gru_loop", "lstm_grad", "lstm_loop", "rnn_grad", "rnn_loop",
        "resample_adjoint"}  # fmt: skip


# Sizes below which values count as of this size: gradients that are differences of larger sums.
# Of attention over rows of 133 NumPy's are 5e-6 from those in float64, compiled ones 2e-6.
CANCELLING = {"scaled_dot_product_attention": 0.5}


def shared(names, part):
    """One op in `part` for every run, the others for `-m slow`."""
    rare = [zlib.crc32(name.encode()) % part for name in names]
    return [pytest.param(n, marks=pytest.mark.slow) if k else n for n, k in zip(names, rare)]


# --- which calls -----------------------------------------------------------------------------


def changed(case, change, attrs=None):
    """The call with `change` made to its arrays of floats, or to all if there are `attrs`."""
    inputs = [x if x is None or is_number(x) or (attrs is None and np.asarray(x).dtype.kind != "f")
              else change(np.asarray(x)) for x in case.inputs]  # fmt: skip
    return Case(case.op, inputs, case.attrs if attrs is None else attrs)


def takes(op, dtype, case):
    """Does eager take the call, and can a composite be written in other ops?

    Public functions refuse what does not fit; an op itself may look at a part of what it is given.
    """
    if not eager_takes(op, dtype, case):
        return False
    try:
        if isinstance(op.lower, Decompose):
            full = Case(op, case.inputs, {**op.defaults, **case.attrs})
            # of nothing kernels make what NumPy refuses to look for: softmax's maximum
            some = all(x is None or np.size(x) for x in case.inputs)
            make = (
                evaluated
                if some
                else lambda op, dtype, case, call: graph_of(op, dtype, [case], call=call)
            )
            make(op, dtype, full, op.lower.expand)
        return True
    except REFUSED:
        return False


def check_calls(op, dtype, cases, compare=check):
    """Compiled is interpreted, for results and, where there are rules, for gradients."""
    for k in range(0, len(cases), CALLS):
        graph, arrays = graph_of(op, dtype, cases[k : k + CALLS])
        if not arrays:
            continue
        with np.errstate(all="ignore"):
            compare(graph, arrays)
            if not op.rules:
                continue
            try:
                graph, arrays = gradient_of(graph, arrays)
            except (RuntimeError, NotImplementedError) as error:
                assert any(words in str(error) for words in TORCH_REFUSES)
                continue
            compare(graph, arrays)


def once(graph, arrays):
    check(graph, arrays, runs=1, least=0.1)


def test_samples_are_taken():
    """Or else what is below would leave out whole ops."""
    for name in native_ops():
        assert all(takes(TABLE[name], "float32", case) for case in cases_of(TABLE[name])), name


# --- dtypes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", shared(native_ops(), 16))
def test_halves(name):
    op = TABLE[name]
    for dtype in HALVES:
        check_calls(op, dtype, [c for c in cases_of(op) if takes(op, dtype, c)], once)


def as_integers(x, dtype):
    if dtype == "bool":
        return x > 0
    x = np.rint(x * 3)
    return (np.abs(x) if dtype == "uint8" else x).astype(dtype)


def as_doubles(x):
    return x.astype(np.float64) if x.dtype.kind in "biu" else x


def takes_integers(op, case):
    """And not as floats that are cut off: public functions refuse those."""
    if not takes(op, "float32", case):
        return False
    try:
        exact = evaluated(op, "float64", changed(case, as_doubles, case.attrs))
    except REFUSED:
        return True  # bits
    found = evaluated(op, "float32", case)
    return all(f.dtype.kind not in "iu" or np.array_equal(f, e) for f, e in zip(found, exact))


@pytest.mark.parametrize("name", shared(native_ops(), 16))
def test_integers(name):
    op, cases = TABLE[name], []
    for dtype in INTEGERS:
        cases += [changed(c, lambda x, dtype=dtype: as_integers(x, dtype)) for c in cases_of(op)]
    check_calls(op, "float32", [c for c in cases if takes_integers(op, c)], once)


# --- sizes -----------------------------------------------------------------------------------


def resized_attribute(value, old, new):
    if isinstance(value, tuple):
        return tuple(resized_attribute(v, old, new) for v in value)
    return new if type(value) is int and value == old else value


def with_size(case, old, new):
    """The call with `new` wherever a size was `old`, and in the attributes too if that is taken."""

    def resize(x):
        for axis in range(x.ndim):
            if x.shape[axis] == old:
                x = np.take(x, np.arange(new) % old, axis)
                if x.dtype.kind == "f":  # no two alike: variances of equals are rounding errors
                    turns = (np.arange(new) // old).reshape(-1, *(1,) * (x.ndim - axis - 1))
                    x = x * (1 - turns / 1024)
        return x

    yield changed(case, resize, case.attrs)
    yield changed(case, resize, {k: resized_attribute(v, old, new) if k in SIZE_ATTRIBUTES else v
                                 for k, v in case.attrs.items()})  # fmt: skip


def is_small(case):
    """Is it no cube or more of a large size, which would take NumPy minutes?"""
    return sum(np.size(x) for x in case.inputs if x is not None) <= 2**20


def resized(op):
    """Every sample call with each of its sizes replaced by each odd one."""
    for case in cases_of(op):
        arrays = [np.asarray(x) for x in case.inputs if x is not None and not is_number(x)]
        for old in sorted({n for x in arrays for n in x.shape if n > 1}):
            for new in SIZES:
                if new == old or (new < old and op.name in PLACES):
                    continue
                calls = [in_order(c) for c in with_size(case, old, new) if is_small(c)]
                yield from [call for call in calls if takes(op, "float32", call)][:1]


def in_order(case):
    """The call with the sequence that is searched in order again."""
    if case.op.name not in SORTED:
        return case
    return Case(case.op, [np.sort(case.inputs[0]), *case.inputs[1:]], case.attrs)


@pytest.mark.parametrize("name", shared([n for n in native_ops() if n not in TIED], 96))
def test_odd_sizes(name):
    least = CANCELLING.get(name, 0.1)
    check_calls(TABLE[name], "float32", list(resized(TABLE[name])),
                lambda graph, arrays: check(graph, arrays, runs=1, least=least))  # fmt: skip


# --- extreme values --------------------------------------------------------------------------


def extreme_cases(op):
    """Pointwise ops see all values beside each other; others one in an array: sums of several
    depend on the order."""
    rng = np.random.default_rng(3)

    def many(x):
        return np.where(rng.random(x.shape) < 0.7, rng.choice(SPECIAL + HUGE + ORDINARY, x.shape),
                        x).astype(np.float32)  # fmt: skip

    def one(x):
        x = np.array(x, np.float32)
        if x.size:
            x.flat[rng.integers(x.size)] = rng.choice(SPECIAL)
        return x

    cases = [changed(case, many if op.kind == "pointwise" else one)
             for case in cases_of(op) for _ in range(4)]  # fmt: skip
    return [case for case in cases if takes(op, "float32", case)]


def assert_extremes(graph, arrays):
    """NaN, infinities and signs of zeros are where the interpreter has them."""
    optimised = passes.optimise(graph)
    found = compile_graph(optimised)(*[a.copy() for a in arrays])
    for got, want, output in zip(found, reference(graph, optimised, arrays), graph.outputs):
        dtype, what = output.var.dtype, str(optimised)
        if dtype.is_complex:  # a NaN in one part may be in both
            lost = np.isnan(got) & np.isnan(want)
            got, want = np.where(lost, 0, got), np.where(lost, 0, want)
        huge = np.abs(want) > 1e19
        np.testing.assert_allclose(got[huge], want[huge], rtol=2e-5, err_msg=what)
        assert_same(np.where(huge, 0, got).astype(got.dtype),
                    np.where(huge, 0, want).astype(want.dtype), dtype, what, least=0.1)  # fmt: skip
        if dtype.is_floating_point:
            zero = (got == 0) & (want == 0)
            np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), what)


@pytest.mark.parametrize(
    "name", shared([n for n in native_ops() if n not in ZERO_FRAMES | SORTED], 16)
)
def test_extreme_values(name):
    check_calls(TABLE[name], "float32", extreme_cases(TABLE[name]), assert_extremes)
