"""Compiled functions see which containers among their arguments are one object, as eager does."""

import copy
import dataclasses
import operator

import pytest
import wengert as torch
from wengert.one_object import containers_of, seen_twice

X = torch.arange(3.0)
KNOWN = [X]
OPTIONS = {"scale": 2.0}


@dataclasses.dataclass
class Box:
    value: object


def is_one(a, b):
    return X * 2 if a is b else X * 3


def is_another(a, b):
    return X + len(b) if a is not b else X - len(b)


def is_known(a, b=None):
    return X * 2 if a is KNOWN else X * 3


def operator_is(a, b):
    return X * (2 if operator.is_(a, b) else 3)


def members(a, b):
    both = {"a": a, "b": b}
    return inner(both)


def inner(both):
    return X * 2 if both["a"] is both["b"] else X


def appended(a, b):
    a.append(1.0)
    return X + len(b)


def written(a, b):
    doubled = a[0] * 2
    b[0] = 10.0
    return X * a[0] + doubled


def read(a, b):
    return X * a[0] + b[0]


def copied(a, b):
    return copy.deepcopy([a, b])


def written_by_its_name(a, b=None):
    a["scale"] = a["scale"] + 1
    return X * OPTIONS["scale"]


def pairs(kind, value):
    """Calls with two containers, and with one twice, in turn."""
    one, other = kind(value), kind(value)
    return [(one, other), (one, one), (other, other), (one, other), (one, one)] * 2


def a_list(value):
    return [value]


CASES = {
    "lists": (is_one, pairs(a_list, 1)),
    "the other way": (is_another, pairs(a_list, 1)[1:]),
    "of tensors": (is_one, pairs(a_list, X)),
    "of floats": (is_one, pairs(a_list, 1.5)),
    "empty": (is_one, pairs(lambda _: [], None)),
    "dicts": (is_one, pairs(lambda value: {"a": value}, 1)),
    "dataclasses": (is_one, pairs(Box, X)),
    "tuples": (is_one, pairs(lambda value: (value,), 1)),
    "a name of its own": (is_known, [([X],), (KNOWN,), (KNOWN,), ([X],), (KNOWN,), ([X],)]),
    "operator.is_": (operator_is, pairs(a_list, 1)),
    "members": (members, pairs(a_list, 1)),
    "appended": (appended, pairs(a_list, 1.5)),
    "written": (written, pairs(a_list, 1.5)),
    "read": (read, [*pairs(a_list, 1.5), ([2.0], [3.0]), ([4.0], [5.0]), ([6.0], [7.0])]),
    "copied": (copied, pairs(a_list, X)),
    "written by its name": (written_by_its_name, [(OPTIONS,), ({"scale": 1.0},), (OPTIONS,)]),
}


def shown(result):
    if isinstance(result, list):
        return result[0] is result[1], [shown(part[0]) for part in result]
    return result.tolist()


def outcomes(function, calls):
    """What calls give and leave, with containers of their own."""
    calls, OPTIONS["scale"] = copy.deepcopy(calls, {id(KNOWN): KNOWN, id(OPTIONS): OPTIONS}), 2.0
    return [(shown(function(*args)), repr(args)) for args in calls]


@pytest.mark.parametrize("name", CASES)
def test_what_is_one_is_seen(name, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    function, calls = CASES[name]
    assert outcomes(torch.compile(function), calls) == outcomes(function, calls)


def test_keywords_and_other_structures():
    compiled = torch.compile(is_one)
    one, other = [1], [1]
    for a, b, expected in ((one, other, 3), (one, one, 2), (one, other, 3), (one, one, 2)):
        assert compiled(a=a, b=b).tolist() == (X * expected).tolist()
        assert compiled(a, b=b).tolist() == (X * expected).tolist()
    assert compiled(one, 5).tolist() == (X * 3).tolist()


def test_calls_that_ask_are_replayed():
    def asks(a, b, x):
        return x * 2 if a is b else x * 3

    compiled = torch.compile(asks)
    for args in pairs(a_list, X):
        assert compiled(*args, X).tolist() == asks(*args, X).tolist()
    assert len(compiled.traces) == len(compiled.hot) == 2
    replays = sum(trace.hits for traces in compiled.traces.values() for trace in traces)
    assert replays == len(pairs(a_list, X)) - 2


def test_calls_whose_code_does_not_ask_compare_nothing():
    compiled = torch.compile(lambda a, b: a[0] * b[0])
    for args in pairs(a_list, X):
        compiled(*args)
    assert not compiled.containers.matters


def test_many_containers():
    def count(items):
        return X * sum(item is items[0] for item in items)

    compiled, one = torch.compile(count), [1]
    for repeats in (1, 3, 1, 2, 3, 1, 2):
        items = [one] * repeats + [[1] for _ in range(20 - repeats)]
        assert compiled(items).tolist() == count(items).tolist()


def test_places_of_leaves_in_containers_seen_twice():
    one, other = [1.0, 2.0], {"a": 3.0}
    call = ((one, other, 4.0), {"k": [one]})
    assert seen_twice(call, set()) == {0, 1, 4, 5}
    assert seen_twice(call, {id(other)}) == {0, 1, 2, 4, 5}
    assert seen_twice(((one, other), {}), set()) == set()
    assert [id(c) for c in containers_of(call)] == [*map(id, (one, other, call[1]["k"], one))]
