"""Compiling never changes meaning: values that lie in places of Python's own."""

import collections
import contextvars
import functools
import operator
import os
import sys
import threading
import types
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import wengert as torch
from scenarios import Scenarios, check, data, filled
from wengert import nn

scenario = Scenarios()


def over(f, change, values=(1.0, 1.0, 2.0, 2.0, 3.0)):
    """The results of calls, each after a change."""
    found = []
    for value in values:
        change(value)
        found.append(f(data(2)))
    return found


@scenario
def attributes_of_functions(wrap):
    def counting(function):
        @functools.wraps(function)
        def counted(x):
            counted.calls += 1
            return function(x) * counted.calls

        counted.calls = 0
        return counted

    @counting
    def body(x):
        return x + 1

    def late(x):
        late.calls = getattr(late, "calls", 0) + 1
        return x * late.calls

    f, g = wrap(lambda x: body(x)), wrap(lambda x: late(x))
    found = [(f(data(2, k=k)), g(data(2)), body.calls, late.calls) for k in range(4)]
    return found, over(f, lambda v: setattr(body, "calls", v))


@scenario
def single_dispatch(wrap):
    scale = 2.0

    @functools.singledispatch
    def apply(value, x):
        return x * 0

    @apply.register
    def _(value: int, x):
        return x * value * scale

    f = wrap(lambda value, x: apply(value, x))
    calls = (1, "ab", 2.5, 1, True, "ab", 2.5)
    found = [f(value, data(2)) for value in calls]
    scale = 3.0
    found += [f(value, data(2)) for value in calls]

    @apply.register
    def _(value: float, x):
        return x - value

    return found + [f(value, data(2)) for value in calls]


@scenario
def classes_assigned_to_objects(wrap):
    class Doubling(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    class Old:
        k = 1.0

        def scale(self):
            return self.k

    class New(Old):
        k = 5.0

    layer, thing = filled(nn.Linear(2, 2)), Old()
    thing.a = 1
    f, g = wrap(lambda x: layer(x)), wrap(lambda x: x * thing.scale() * thing.a)

    def change(value):
        layer.__class__ = Doubling if value == 2.0 else nn.Linear
        thing.__class__ = New if value == 2.0 else Old

    return over(f, change), over(g, change)


@scenario
def proxies_and_views_of_dicts(wrap):
    table = {"a": 1.0}
    proxy = types.MappingProxyType(table)
    keys, items, values = table.keys(), table.items(), table.values()
    chain, user = collections.ChainMap({}, table), collections.UserDict(a=1.0)
    bodies = [lambda x: x * proxy["a"], lambda x: x * len(keys), lambda x: x * sum(values),
              lambda x: x * sum(v for _, v in items), lambda x: x * chain["a"]]  # fmt: skip
    found = [over(wrap(body), lambda v: table.update(a=v)) for body in bodies]
    found += [over(wrap(body), lambda v: table.update({str(v): v})) for body in bodies]
    return found, over(wrap(lambda x: x * user["a"]), lambda v: user.update(a=v))


@scenario
def attributes_by_names_elsewhere(wrap):
    thing, name = types.SimpleNamespace(value=1.0), operator.attrgetter("value")
    return over(wrap(lambda x: x * name(thing)), lambda v: setattr(thing, "value", v))


@scenario
def memory_views(wrap):
    view = memoryview(bytearray(b"abc"))
    return over(wrap(lambda x: x * view[0]), lambda v: view.__setitem__(0, int(v)))


@scenario
def context_variables_and_thread_locals(wrap):
    variable, local = contextvars.ContextVar("variable", default=1.0), threading.local()
    f, g = wrap(lambda x: x * variable.get()), wrap(lambda x: x * local.value)
    return over(f, variable.set), over(g, lambda v: setattr(local, "value", v))


@scenario
def the_environment_and_modules_of_python(wrap):
    def change(value):
        os.environ["WENGERT_TEST_SCALE"] = str(value)
        sys.wengert_test_scale = value

    bodies = [lambda x: x * float(os.environ["WENGERT_TEST_SCALE"]),
              lambda x: x * float(os.getenv("WENGERT_TEST_SCALE")),
              lambda x: x * sys.wengert_test_scale]  # fmt: skip
    try:
        return [over(wrap(body), change) for body in bodies]
    finally:
        del os.environ["WENGERT_TEST_SCALE"], sys.wengert_test_scale


@scenario
def weak_references(wrap):
    class Thing:
        value = 1.0

    things = [Thing()]
    reference = weakref.ref(things[0])
    f = wrap(lambda x: x * 100 if reference() is None else x * reference().value)
    found = over(f, lambda v: setattr(things[0], "value", v))
    things.clear()
    return found, f(data(2)), f(data(2))


@scenario
def work_in_other_threads(wrap):
    def started(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
        return found[0] + 1

    with ThreadPoolExecutor(1) as pool:
        f, g = wrap(started), wrap(lambda x: pool.submit(torch.sin, x).result() + 1)
        return [(f(data(2, k=k)), g(data(2, k=k))) for k in range(4)]


@scenario
def tensors_put_in_the_place_of_others(wrap):
    items, names, thing = [data(3)], {"a": data(3, k=1), "b": data(3, k=2)}, types.SimpleNamespace()
    thing.last = variable = data(3, k=3)

    def body(x):
        nonlocal variable
        y = x + items[0] * names["a"] + thing.last * variable
        items[0] = thing.last = variable = x
        names["a"], names["b"] = names["b"], names["a"]
        return y

    f = wrap(body)
    found = []
    for k in range(6):
        found += [f(data(3, k=k + 4)), items[0], names["a"], thing.last, variable]
    return found


@scenario
def the_same_tensor_or_another(wrap):
    tensors, layer = [data(3, k=k) for k in range(3)], filled(nn.Linear(3, 3))
    a = b = tensors[0]
    f, g = wrap(lambda x: x * 2 if x is a else x), wrap(lambda x: x * 2 if a is b else x)
    h = wrap(lambda x: x * 2 if x is layer.weight else x * 3)
    order = (0, 0, 0, 1, 1, 2, 0, 1, 2, 2, 0)
    found = []
    for k in (0, 1, 0, 2):
        a = tensors[k]
        found += [f(tensors[i]) for i in order] + [g(data(3)) for _ in range(2)]
    others = (layer.weight, nn.Parameter(data(3, 3)), layer.weight, nn.Parameter(data(3, 3)))
    return found, [h(x) for x in others * 2]


@scenario
def sizes_as_keys(wrap):
    tables = {}

    def body(x):
        if x.shape[0] not in tables:
            tables[x.shape[0]] = torch.arange(x.shape[0]).float()
        return x + tables[x.shape[0]]

    f = wrap(body)
    found = [f(data(n)) for n in (3, 3, 4, 4, 5, 3, 6, 7, 7)]
    return found, [(type(n).__name__, n) for n in tables]


@scenario
def seeds(wrap):
    f = wrap(lambda x: x + torch.initial_seed())
    found = []
    for seed in (3, 3, 4, 5, 5):
        torch.manual_seed(seed)
        found.append(f(data(2)))
    return found


@pytest.mark.parametrize("run", scenario, ids=lambda run: run.__name__)
def test_scenario(run):
    check(run)


def test_locks_do_not_keep_a_body_from_being_replayed():
    lock = threading.Lock()

    @torch.compile
    def f(x):
        with lock:
            return x * 2

    for k in range(3):
        f(data(2, k=k))
    assert "replayed 2 times" in f.explain()


def test_dispatch_by_class_is_replayed():
    @functools.singledispatch
    def apply(value, x):
        return x * 2

    f = torch.compile(lambda value, x: apply(value, x))
    for k in range(5):
        f("name", data(2, k=k))
    assert "replayed 4 times" in f.explain()


HOLDERS = {
    "object": (types.SimpleNamespace, getattr, setattr),
    "module": (torch.nn.Module, getattr, setattr),
    "dict": (dict, operator.getitem, operator.setitem),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_one_tensor_at_two_places_that_become_two(kind):
    make, get, put = HOLDERS[kind]
    shared, held = torch.ones(3), make()
    for name in ("a", "b"):
        put(held, name, shared)

    def body(x):
        if kind == "dict":
            return x + held["a"] + held["b"] * 10
        return x + held.a + held.b * 10

    fn, x = torch.compile(body), torch.zeros(3)
    for k in range(8):
        if k == 3:
            put(held, "b", torch.full((3,), 5.0))
        if k == 5:
            put(held, "a", torch.full((3,), 7.0))
        if k == 7:
            put(held, "b", get(held, "a"))
        assert fn(x).tolist() == body(x).tolist()


def turned(space):
    """The first entry becomes the last."""
    name = next(iter(space))
    space[name] = space.pop(name)


@pytest.mark.parametrize("kind", ["numbers", "tensors", "attributes"])
def test_the_order_of_what_a_body_looks_through(kind):
    made = torch.full if kind == "tensors" else lambda _, value: value
    held = types.SimpleNamespace(a=made((), 1.0), b=made((), 2.0))
    space = vars(held) if kind == "attributes" else dict(vars(held))

    def attributes(x):
        return x + sum(k * value for k, value in enumerate(vars(held).values()))

    def items(x):
        return x + sum(k * value for k, value in enumerate(space.values()))

    body = attributes if kind == "attributes" else items
    fn = torch.compile(body)
    for _ in range(6):
        assert fn(torch.zeros(2)).tolist() == body(torch.zeros(2)).tolist()
        turned(space)
    assert fn.explain().count("trace of") == 2


def test_deques_of_tensors_are_read_anew():
    window, ran = collections.deque(maxlen=3), []

    def body(x):
        return x + torch.stack(list(window)).sum(0)

    fn = torch.compile(body)
    for k in range(8):
        window.append(torch.full((2,), float(k)))
        assert fn(torch.zeros(2)).tolist() == body(torch.zeros(2)).tolist(), k
        ran.append(fn.explain().count("trace of"))
    assert ran == [1, 2, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("make", [set, collections.deque])
def test_numbers_of_other_types_among_contents(make):
    held = make([1, 2])
    body = lambda x: x * sum(10 if v is True else v for v in held)  # noqa: E731
    fn = torch.compile(body)
    for value in (1, 1, True, 1.0, True):
        held.clear()
        (held.add if make is set else held.append)(value)
        for _ in range(2):
            assert fn(torch.ones(1)).tolist() == body(torch.ones(1)).tolist(), value


def test_none_among_names():
    held = {None: 1.0}
    fn = torch.compile(lambda x: x * held[None])
    for value in (1.0, 1.0, 2.0, 3.0):
        held[None] = value
        assert fn(torch.ones(1)).item() == value


def test_attributes_of_numbers_and_words():
    kinds = [type(base.__name__, (base,), {}) for base in (int, float, str)]
    number, rate, word = (kind(2) for kind in kinds)

    def body(x, given):
        return x * number.scale * number + rate.scale * rate + word.scale + given.scale

    fn = torch.compile(body)
    for k in range(5):
        for value in (number, rate, word, given := kinds[k % 2](3)):
            value.scale = float(k)
        assert fn(torch.ones(1), given).tolist() == body(torch.ones(1), given).tolist()


def test_attributes_of_metaclasses():
    class Meta(type):
        scale = 1.0

    class Named(metaclass=Meta):
        pass

    fn = torch.compile(lambda x: x * Named.scale)
    for scale in (1.0, 1.0, 2.0, 3.0):
        Meta.scale = scale
        assert fn(torch.ones(1)).item() == scale


def test_classes_that_name_no_module():
    meta = type("Meta", (type,), {"__module__": property(lambda cls: "made in C")})
    made = meta("Made", (), {"scale": 2.0})()
    fn = torch.compile(lambda x: x * made.scale)
    assert [fn(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3


def test_what_each_thread_has_for_itself():
    own = threading.local()
    fn = torch.compile(lambda x: x * own.scale)

    def run(scale):
        own.scale = scale
        return [fn(torch.ones(1)).item() for _ in range(3)]

    assert run(2.0) == [2.0] * 3
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run, 5.0).result() == [5.0] * 3
    assert run(3.0) == [3.0] * 3
    assert "which nobody can watch" in fn.explain()
