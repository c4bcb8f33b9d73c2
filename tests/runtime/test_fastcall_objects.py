"""Callables with objects: arrays in holders, results in new ones, references kept and let go."""

import gc
import sys
import weakref

import numpy as np
import pytest
from native_cases import F4, F8, I8, arrays
from wengert.runtime import layout
from wengert.runtime.fastcall import Array, Float
from wengert.runtime.memory import Arena


class Holder:
    __slots__ = ("__weakref__", "_z", "array", "b")

    def __init__(self, array=None):
        if array is not None:
            self.array = array


class Heir(Holder):
    pass


@pytest.mark.parametrize("release_gil", [False, True])
def test_arrays_in_holders(build, release_gil):
    spec = Array(F4, (2, 3), holder=Holder, slot="array")
    out = Array(F4, (2, 3), writeable=True, holder=Holder, slot="array")
    add = build("add", [spec, spec, out], release_gil=release_gil)
    a, b, c = arrays()
    assert add(Holder(a), Holder(b), Holder(c)) is None
    assert c[0, 0] == 3
    for bad in (a, Heir(a), Holder(), Holder(3.0), Holder(np.zeros(2, F4)), Holder(Holder(a))):
        assert add(bad, Holder(b), Holder(c)) is NotImplemented
    counts = [sys.getrefcount(x) for x in (a, b, c)]
    for _ in range(100):
        add(Holder(a), Holder(b), Holder(c))
    assert [sys.getrefcount(x) for x in (a, b, c)] == counts


def test_facts_of_holders(build):
    kind = object()
    spec = Array(F4, (2, 3), holder=Holder, slot="array", facts=(("b", kind),))
    add = build("add", [spec, spec, spec])
    holders = [Holder(a) for a in arrays()]
    for holder in holders:
        holder.b = kind
    assert add(*holders) is None
    holders[1].b = object()
    assert add(*holders) is NotImplemented


def test_results_in_new_holders(build):
    kind = object()
    spec = Array(F8, ())
    held = Array(F8, (), holder=Holder, slot="array", facts=(("b", kind), ("_z", None)))
    scale = build("scale", [spec, Float()], [held, spec])
    made, bare = scale(np.array(3.0), 2.0)
    assert type(made) is Holder and made.b is kind and made._z is None
    assert (float(made.array), float(bare)) == (6.0, 5.0)
    count = sys.getrefcount(kind)
    kept = [scale(np.array(3.0), 2.0)[0] for _ in range(10)]
    assert sys.getrefcount(kind) == count + 10
    alive = weakref.ref(kept[0])
    del kept
    gc.collect()
    assert sys.getrefcount(kind) == count and alive() is None


def test_only_slots_can_hold():
    class Open:
        pass

    with pytest.raises(TypeError, match="__slots__"):
        layout.slot_offset(Open, "array")


@pytest.mark.parametrize("release_gil", [False, True])
def test_no_reference_is_lost_or_kept(build, release_gil):
    spec = Array(F8, ())
    scale = build("scale", [spec, Float()], [spec, spec], release_gil=release_gil)
    failing = build("status", [Array(I8, ())], [spec], status=True)
    x, number, one = np.array(2.0), 0.25, np.array(1)
    watched = [F8, None, NotImplemented, x, number, one, np.ndarray]

    def counts():
        return [sys.getrefcount(thing) for thing in watched]

    def exercise():
        for _ in range(500):
            scale(x, number)
            scale(x, x)
            failing(one)

    exercise()
    before = counts()
    exercise()
    assert np.abs(np.subtract(counts(), before)).max() < 50


def test_a_callable_goes_with_all_it_holds(build):
    def use():
        arena, cycle = Arena(), []
        cycle.append(
            build(
                "nothing", [Array(F4, (1,))], arena=arena, arena_size=64, slow=lambda *args: cycle
            )
        )
        assert cycle[0](np.zeros(1, F4)) is None
        assert cycle[0](None) is cycle
        return weakref.ref(arena)

    gone = use()
    gc.collect()
    assert gone() is None
