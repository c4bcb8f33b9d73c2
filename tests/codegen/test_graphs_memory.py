"""Inputs and outputs in memory: write-backs, aliases, strides, empty arrays, wrong arguments."""

import numpy as np
import pytest
from graphs import build, check, of, sample
from wengert.backend import compile_graph
from wengert.ir import passes

F = "float32"


def compiled(function, *types, writes=()):
    return compile_graph(passes.optimise(build(function, *types, writes=writes)))


def test_write_back_is_in_place_and_returned():
    run = compiled(lambda p, g: p - g * 0.5, (F, 7), (F, 7), writes={0: 0}.items())
    p, g = np.arange(7, dtype="f"), np.ones(7, "f")
    (got,) = run(p, g)
    assert got is p
    np.testing.assert_array_equal(p, np.arange(7) - 0.5)


def test_old_value_is_read_after_the_write():
    """`a` is written, and its old value is reduced, transposed and returned."""

    def swap(a, b):
        return b + 1, a * 2, a.t().clone(), (a.t() + b).sum()

    check(build(swap, (F, 5, 5), (F, 5, 5), writes={0: 0, 1: 1}.items()))


def test_swap_of_two_inputs():
    run = compiled(lambda a, b: (b, a), (F, 6), (F, 6), writes={0: 0, 1: 1}.items())
    a, b = np.arange(6, dtype="f"), -np.arange(6, dtype="f")
    run(a, b)
    np.testing.assert_array_equal(a, -np.arange(6))
    np.testing.assert_array_equal(b, np.arange(6))


def test_transposed_update_reads_old_elements():
    check(build(lambda a: a + a.t() * 2, (F, 9, 9), writes={0: 0}.items()))


def test_arguments_that_share_memory():
    run = compiled(lambda a, b: a + b, (F, 4), (F, 4), writes={0: 0}.items())
    a = np.arange(4, dtype="f")
    (got,) = run(a, a)
    assert got is a
    np.testing.assert_array_equal(a, 2 * np.arange(4))
    base = np.arange(5, dtype="f")
    run(base[:4], base[1:])  # overlaps, shifted by one
    np.testing.assert_array_equal(base[:4], [1, 3, 5, 7])


def test_strided_arguments():
    run = compiled(lambda a, b: (a * 2 + b).sum(0), (F, 4, 3), (F, 4, 3))
    a = np.arange(12, dtype="f").reshape(3, 4).T
    b = np.arange(24, dtype="f").reshape(4, 6)[:, ::2]
    np.testing.assert_allclose(run(a, b)[0], (a * 2 + b).sum(0))
    write = compiled(lambda a: a + 1, (F, 4, 3), writes={0: 0}.items())
    write(a)
    np.testing.assert_array_equal(a, np.arange(12).reshape(3, 4).T + 1)


def test_outputs_are_fresh():
    run = compiled(lambda a: (a, a, a.view((6,)), a * 2), (F, 2, 3))
    a = np.ones((2, 3), "f")
    first, second = run(a), run(a)
    arrays = [a, *first, *second]
    for i, x in enumerate(arrays):
        for y in arrays[i + 1 :]:
            assert not np.may_share_memory(x, y)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3)])
def test_empty(shape):
    check(build(lambda a: (a * 2, a.sum(0), a.sum(), a.prod(-1)), (F, *shape)))


def test_no_inputs_and_constants():
    from wengert.ir.op import TABLE
    from wengert.ir.types import float32, int64

    def constants():
        full = TABLE["full"](size=(2, 3), fill_value=1.5, dtype=float32)
        iota = TABLE["iota"](size=5, start=3, step=2, dtype=int64)
        return full, iota, full + 1, iota.to("float32") / 2

    check(build(constants))


def test_nan_and_infinities():
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38, -1], "f")

    def f(x):
        return (x.exp(), x.tanh(), x.amax(0), x[1:].amax(0), x.relu(), x.sum(), x.maximum(-x),
                x.isnan(), x * 0, x[3:5].amin(0))  # fmt: skip

    check(build(f, (F, 8)), [special])


def test_wrong_arguments():
    run = compiled(lambda a: a + 1, (F, 4), writes={0: 0}.items())
    with pytest.raises(TypeError, match="takes 1 array"):
        run()
    with pytest.raises(TypeError, match=r"must be f32\[4\]"):
        run(np.zeros(5, "f"))
    with pytest.raises(TypeError, match=r"must be f32\[4\]"):
        run(np.zeros(4))
    frozen = np.zeros(4, "f")
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(frozen)


@pytest.mark.parametrize("n", [1, 7, 1000, 5000, 70001])
def test_sums_are_accurate(n):
    run = compiled(lambda a: (a.sum(), a.mean()), (F, n))
    x = sample(of(F, n), np.random.default_rng(1))
    exact = x.astype("d").sum()
    assert (
        abs(float(run(x)[0]) - exact) <= 2e-7 * np.abs(x.astype("d")).sum() ** 0.5 * n**0.5 + 1e-6
    )


def test_same_bits_for_any_number_of_threads():
    from wengert.runtime import threads

    def f(a, b):
        y = (a * b).softmax(1)
        return y.sum(0), y.sum(1), y.sum(), (a @ b.t()).sum(0), a.exp() + b

    run = compiled(f, (F, 300, 700), (F, 300, 700))
    a, b = (sample(of(F, 300, 700), np.random.default_rng(k)) for k in range(2))
    before, seen = threads.get_num_threads(), []
    try:
        for count in (1, 2, 3, 2):
            threads.set_num_threads(count)
            seen.append([x.tobytes() for x in run(a, b)])
    finally:
        threads.set_num_threads(before)
    assert all(s == seen[0] for s in seen)


@pytest.mark.parametrize("shape", [(300007,), (3, 70001), (70001, 3), (5, 2, 40009), (20000, 2, 3)])
def test_long_reductions_are_done_in_pieces(shape):
    def f(x, y):
        z = x * y
        return z, z.sum(), x.amax(-1), x.sum(0), (x.sum() * 2).exp().clamp(0, 1), (x > 0).all()

    compiled = check(build(f, (F, *shape), (F, *shape)), runs=1)
    assert "pieces" in compiled.texts()["kernels"]


def test_integer_division_by_zero_raises():
    run = compiled(lambda a, b: (a // b, a % b, a // 3), ("int64", 4), ("int64", 4))
    a, b = np.array([7, -7, 5, 0]), np.array([2, 2, -3, 4])
    assert [x.tolist() for x in run(a, b)] == [
        (a // b).tolist(),
        (a % b).tolist(),
        (a // 3).tolist(),
    ]
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(a, np.array([1, 0, 1, 1]))
    assert not compiled(lambda a: a // 3 + a % 5, ("int64", 4)).host_calls


def test_many_arguments_are_checked_for_shared_memory():
    """Whatever their order in memory, and again when it changes."""

    def f(*values):
        return [a + b for a, b in zip(values[::2], values[1::2])]

    run = compiled(f, *[(F, 3)] * 40, writes={k: 2 * k for k in range(20)}.items())
    memory = np.arange(120, dtype="f").reshape(40, 3)
    for order in (np.arange(40), np.arange(40)[::-1], np.random.default_rng(0).permutation(40)):
        arrays = [memory.copy()[k] for k in order]
        expected = [a + b for a, b in zip(arrays[::2], arrays[1::2])]
        got = run(*arrays)
        for g, e, a in zip(got, expected, arrays[::2]):
            assert g is a
            np.testing.assert_array_equal(g, e)
    shared = memory.copy()
    arrays = [shared[k] for k in range(40)]
    arrays[7] = arrays[0]  # read after it was written, were it not copied first
    expected = [a + b for a, b in zip(arrays[::2], arrays[1::2])]
    for g, e in zip(run(*arrays), expected):
        np.testing.assert_array_equal(g, e)
