"""Compiling never changes meaning: what a body reads is seen anew, wherever it lies."""

import collections
import dataclasses
import functools
import math
import random
import types

import numpy as np
import pytest
import wengert as torch
from scenarios import Scenarios, check, data
from wengert import nn

scenario = Scenarios()


class Config:
    scale = 2.0
    flag = True


@scenario
def class_attributes(wrap):
    f = wrap(lambda x: x * Config.scale if Config.flag else x)
    out = []
    for s in (2.0, 3.0, 3.0, 4.0):
        Config.scale = s
        out.append(f(data(3)))
    Config.flag = False
    out.append(f(data(3)))
    Config.flag = True
    Config.scale = 2.0
    return out


def with_each(owner, name, f):
    """Results while an attribute has these values; it gets its first one back."""
    out = []
    for value in (2.0, 3.0, 3.0, 4.0):
        setattr(owner, name, value)
        out.append(f(data(3)))
    setattr(owner, name, 2.0)
    return out


config = types.ModuleType("config")
config.scale = 2.0


@scenario
def python_module_attributes(wrap):
    return with_each(config, "scale", wrap(lambda x: x * config.scale))


class Scaled(nn.Module):
    factor = 2.0

    def forward(self, x):
        return x * self.factor * type(self).factor


@scenario
def class_attributes_of_modules(wrap):
    return with_each(Scaled, "factor", wrap(Scaled()))


class Obj:
    limit = 5
    __slots__ = ("a",)

    def __init__(self):
        self.a = 1.5


@scenario
def slots_of_objects(wrap):
    o = Obj()
    f = wrap(lambda x: x * o.a + Obj.limit)
    out = []
    for s in (2.0, 3.0, 3.0, 4.0):
        o.a = s
        out.append(f(data(3)))
    return out


@scenario
def objects_as_arguments_with_slots(wrap):
    f = wrap(lambda x, o: x * o.a)
    o = Obj()
    out = []
    for s in (2.0, 3.0, 3.0, 4.0):
        o.a = s
        out.append(f(data(3), o))
    return out


table = {}


@scenario
def properties_reading_globals(wrap):
    class P:
        @property
        def v(self):
            return table["k"]

        def m(self, x):
            return x * table["k"]

    o = P()
    f = wrap(lambda x: x * o.v)
    g = wrap(lambda x: o.m(x))
    out = []
    for s in (2.0, 3.0, 3.0, 4.0):
        table["k"] = s
        out += [f(data(3)), g(data(3))]
    return out


@scenario
def deep_attributes(wrap):
    o = types.SimpleNamespace(
        a=types.SimpleNamespace(b=types.SimpleNamespace(c=1.0, t=torch.ones(3)))
    )
    f = wrap(lambda x: x * o.a.b.c + o.a.b.t)
    out = []
    for k in range(4):
        o.a.b.c = float(k)
        out.append(f(data(3)))
    o.a.b.t = torch.zeros(3)
    out.append(f(data(3)))
    o.a.b = types.SimpleNamespace(c=7.0, t=torch.ones(3) * 2)
    out.append(f(data(3)))
    out.append(f(data(3)))
    return out


@scenario
def big_containers(wrap):
    big = [float(k) for k in range(100)]
    d = {k: float(k) for k in range(100)}
    f = wrap(lambda x: x * big[70] + d[80])
    out = []
    for k in range(4):
        big[70] = float(k)
        out.append(f(data(3)))
        d[80] = float(-k)
        out.append(f(data(3)))
    return out


@scenario
def many_tensors_in_a_list(wrap):
    ts = [data(2, k=k) for k in range(80)]
    f = wrap(lambda: sum(t.sum() for t in ts))
    out = [f(), f(), f()]
    ts[3] = torch.zeros(2)
    out += [f(), f()]
    ts.append(torch.ones(2))
    out += [f(), f()]
    return out


@scenario
def functions_swapped(wrap):
    def a(x):
        return x + 1

    def b(x):
        return x * 3

    table = {"act": a}
    act = a
    f = wrap(lambda x: table["act"](x))

    def g(x):
        return act(x)

    g = wrap(g)
    out = [f(data(3)), f(data(3)), g(data(3)), g(data(3))]
    table["act"] = b
    act = b
    out += [f(data(3)), f(data(3)), g(data(3)), g(data(3))]
    return out


@scenario
def defaults_changed(wrap):
    def h(x, k=2.0):
        return x * k

    f = wrap(lambda x: h(x))
    out = [f(data(3)), f(data(3))]
    h.__defaults__ = (3.0,)
    out += [f(data(3)), f(data(3))]
    return out


@scenario
def numpy_globals(wrap):
    a = np.zeros(3, np.float32)
    f = wrap(lambda x: x + torch.as_tensor(a))
    g = wrap(lambda x: x * float(a[0]) + a.sum())
    out = []
    for _ in range(4):
        a += 1
        out += [f(data(3)), g(data(3))]
    return out


@scenario
def deletions(wrap):
    o = types.SimpleNamespace(a=1.0)
    f = wrap(lambda x: x * getattr(o, "a", 5.0) + (1 if hasattr(o, "b") else 0))
    r = [f(data(3)), f(data(3))]
    del o.a
    r += [f(data(3)), f(data(3))]
    o.b = torch.ones(1)
    r += [f(data(3)), f(data(3))]
    return r


@scenario
def iterators(wrap):
    it = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    f = wrap(lambda x: x * next(it))
    g = wrap(lambda x, i: x * next(i))
    it2 = iter([1.0, 2.0, 3.0, 4.0, 5.0])
    return [f(data(3)) for _ in range(4)], [g(data(3), it2) for _ in range(4)]


@scenario
def user_generators(wrap):
    r, n = random.Random(3), np.random.default_rng(4)
    f = wrap(lambda x: x * r.random() + n.standard_normal())
    return [f(data(3)) for _ in range(4)]


@scenario
def deques_and_sets(wrap):
    d, s = collections.deque([1.0, 2.0], maxlen=2), {1}
    f = wrap(lambda x: x * sum(d) + len(s))
    out = []
    for k in range(4):
        d.append(float(k))
        s.add(k % 3)
        out.append(f(data(3)))
    return out


@scenario
def signed_zeros_and_nans(wrap):
    z = 0.0
    f = wrap(lambda x, s: x * math.copysign(1.0, s))
    g = wrap(lambda x: x * math.copysign(1.0, z))
    out = [f(data(3), s) for s in (0.0, -0.0, 0.0, float("nan"), -0.0)]
    for value in (0.0, 0.0, -0.0, 0.0):
        z = value
        out.append(g(data(3)))
    return out


@scenario
def monkeypatched_methods(wrap):
    class A:
        def go(self, x):
            return x * 2

    a = A()
    f = wrap(lambda x: a.go(x))
    out = [f(data(3)), f(data(3))]
    A.go = lambda self, x: x * 3
    out += [f(data(3)), f(data(3))]
    a.go = lambda x: x * 4
    return out, [f(data(3)), f(data(3))]


@scenario
def books_that_the_body_never_opens(wrap):
    class T:
        def __init__(self):
            self.w = data(3)
            self.steps = 0
            self.history = []

        def go(self, x):
            return x * self.w

    t = T()
    f = wrap(t.go)
    out = []
    for k in range(5):
        out.append(f(data(3, k=k)))
        t.steps += 1
        t.history.append(float(k))
    runs = sum(map(len, getattr(f, "traces", {0: [0]}).values()))
    assert runs == 1, "a change of these needs no new trace"
    return out


@scenario
def dataclass_with_methods_and_extra(wrap):
    @dataclasses.dataclass
    class P:
        x: torch.Tensor

        def __post_init__(self):
            self.cached = 3.0

        def go(self):
            return self.x * self.cached

    f = wrap(lambda p: p.go())
    out = []
    for k in range(4):
        p = P(data(3))
        p.cached = float(k)
        out.append(f(p))
    return out


class MyDict(dict):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.tag = 1.0


@scenario
def dict_subclasses(wrap):
    f = wrap(lambda d: d["x"] * d.tag)
    out = []
    for k in range(4):
        d = MyDict(x=data(3))
        d.tag = float(k)
        out.append(f(d))
    g = wrap(lambda d: collections.OrderedDict((k, v * 2) for k, v in d.items()))
    dd = collections.defaultdict(lambda: torch.ones(3), x=data(3))
    h = wrap(lambda d: d["x"] + d["missing"])
    out += [h(dd), len(dd)]
    dd = collections.defaultdict(lambda: torch.ones(3), x=data(3))
    out += [h(dd), len(dd)]
    dd = collections.defaultdict(lambda: torch.ones(3), x=data(3))
    out += [h(dd), len(dd)]
    return out, g(collections.OrderedDict(a=data(2))), g(collections.OrderedDict(a=data(2)))


@scenario
def sizes_slices_ranges_as_arguments(wrap):
    f = wrap(lambda x, s, r, c: (x.view(s)[r], x * c))
    return [f(data(2, 3), torch.Size([3, 2]), slice(0, k % 2 + 1), 1j * k) for k in range(4)]


@scenario
def memo_decorator(wrap):
    @functools.lru_cache(None)
    def table(n):
        return torch.arange(float(n))

    f = wrap(lambda x, n: x + table(n))
    return (
        [f(data(3), 3) for _ in range(3)],
        [f(data(4), 4) for _ in range(3)],
        table.cache_info().misses,
    )


@scenario
def attributes_put_on_tensors(wrap):
    known, out = nn.Parameter(data(2)), []
    known.tag = "twice"
    f = wrap(lambda x: x * x.scale if hasattr(x, "scale") else x)
    g = wrap(lambda x: x * (2 if known.tag == "twice" else 3))

    def putting(x):
        x.seen = getattr(x, "seen", 0) + 1
        y = x * 2
        y.made = x.seen
        return y

    h = wrap(putting)
    for k in range(6):
        x = data(2, k=k)
        if k % 2:
            x.scale = 2.0 + k
        if k == 3:
            known.tag = "thrice"
        out += [f(x), g(x), h(x).made, h(x).made, x.seen]
    return out


@scenario
def functions_of_the_library_replaced(wrap):
    layer = nn.Linear(2, 2)
    with torch.no_grad():
        layer.weight.fill_(0.5), layer.bias.fill_(1.0)
    f = wrap(lambda x: nn.functional.relu(x) + torch.tanh(x) + x.sigmoid())
    g, out = wrap(layer), []
    patch = pytest.MonkeyPatch()
    replacements = (
        lambda: None, lambda: None,
        lambda: patch.setattr(nn.functional, "relu", lambda x: x * 100),
        lambda: patch.setattr(torch, "tanh", lambda x: x * 1000),
        lambda: patch.setattr(torch.Tensor, "sigmoid", lambda x: x * 5),
        lambda: patch.setattr(nn.Linear, "forward", lambda self, x: x * 7),
        patch.undo,
        lambda: patch.setattr(nn.functional, "linear", lambda x, weight, bias: x * weight.sum()),
        patch.undo,
    )  # fmt: skip
    for k, replace in enumerate(replacements):
        replace()
        out += [f(data(2, k=k)), g(data(2, k=k))]
    return out


@pytest.mark.parametrize("run", scenario, ids=lambda f: f.__name__)
def test_scenario(run):
    check(run)


def test_settings_may_lie_beside_large_data():
    d = {"steps": 3, "batches": [(np.zeros((100, 50)),)], "weights": {"w": np.ones((300, 9))}}

    def body(x):
        for _ in range(d["steps"]):
            x = x * 2
        return x

    compiled = torch.compile(body)
    assert [compiled(torch.ones(2)).tolist() for _ in range(3)] == [[8.0, 8.0]] * 3
    assert "replayed 2 times" in compiled.explain()
    d["steps"] = 2
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]


t = time = 0.0


def test_names_of_attributes_are_no_globals():
    """A clock in a global called `t` has nothing to do with `x.t()`."""
    global t, time

    class Timed(nn.Module):
        time = 3.0

        def forward(self, x):
            return x.t() * self.time

    f = torch.compile(Timed())
    for k in range(4):
        t = time = float(k)
        assert torch.equal(f(torch.ones(2, 3)), torch.full((3, 2), 3.0))
    assert str(f.explain()).count("trace of") == 1
