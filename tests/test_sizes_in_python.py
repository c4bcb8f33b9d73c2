"""Symbolic sizes are ints wherever Python, C code and callers can see them."""

import collections
import datetime
import decimal
import json
import math
import statistics
import types

import pytest
import wengert as torch

SIZES = (3, 5, 4, 7, 5, 2)


def shown(value):
    """A value with the classes of all that is in it."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return type(value), [(shown(k), shown(v)) for k, v in value.items()]
    if isinstance(value, tuple | list | set | frozenset | collections.deque):
        return type(value), [shown(item) for item in value]
    if isinstance(value, slice):
        return shown((value.start, value.stop, value.step))
    if hasattr(value, "__dict__"):
        return shown(vars(value))
    return type(value), value


ASKED = {
    "the class": lambda n: (type(n) is int, type(n).__name__),
    "encoders": lambda n: json.dumps({"n": n}),
    "the length of a queue": lambda n: collections.deque(range(9), maxlen=n),
    "days": lambda n: datetime.timedelta(days=n).days,
    "decimals": lambda n: str(decimal.Decimal(n)),
    "averages": lambda n: statistics.mean([n, 2]),
    "exponents": lambda n: math.ldexp(1.0, n),
    "powers by a modulus": lambda n: pow(n, 2, 5),
    "slices": lambda n: slice(0, n),
    "keys": lambda n: {n: 1, (n, 2): {n: n}},
    "shapes as keys": lambda n: {torch.Size([n, 2]): n},
    "sets": lambda n: ({n}, frozenset([(n, 1)]), [{n}]),
    "counters": lambda n: collections.Counter([n, n, 1]),
    "defaults": lambda n: collections.defaultdict(list, {n: [n]}),
    "objects": lambda n: types.SimpleNamespace(n=n, pair=(n, (n, 1))),
    "queues": lambda n: collections.deque([n, (n, n)]),
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_what_is_made_of_sizes(asked, dynamic):
    def body(x):
        return x * 2, asked(x.shape[0])

    fn = torch.compile(body, dynamic=dynamic)
    for n in SIZES:
        assert shown(fn(torch.ones(n))) == shown(body(torch.ones(n))), n


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_are_left_behind(dynamic):
    def run(wrap):
        kept = types.SimpleNamespace(items=[], queue=collections.deque(), numbers=set(), table={})

        def body(x):
            n = x.shape[0]
            kept.items.append({"n": [n]})
            kept.queue.append(n)
            kept.numbers.add(n)
            kept.table[n] = (n, (n, n))
            kept.ask = lambda: n
            return x * 2

        fn, seen = wrap(body), []
        for n in SIZES:
            fn(torch.ones(n))
            parts = (kept.items, kept.queue, sorted(kept.numbers), kept.table, kept.ask())
            seen.append(shown(parts))
        return seen

    assert run(lambda f: torch.compile(f, dynamic=dynamic)) == run(lambda f: f)


@pytest.mark.parametrize("dynamic", [None, True])
def test_errors_that_carry_sizes(dynamic):
    def body(x):
        if x.shape[0] > 3:
            raise ValueError("too long", x.shape[0])
        return x

    fn = torch.compile(body, dynamic=dynamic)
    for n in SIZES:
        if n > 3:
            with pytest.raises(ValueError) as caught:
                fn(torch.ones(n))
            assert shown(caught.value.args) == shown(("too long", n))
        else:
            assert fn(torch.ones(n)).tolist() == [1.0] * n
