"""Callables check every argument, and the native ones answer exactly as the stand-ins do."""

import copy
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from native_cases import F4, F8, I8, adder, arrays
from wengert.runtime import fastcall, layout
from wengert.runtime.fastcall import Array, Float, make
from wengert.runtime.memory import Arena


def test_this_interpreter_is_read_natively(monkeypatch):
    monkeypatch.setenv("WENGERT_FASTCALL", "1")
    supported = sys.implementation.name == "cpython" and layout.HEAD == 16
    assert (fastcall.reason_for_fallback() == "") == supported


@pytest.mark.parametrize("release_gil", [False, True])
def test_arguments_that_fit(build, release_gil):
    add = adder(build, release_gil=release_gil)
    a, b, c = arrays()
    assert add(a, b, c) is None
    assert c[0, 0] == 3
    assert add(a, a, c) is None
    assert c[0, 0] == 2


class Sub(np.ndarray):
    pass


def read_only(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "place, bad",
    [
        (0, 1.0),
        (0, None),
        (0, [[1.0] * 3] * 2),
        (0, np.float32(1)),
        (0, np.zeros((2, 3), F8)),
        (0, np.zeros((2, 3), ">f4")),
        (0, np.zeros((2, 3), np.int32)),
        (0, np.zeros((3, 2), F4)),
        (0, np.zeros(6, F4)),
        (0, np.zeros((2, 3, 1), F4)),
        (0, np.zeros((), F4)),
        (1, np.zeros((3, 2), F4).T),
        (1, np.zeros((2, 6), F4)[:, ::2]),
        (1, np.zeros((2, 3), F4).view(Sub)),
        (2, read_only(np.zeros((2, 3), F4))),
        (1, np.zeros(25, np.uint8)[1:].view(F4).reshape(2, 3)),
    ],
)
def test_arguments_that_do_not_fit(build, place, bad):
    args = arrays()
    args[place] = bad
    assert adder(build)(*args) is NotImplemented
    seen = []

    def slow(*args):
        seen.append(args)
        return "slow"

    assert adder(build, slow=slow)(*args) == "slow"
    assert all(x is y for x, y in zip(seen[0], args))


def test_the_number_of_arguments(build):
    add = adder(build)
    a, b, c = arrays()
    assert add() is NotImplemented
    assert add(a, b) is NotImplemented
    assert add(a, b, c, c) is NotImplemented
    assert adder(build, slow=lambda *args: len(args))(a, b, c, c) == 4


def test_read_only_inputs_are_fine(build):
    a, b, c = arrays()
    assert adder(build)(read_only(a), b, c) is None


def test_a_slow_path_that_raises(build):
    def slow(*args):
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        adder(build, slow=slow)(1, 2, 3)


def test_an_unpickled_dtype_is_declined(build):
    a, b, c = arrays()
    again = pickle.loads(pickle.dumps(a))
    assert adder(build)(again, b, c) in (None, NotImplemented)
    if again.dtype is not F4:
        assert adder(build)(again, b, c) is NotImplemented
    assert adder(build)(copy.deepcopy(a), b, c) is None


def test_outputs_do_not_overlap_inputs(build):
    whole = np.zeros(13, F4)
    low, high, touching = (whole[i : i + 6].reshape(2, 3) for i in (0, 3, 6))
    other = np.zeros((2, 3), F4)
    assert adder(build)(low, other, high) is NotImplemented
    assert adder(build)(low, other, low) is NotImplemented
    assert adder(build)(low, other, touching) is None
    assert adder(build)(touching, other, low) is None
    assert adder(build, disjoint=False)(low, other, low) is None


def test_strides_when_they_are_given(build):
    base = np.arange(12, dtype=F4).reshape(3, 4)
    spec = Array(F4, (4, 3), strides=(4, 16))
    out = Array(F4, (1,), writeable=True)
    add = build("add", [spec, spec, out])
    result = np.zeros(1, F4)
    assert add(base.T, base.T, result) is None
    assert add(base.T.copy(), base.T, result) is NotImplemented
    backwards = Array(F4, (12,), strides=(-4,))
    assert backwards.extent == (-44, 4)
    add = build("add", [backwards, backwards, out])
    flat = base.reshape(-1)
    assert add(flat[::-1], flat[::-1], result) is None
    assert result[0] == 22
    assert add(flat[::-1], flat[::-1], flat[:1]) is NotImplemented


def test_copies_when_they_are_asked_for(build):
    base = np.arange(12, dtype=F4).reshape(3, 4)
    across = Array(F4, (4, 3), strides=(4, 16), copied=True)
    add = build("add_second", [across, Array(F4, (1,))], [Array(F4, (1,))])
    one = np.ones(1, F4)
    assert add(base.T, one)[0] == base.T[0, 1] + 1  # in memory, base[0, 1] is the second
    assert add(base.T.copy(), one) is NotImplemented
    counts = sys.getrefcount(base), sys.getrefcount(one)
    for _ in range(100):
        add(base.T, one)
        add(base.T, base)  # declined
    assert (sys.getrefcount(base), sys.getrefcount(one)) == counts
    with pytest.raises(ValueError, match="copy"):
        build("add", [Array(F4, (4,), strides=(8,), writeable=True, copied=True)])


def test_alignment(build):
    buffer = np.zeros(64, F4)
    start = -buffer.ctypes.data % 64 // 4
    spec = Array(F4, (4,), alignment=64)
    nothing = build("nothing", [spec])
    assert nothing(buffer[start : start + 4]) is None
    assert nothing(buffer[start + 1 : start + 5]) is NotImplemented


@pytest.mark.parametrize("release_gil", [False, True])
def test_new_arrays_and_floats(build, release_gil):
    one = Array(F8, ())
    scale = build(
        "scale", [one, Float()], [Array(F8, ()), Array(F8, (1, 1))], release_gil=release_gil
    )
    first, second = scale(np.array(3.0), 0.5)
    assert (first, second) == (1.5, 3.5)
    assert (first.shape, second.shape) == ((), (1, 1))
    assert first.flags.owndata and second.flags.writeable
    for bad in (1, np.float64(0.5), "x", np.array(0.5), True):
        assert scale(np.array(3.0), bad) is NotImplemented


def test_one_result_is_itself_unless_asked(build):
    spec = Array(F4, (1,))
    x = np.ones(1, F4)
    assert build("add", [spec, spec], [spec])(x, x)[0] == 2
    (only,) = build("add", [spec, spec], [spec], tuple_result=True)(x, x)
    assert only[0] == 2
    assert build("nothing", [], tuple_result=True)() == ()
    assert build("nothing", [])() is None


def test_results_must_be_plain(build):
    with pytest.raises(ValueError, match="C-contiguous"):
        build("nothing", [], [Array(F4, (2, 2), strides=(4, 8))])


def test_empty_arrays(build):
    spec = Array(F4, (0, 3))
    nothing = build("nothing", [spec, Array(F4, (0, 3), writeable=True)], [spec])
    x = np.zeros((0, 3), F4)
    assert nothing(x, x).shape == (0, 3)


def test_a_status_replaces_the_results(build):
    status = build("status", [Array(I8, ())], [Array(F4, (3,))], status=True)
    assert status(np.array(0)).shape == (3,)
    assert status(np.array(5)) == 5
    assert status(np.array(-(1 << 40))) == -(1 << 40)
    quiet = build("status", [Array(I8, ())])
    assert quiet(np.array(5)) is None


def test_an_arena_is_the_calls_own(build):
    mark = Array(np.dtype(np.uint8), ())
    scratch = build(
        "scratch",
        [mark, Array(I8, (1,), writeable=True)],
        status=True,
        release_gil=True,
        arena=Arena(),
        arena_size=4096,
    )
    codes = []

    def work(number):
        mine, where = np.array(number, np.uint8), np.zeros(1, np.int64)
        for _ in range(50):
            codes.append(scratch(mine, where))
            assert where[0] % 64 == 0

    running = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert codes == [None] * 200


def test_no_memory_is_an_exception(build):
    with pytest.raises(MemoryError):
        build("nothing", [], arena_size=1 << 60)()
    with pytest.raises((MemoryError, ValueError)):
        build("nothing", [], [Array(F4, (1 << 60,))])()


def test_a_strange_interpreter_gets_the_stand_in(monkeypatch):
    monkeypatch.setenv("WENGERT_FASTCALL", "1")
    code = """if True:
        from wengert.runtime import layout
        layout.DIMS += 8
        import numpy as np
        from wengert.runtime import cache, fastcall
        library = cache.build("define void @nothing(ptr %p, ptr %a) { ret void }", ["nothing"])
        nothing = fastcall.make(library.address("nothing"),
                                [fastcall.Array(np.dtype("f4"), (2,))], keep=[library])
        assert "ndarray.dims" in fastcall.reason_for_fallback(), fastcall.reason_for_fallback()
        assert nothing(np.zeros(2, "f4")) is None
        assert nothing(np.zeros(3, "f4")) is NotImplemented
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bound_pointers_places_and_watched_words(library, monkeypatch):
    monkeypatch.setenv("WENGERT_FASTCALL", "1")
    if fastcall.reason_for_fallback():
        pytest.skip(fastcall.reason_for_fallback())
    fixed, level = np.full((2, 3), 5, F4), np.array([7])
    word = (level.ctypes.data, 7)
    add = make(library.address("add"), [Array(F4, (2, 3)), Array(F8, ())], [Array(F4, (2, 3))],
               keep=[library], places=[1, -1, 2], bound=[(0, fixed.ctypes.data)],
               watched=[word], held=[id(fixed)])  # fmt: skip
    one = np.ones((2, 3), F4)
    assert add(one, np.array(0.0))[0, 0] == 6
    assert add(one, one) is NotImplemented  # passed on or not, it is checked
    level[0] = 8
    assert add(one, np.array(0.0)) is NotImplemented
    level[0] = 7
    count = sys.getrefcount(fixed)
    assert add(one, np.array(0.0))[0, 0] == 6 and sys.getrefcount(fixed) == count


def test_arguments_that_must_lie_apart(build):
    spec = Array(F4, (3,))
    add = build("add", [spec, spec], [spec], apart=True)
    base = np.arange(4, dtype=F4)
    assert add(base[:3], base[:3].copy())[0] == 0
    assert add(base[:3], base[1:]) is NotImplemented
    assert add(base[:3], base[:3]) is NotImplemented
