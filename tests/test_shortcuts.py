"""Calls of every form that hit a trace are served without the general way, and are right."""

import dataclasses
import sys
import weakref
from typing import NamedTuple

import pytest
import wengert as torch
from scenarios import close, data, plain
from wengert import nn
from wengert.compiling import CompiledFunction
from wengert.runtime import watch
from wengert.unpacking import packing, unpacker

pytestmark = pytest.mark.skipif(bool(watch.trouble()), reason="calls can't be bound here")


class Pair(NamedTuple):
    x: torch.Tensor
    y: torch.Tensor


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float
    rounds: int


def rounds(x, n=2, *, scale=1.0, name="sum", flag=False, other=None):
    for _ in range(n):
        x = x * scale
    x = x if other is None else x + other
    return getattr(x, name)() if not flag else x


LINEAR = nn.Linear(3, 3).requires_grad_(False)
FORMS = {
    "ints": lambda f, x: f(x, 3),
    "large ints": lambda f, x: f(x, int("3"), scale=2.0),
    "keywords": lambda f, x: f(x, scale=2.0, name="mean"),
    "other order": lambda f, x: f(name="mean", x=x, scale=2.0),
    "flags": lambda f, x: f(x, flag=True, other=None),
    "tensors by name": lambda f, x: f(x, other=x * 2),
}


def calls_that_hit(monkeypatch, function, call, rounds=3):
    """The results of calls after the first ones, which may not come to the general way."""
    compiled = torch.compile(function)
    for k in range(3):
        call(compiled, data(2, 3, k=k))

    def general(*_):
        raise AssertionError("the general way was taken")

    with monkeypatch.context() as patch:
        patch.setattr(CompiledFunction, "key_of", general)
        found = [call(compiled, data(2, 3, k=k)) for k in range(rounds)]
    wanted = [call(function, data(2, 3, k=k)) for k in range(rounds)]
    assert close(plain(found), plain(wanted))
    return compiled


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_numbers_flags_and_names(form, monkeypatch):
    calls_that_hit(monkeypatch, rounds, form)


def test_containers(monkeypatch):
    calls_that_hit(monkeypatch, lambda p: p[0] * p[1], lambda f, x: f([x, x + 1]))
    calls_that_hit(monkeypatch, lambda p: p[0] * p[1][0], lambda f, x: f((x, [x + 1])))
    calls_that_hit(monkeypatch, lambda d: d["a"] * d["b"], lambda f, x: f({"a": x, "b": x + 1}))
    calls_that_hit(monkeypatch, lambda p: p.x - p.y, lambda f, x: f(Pair(x, x + 1)))
    calls_that_hit(
        monkeypatch, lambda b: b.x * b.scale * b.rounds, lambda f, x: f(Batch(x, 2.0, 3))
    )


def test_results_in_containers(monkeypatch):
    calls_that_hit(monkeypatch, lambda x: (x * 2, x + 1), lambda f, x: f(x))
    calls_that_hit(monkeypatch, lambda x: {"a": [x * 2], "b": (x + 1,)}, lambda f, x: f(x))


def test_modules_and_modes(monkeypatch):
    calls_that_hit(monkeypatch, lambda m, x: m(x), lambda f, x: f(LINEAR, x))
    with torch.inference_mode():
        compiled = calls_that_hit(monkeypatch, lambda x: x * 2, lambda f, x: f(x))
        assert compiled(data(2, 3)).is_inference()


def test_kinds_of_call_may_alternate(monkeypatch):
    calls_that_hit(monkeypatch, lambda x, flag: x * 2 if flag else x + 1,
                   lambda f, x: [f(x, True), f(x, False), f(x[:1], True)])  # fmt: skip


def test_a_float_that_python_looked_at(monkeypatch):
    calls_that_hit(monkeypatch, lambda x, s: x * max(s, 1.0), lambda f, x: f(x, 2.5))


@pytest.mark.parametrize("value", [2**29, 2**30, 2**62, -5, 0, "ab", 2.5, None, True])
def test_other_values_are_not_taken_for_these(value):
    f = torch.compile(lambda x, v: (x * 1, v))
    x = data(3)
    for _ in range(4):
        assert f(x, value)[1] == value
    others = [value + 1, -value] if type(value) in (int, float) else ["ba", 1, 1.0, False]
    for other in others:
        found = f(x, other)[1]
        assert found == other and type(found) is type(other)
    assert f(x, value)[1] == value


def test_arguments_of_another_structure_are_told_apart():
    f = torch.compile(lambda *a, **k: sum(torch.as_tensor(v).sum() for v in leaves((a, k))))
    x = data(3)
    calls = [([x, x], {}), ((x, x), {}), ((x,), {"b": x}), ((x,), {"c": x}), ((), {"b": x, "c": x}),
             (([x], [x]), {}), (({"a": x, "b": x},), {}), (({"b": x, "a": x},), {}),
             (((x, x),), {}), (([x, x, x],), {})]  # fmt: skip
    for _ in range(3):
        for args, kwargs in calls:
            assert close(
                f(*args, **kwargs).item(), sum(v.sum().item() for v in leaves((args, kwargs)))
            )


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [leaf for item in items for leaf in leaves(item)]


def test_packing_is_the_inverse_of_unpacking():
    from wengert.pytree import flatten

    args, kwargs = (1, [2, (3, 4)], {"k": 5}), {"a": [6], "b": {}}
    found: list = []
    structure = flatten((args, kwargs), found)
    assert unpacker(structure)(args, kwargs) == tuple(found) == (1, 2, 3, 4, 5, 6)
    constants: dict = {}

    def constant(value):
        name = f"c{len(constants)}"
        constants[name] = value
        return name

    text = packing(structure, map(str, found), constant)
    assert eval(text, constants) == (args, kwargs)
    assert unpacker(structure)((1, [2, [3, 4]], {"k": 5}), kwargs) is None
    assert unpacker(structure)(args, {"a": [6], "c": {}}) is None


def by_sign(x, w, scale):
    y = x * w
    if y.sum() > 0:
        y = y * scale
        if y.max() > 1:
            return y - 1, {"y": y}
        return y, {"y": y + w}
    return y.exp() * w, {"y": y}


def doubled(x, w, scale):
    count = 0
    while x.norm() < 10:
        x, count = x * 2 + w, count + 1
    with torch.no_grad():
        w.add_(scale)
    return x, count


@pytest.mark.parametrize("function", [by_sign, doubled])
@pytest.mark.parametrize("grad", [False, True])
def test_branches_that_were_taken_before_need_no_general_way(monkeypatch, function, grad):
    def outcome(call, k):
        x, w = data(2, 3, k=k, grad=grad), data(3, k=k + 50, grad=grad)
        found = call(x, w, 0.5 + k)
        if grad:
            found[0].sum().backward()
        return plain([found, x.grad, w.grad, w.detach(), w._version])

    compiled = torch.compile(function)
    calls = [*range(12), *range(12)]
    assert close([outcome(compiled, k) for k in calls], [outcome(function, k) for k in calls])

    def general(*_):
        raise AssertionError(f"the general way was taken\n{compiled.explain()}\n{compiled.hot}")

    with monkeypatch.context() as patch:
        patch.setattr(CompiledFunction, "key_of", general)
        found = [outcome(compiled, k) for k in range(12)]
    assert close(found, [outcome(function, k) for k in range(12)])


def test_branches_see_what_changed_outside():
    layer, limit = nn.Linear(3, 3), [0.5]

    def function(x):
        y = layer(x)
        return y * limit[0] if y.sum() > limit[0] else y.relu()

    compiled = torch.compile(function)
    for k in range(24):
        if k == 8:
            layer.weight.requires_grad_(False)
        if k == 12:
            limit[0] = 0.25
        if k == 16:
            layer.load_state_dict({"weight": data(3, 3, k=3), "bias": data(3, k=4)})
        if k == 20:
            layer.weight = nn.Parameter(data(3, 3, k=5))
        with torch.set_grad_enabled(k % 3 != 0):
            x = data(2, 3, k=k % 5)
            assert close(plain(compiled(x)), plain(function(x))), k


def test_kinds_that_come_once_are_not_recorded_for_ever(monkeypatch):
    monkeypatch.setattr(sys.modules[torch.compile.__module__], "MAX_KINDS", 4)
    monkeypatch.setattr(sys.modules["wengert.dropped"], "MAX_IDLE", 4)
    fn = torch.compile(lambda x, k: x * k)
    for k in range(40):
        assert fn(torch.ones(2), k).tolist() == [k, k]
    assert fn.dropped.count == 4 and "until they have come 2 times" in fn.explain()
    for _ in range(4):  # one that comes again is worth it
        assert fn(torch.ones(2), 100).tolist() == [100, 100]
    assert fn.dropped.count == 5 and any(trace.hits for [trace] in fn.traces.values())
    for k in 2 * [*range(200, 220)]:  # not those that come again when they are forgotten
        fn(torch.ones(2), k)
    assert fn.dropped.needed > 2
    fn.cache_clear()
    fn(torch.ones(2), 1)
    assert len(fn.traces) == 1


def test_refused_kinds_that_never_come_again_are_not_recorded_for_ever(monkeypatch):
    monkeypatch.setattr(sys.modules["wengert.compiling"], "MAX_KINDS", 8)
    monkeypatch.setattr(sys.modules["wengert.dropped"], "MAX_IDLE", 4)
    recorded, record_call = [], CompiledFunction.record_call
    monkeypatch.setattr(CompiledFunction, "record_call", lambda self, key, *rest: (
        recorded.append(key), record_call(self, key, *rest))[1])  # fmt: skip

    class Options:
        count = 0

    def count_up(x, k, options):
        options.count += k
        return x * options.count

    fn, kept = torch.compile(count_up), Options()
    known = []
    for k in range(64):
        options = Options()
        assert fn(torch.ones(2), k, options).tolist() == [k, k] and options.count == k
        fn(torch.ones(2), 1, kept)
        known.append(weakref.ref(options))
    assert kept.count == 64 and len(recorded) < 40 and len(fn.refusals) <= 8
    del options
    assert sum(ref() is not None for ref in known) <= 8
