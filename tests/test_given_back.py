"""Containers and values that a body hands back as it was given them are the caller's own."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import wengert as torch

Pair = namedtuple("Pair", "x rate")
KNOWN = (1, 2, (torch.ones(2), "a"))


@dataclass
class Batch:
    pair: tuple
    rest: object = None


def tensor():
    return torch.randint(-4, 5, (3,)).float()  # sums of which are exact


def fresh(*items):
    return items


def default(x, pair=(1, (2, 3))):
    return pair, pair[1], x * 2


def loss_and_grad(pair, w):
    loss = (pair[0] * w).sum()
    loss.backward()
    return pair, loss, w.grad


def step(batch, w):
    with torch.no_grad():
        w -= 0.1 * batch[0]
    return batch


BODIES = {
    "beside": (lambda pair, x: (pair, x * 2), lambda: (fresh(tensor(), tensor()), tensor())),
    "alone": (lambda pair: pair, lambda: (fresh(tensor(), 3),)),
    "floats": (lambda pair, x: (x * pair[0], pair), lambda: (fresh(np.random.rand(), 2), tensor())),
    "ints": (lambda pair, x: [pair, x * pair[1]], lambda: (fresh(3, 4), tensor())),
    "inner": (lambda pair, x: (pair[0], x * 2), lambda: (fresh(fresh(tensor(), "a"), 1), tensor())),
    "outer and inner": (lambda pair: (pair, pair[0]), lambda: (fresh(fresh(tensor()), 1),)),
    "all of it": (lambda pair, x: (pair[:], x + 1), lambda: (fresh(tensor(), 1), tensor())),
    "of a list": (lambda pairs, x: {"a": [pairs[1]], "x": x * 2},
                  lambda: ([fresh(1), fresh(tensor(), 2)], tensor())),
    "of a dict": (lambda d, x: (d["a"]["b"], x * 2),
                  lambda: ({"a": {"b": fresh(1.5, 2)}}, tensor())),
    "named": (lambda pair, x: (x * pair.rate, pair), lambda: (Pair(tensor(), 0.5), tensor())),
    "of a dataclass": (lambda b, x: (b.pair, x * 2),
                       lambda: (Batch(fresh(tensor(), 1.5)), tensor())),
    "twice": (lambda pair, x: (pair, [pair, x * 2]), lambda: (fresh(tensor(), 1), tensor())),
    "list": (lambda given, x: (given, x * 2), lambda: ([tensor(), 2.5], tensor())),
    "dict": (lambda given: {"given": given, "y": given["x"] * 2}, lambda: ({"x": tensor()},)),
    "dict of a list": (lambda given: (given[0], given[0]["x"] * 2), lambda: ([{"x": tensor()}],)),
    "ordered": (lambda given: (given, given["x"] * 2), lambda: (OrderedDict(x=tensor()),)),
    "of an ordered dict": (lambda d: (d["p"], d["x"] * 2),
                           lambda: (OrderedDict(x=tensor(), p=fresh(1, 2)),)),
    "dataclass": (lambda b: (b, b.rest * 2), lambda: (Batch(fresh(1), tensor()),)),
    "tuple with a list": (lambda t, x: (t, x * 2), lambda: (fresh([tensor()], 1), tensor())),
    "in a dataclass": (lambda pair, x: Batch(pair, x * 2), lambda: (fresh(1, 2), tensor())),
    "in a named one": (lambda pair, x: Pair(x * 2, pair), lambda: (fresh(1, 2), tensor())),
    "in a branch": (lambda pair, x: (pair, x) if x.sum() > 0 else (x, [pair], (x, x)),
                    lambda: (fresh(tensor(), 1), tensor())),
    "in one branch only": (lambda pair, x: (x, (x, pair[0])) if x.sum() > 0 else pair,
                           lambda: (fresh(tensor(), 1), tensor())),
    "item beside": (lambda pair, x: (pair, x.sum().item()), lambda: (fresh(tensor(), 1), tensor())),
    "backward": (loss_and_grad, lambda: (fresh(tensor()), tensor().requires_grad_())),
    "write": (step, lambda: (fresh(tensor(), "step"), tensor())),
    "history": (lambda pair, x: (pair, (pair[0] * x).sum()),
                lambda: (fresh(tensor().requires_grad_()), tensor())),
    "global": (lambda x: (KNOWN, KNOWN[2], x * 2), lambda: (tensor(),)),
    "constant": (lambda x: ((1, (2, 3)), x * 2), lambda: (tensor(),)),
    "default": (default, lambda: (tensor(),)),
    "default given": (default, lambda: (tensor(), fresh(1, fresh(2, 3)))),
    "other lengths": (lambda pair, x: (pair, x * len(pair)),
                      lambda: (fresh(*range(np.random.randint(2, 4))), tensor())),
    "sizes": (lambda size, x: (size, x * size[0]), lambda: (torch.Size([2, 3]), tensor())),
    "a text": (lambda text, x: (text, x * 2), lambda: ("".join(["a", "text"]), tensor())),
    "a large int": (lambda n, x: (n, x * n), lambda: (int("100000"), tensor())),
    "a range": (lambda n, x: (n, x * len(n)), lambda: (range(int("3")), tensor())),
    "any length": (lambda pair: (pair, pair[0] * 2),
                   lambda: (fresh(torch.randn(np.random.randint(2, 9))),)),
}  # fmt: skip


def assert_same(want, got, path=""):
    """Members that eager did not make are the same objects."""
    assert type(want) is type(got), path
    if isinstance(want, torch.Tensor):
        assert want.tolist() == got.tolist() and want.requires_grad == got.requires_grad
        return
    if isinstance(want, Batch):
        want, got = vars(want), vars(got)
    if isinstance(want, dict):
        assert [*want] == [*got]
        want, got = [*want.values()], [*got.values()]
    if isinstance(want, tuple | list):
        assert len(want) == len(got)
        for k, (a, b) in enumerate(zip(want, got)):
            assert_same(a, b, f"{path}[{k}]")
    else:
        assert want == got


def own_members(value):
    """Ids of the containers in a result, with where they are."""
    found = {}
    stack = [("", value)]
    while stack:
        path, value = stack.pop()
        found[path] = value
        if isinstance(value, Batch):
            value = vars(value)
        items = value.items() if isinstance(value, dict) else enumerate(value) if (
            isinstance(value, tuple | list)) else ()  # fmt: skip
        stack += [(f"{path}[{k}]", item) for k, item in items]
    return found


def copy_of(args):
    return [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a
            for a in args]  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_handed_back(name):
    body, make = BODIES[name]
    compiled = torch.compile(body)
    for _ in range(8):
        args = make()
        again = copy_of(args)  # which bodies write
        want, want_twice, got = body(*args), body(*copy_of(args)), compiled(*again)
        assert_same(want, got)
        first, second, found = own_members(want), own_members(want_twice), own_members(got)
        for path, value in first.items():
            if value is second[path] and not any(value is a for a in args):  # eager made none
                assert found[path] is value, path
        for path, value in found.items():
            index = next((k for k, a in enumerate(args) if a is first[path]), None)
            assert index is None or value is again[index], path
    assert not compiled.refusals and any(t.hits for ts in compiled.traces.values() for t in ts)


def test_by_keyword():
    compiled = torch.compile(lambda x, **options: (options["pair"], x * 2))
    for _ in range(4):
        pair, x = fresh(1, 2), tensor()
        assert compiled(x, pair=pair)[0] is pair
        assert compiled(pair=pair, x=x)[0] is pair


def test_which_of_two_that_were_one():
    """A call that was recorded with one tuple in two places tells nothing of others."""
    compiled = torch.compile(lambda a, b, x: (b, x * 2))
    one = fresh(1, 2)
    for first, second in [(one, one)] * 2 + [(fresh(1, 2), fresh(1, 2)) for _ in range(4)]:
        assert compiled(first, second, tensor())[0] is second
    assert len(compiled.traces) == 2
    for _ in range(3):  # another that is there twice needs no new trace
        one = fresh(1, 2)
        assert compiled(one, one, tensor())[0] is one
    assert len(compiled.traces) == 2


def test_one_that_the_body_knows():
    compiled = torch.compile(lambda pair, x: (KNOWN, x * 2))
    first = compiled(KNOWN, tensor())
    assert first[0] is KNOWN
    for _ in range(4):
        assert compiled(fresh(*KNOWN), tensor())[0] is KNOWN
    given = torch.compile(lambda pair, x: (pair, x * 2) if KNOWN else None)
    for pair in (KNOWN, KNOWN, fresh(*KNOWN), fresh(*KNOWN), KNOWN):
        assert given(pair, tensor())[0] is pair


def test_a_constant_number_is_not_the_argument():
    number = 1.25
    compiled = torch.compile(lambda x, rate: (x * rate, number))
    for rate in (number, 2.5, 3.5, 4.5):
        assert compiled(torch.ones(1), rate) == (torch.full((1,), rate), number)


def test_one_graph():
    compiled = torch.compile(lambda batch: (batch, batch["x"] * 2), fullgraph=True)
    for _ in range(4):
        batch = {"x": tensor()}
        assert compiled(batch)[0] is batch
