"""Compiled methods: of objects, classes, slots, subclasses; copies of them and of their objects."""

import copy
import dataclasses
import functools
import gc
import pickle
import weakref

import pytest
import wengert as torch
from scenarios import Scenarios, check, data
from wengert import nn

scenario = Scenarios()


@scenario
def methods_that_call_those_they_override(wrap):
    class Base:
        @wrap
        def step(self, x):
            return x * 2

    class Derived(Base):
        @wrap
        def step(self, x):
            return super().step(x) + 1

    one = Derived()
    return [one.step(data(3, k=k)) for k in range(5)]


@scenario
def objects_with_slots(wrap):
    class Slotted:
        __slots__ = ("scale",)

        @wrap
        def step(self, x):
            return x * self.scale

    one, two, seen = Slotted(), Slotted(), []
    for k in range(5):
        one.scale, two.scale = k + 1.0, k // 2
        seen += [one.step(data(3, k=k)), two.step(data(3, k=k))]
    return seen


@scenario
def methods_of_classes_and_properties(wrap):
    class Base:
        scale = 2.0

        @classmethod
        @wrap
        def of_class(cls, x):
            return x * cls.scale

        @staticmethod
        @wrap
        def of_none(x, y=3):
            return x * y

        @property
        @wrap
        def ones(self):
            return torch.ones(2) * self.scale

    class Derived(Base):
        scale = 5.0

    seen, one = [], Base()
    for k in range(5):
        Base.scale, x = float(k), data(2, k=k)
        seen += [Base.of_class(x), Derived.of_class(x), one.of_class(x)]
        seen += [one.of_none(x, k), one.ones]
    return seen


@scenario
def copies_of_objects(wrap):
    class Scaler:
        scale = 2.0

        @wrap
        def step(self, x):
            return x * self.scale

    one = Scaler()
    seen = [one.step(data(2))]
    shallow, deep = copy.copy(one), copy.deepcopy(one)
    shallow.scale, deep.scale = 7.0, 9.0
    return seen + [each.step(data(2, k=k)) for k in range(5) for each in (one, shallow, deep)]


@scenario
def copies_of_modules(wrap):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.scale = nn.Parameter(data(3)), 1.0

        @wrap
        def forward(self, x):
            return x * self.weight * self.scale

    one = Net()
    seen = [one(data(3))]
    shallow, deep = copy.copy(one), copy.deepcopy(one)
    shallow.scale, deep.scale = 7.0, 9.0
    with torch.no_grad():
        one.weight.mul_(2)
    return seen + [each(data(3, k=k)) for k in range(5) for each in (one, shallow, deep)]


@scenario
def frozen_objects(wrap):
    @dataclasses.dataclass(frozen=True)
    class Scaler:
        scale: float

        @wrap
        def step(self, x):
            return x * self.scale

    one = Scaler(3.0)
    seen = [one.step(data(2, k=k)) for k in range(5)]
    return seen, one == Scaler(3.0), dataclasses.asdict(one)


@scenario
def callables_that_python_does_not_bind(wrap):
    class Plus:
        def __call__(self, x):
            return x + 1

        def twice(self, x):
            return x + 2

    class Holder:
        called, partial = wrap(Plus()), wrap(functools.partial(torch.add, other=2.0))
        bound, plain = wrap(Plus().twice), wrap(lambda self, x: x * 3)

    one = Holder()
    return [f(data(2, k=k)) for k in range(5)
            for f in (one.called, one.partial, one.bound, one.plain)]  # fmt: skip


@scenario
def copies_of_compiled_functions(wrap):
    class Scaler:
        scale = 1.0

        def step(self, x):
            return x * self.scale

    def double(x):
        return x * 2

    one, f = Scaler(), wrap(double)
    method = wrap(one.step)
    other = copy.deepcopy(method)
    one.scale = 5.0
    same = copy.deepcopy({"f": f})["f"] is f and copy.copy(f) is f
    return same, [g(data(2, k=k)) for k in range(5) for g in (f, method, other)]


@scenario
def attributes_of_functions(wrap):
    @wrap
    def counted(x):
        counted.calls = getattr(counted, "calls", 0) + 1
        return x * counted.calls

    def scaled(x):
        return x * scaled.scale

    scaled.scale = 2.0
    other, seen = wrap(scaled), []
    for k in range(5):
        seen += [counted(data(2, k=k)), counted.calls, other(data(2, k=k)), other.scale]
        other.scale = 3.0 + k
    del counted.calls
    return seen, counted(data(2)), hasattr(other, "calls"), scaled.scale


@pytest.mark.parametrize("run", scenario, ids=lambda run: run.__name__)
def test_scenario(run):
    check(run)


@torch.compile
def at_its_name(x):
    return x * 2


def plain(x):
    return x * 3


class Pickled:
    scale = 2.0

    @torch.compile
    def step(self, x):
        return x * self.scale


def test_functions_are_pickled_by_name_or_compiled_anew():
    assert pickle.loads(pickle.dumps(at_its_name)) is at_its_name
    other = pickle.loads(pickle.dumps(torch.compile(plain, dynamic=True)))
    assert other.options["dynamic"] is True
    for k in range(4):
        assert other(data(2, k=k)).tolist() == plain(data(2, k=k)).tolist()


def test_objects_are_pickled_without_what_was_compiled_for_them():
    one = Pickled()
    one.step(data(2))
    other = pickle.loads(pickle.dumps(one))
    other.scale = 4.0
    for k in range(4):
        assert other.step(data(2, k=k)).tolist() == (data(2, k=k) * 4.0).tolist()
        assert one.step(data(2, k=k)).tolist() == (data(2, k=k) * 2.0).tolist()


def test_objects_go_with_their_compiled_methods():
    known = []
    for k in range(3):
        one = Pickled()
        for _ in range(3):
            one.step(data(2, k=k))
        known.append(weakref.ref(one))
        del one
    gc.collect()
    assert [ref() for ref in known] == [None] * 3
