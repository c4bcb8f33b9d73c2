"""Numbers that `item()` gives, in dicts and lists; see Note [Containers of one's own]."""

import dis
import json
import sys

import pytest
import wengert as torch
from comparing import close
from wengert.returns import _EFFECTS
from wengert.runtime import watch

if watch.trouble() or sys.version_info >= (3, 13):
    pytest.skip("bodies that see numbers run here", allow_module_level=True)

KEPT = []


def test_instructions_take_and_give_what_python_says():
    for name, effect in _EFFECTS.items():
        if name in dis.opmap and name not in ("CALL", "PRECALL", "END_FOR"):  # said elsewhere
            for arg in (2, 3) if callable(effect) else (0,):
                takes, gives = effect(arg) if callable(effect) else effect
                number = dis.opmap[name]
                has_argument = number >= dis.HAVE_ARGUMENT
                wanted = dis.stack_effect(number, arg if has_argument else None, jump=False)
                assert gives - takes == wanted, (name, arg)


def logged(x):
    logs = {"name": "x"}
    logs["sum"] = x.sum().item()
    y = x * 2
    logs["most"] = y.max().item() / 2
    return y, logs


def appended(x):
    found = []
    for part in x.chunk(2):
        found.append(part.sum().item())
    return found, x + 1


def summed(x):
    total, parts = 0.0, {}
    for k, (part, other) in enumerate(zip(x.chunk(2), x.chunk(2))):
        total += part[0:1].sum().item() + other.max().item()
        parts[k] = total
    return total / 2, parts, x * total


def chosen(x):
    logs, others = {}, [1]
    if x.sum() > 3:
        logs["large"] = x.sum().item()
    else:
        others.append(2)
    return logs, len(others)


@pytest.mark.parametrize("body", [logged, appended, summed, chosen])
def test_such_bodies_are_replayed(body):
    function = torch.compile(body)
    for k in range(6):
        x = torch.tensor([k + 1.0, 2.0, k / 3, -1.0])
        found, wanted = plain(function(x)), plain(body(x))
        assert close(found, wanted) and kinds(found) == kinds(wanted)
    assert "Python body" not in function.explain(), function.explain()


def plain(value):
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


def kinds(value):
    if isinstance(value, dict):
        return {key: kinds(v) for key, v in value.items()}
    return [*map(kinds, value)] if isinstance(value, list) else type(value)


def shared_before(x):
    logs = {}
    KEPT.append(logs)
    logs["sum"] = x.sum().item()
    return x * 2


def shared_after(x):
    found = []
    found.append(x.sum().item())
    KEPT.append(found)
    return x * 2


def shared_in_a_loop(x):
    found = []
    for part in x.chunk(2):
        found.append(part.sum().item())
        KEPT.append(tuple(found))
    return x * 2


def by_another_name(x):
    found = []
    other = found
    other.append(x.sum().item())
    return json.dumps(found), x * 2


def by_another_name_later(x):
    found = []
    found.append(x.sum().item())
    other = found
    return json.dumps(other), x * 2


def in_another(x):
    outer, inner = {}, []
    outer["inner"] = inner
    inner.append(x.sum().item())
    return json.dumps(outer), x * 2


def in_a_tuple(x):
    inner = []
    pair = (inner, 1)
    inner.append(x.sum().item())
    return json.dumps(pair), x * 2


def looked_at(x):
    found = [x.sum().item()]
    found.append(x.max().item())
    logs = {"n": x.norm().item()}
    return sorted(found), sum(found), f"{logs['n']:.2f}", type(found[0]), x * 2


def closed_over(x):
    logs = {}

    def note(name, value):
        logs[name] = value

    note("sum", x.sum().item())
    logs["most"] = x.max().item()
    return json.dumps(logs), x * 2


def iterated(x):
    found = [1.0]
    for _ in found:
        if len(found) < 3:
            found.append(x.sum().item())
    return [str(v) for v in found], x * 2


def returned_to_a_caller(x):
    logs = logged(x)[1]
    return json.dumps(logs), x * 2


def given(x, logs):
    logs["sum"] = x.sum().item()
    return json.dumps(logs), x * 2


def given_its_own(x):
    return given(x, {})


class Odd(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, json.dumps(value))


def of_a_class(x):
    logs = Odd()
    logs["sum"] = x.sum().item()
    return dict(logs), x * 2


def as_a_key(x):
    logs = {}
    logs[x.sum().item()] = 1
    return json.dumps(list(logs)), x * 2


@pytest.mark.parametrize(
    "body",
    [shared_before, shared_after, shared_in_a_loop, by_another_name, by_another_name_later,
     in_another, in_a_tuple, looked_at, closed_over, iterated, returned_to_a_caller, given_its_own,
     of_a_class, as_a_key],
)  # fmt: skip
def test_numbers_that_others_see_are_floats(body):
    def run(function):
        KEPT.clear()
        found = []
        for k in range(5):
            found.append(plain(function(torch.tensor([k + 1.0, 2.0]))))
        return found, plain([*KEPT])

    compiled, eager = run(torch.compile(body)), run(body)
    assert compiled == eager and kinds([*compiled]) == kinds([*eager])
