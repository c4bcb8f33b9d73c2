"""Containers with floats among arguments: what a body hands back or keeps is the caller's own."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import wengert as torch


@dataclass
class State:
    x: torch.Tensor
    rate: float = 0.5


def step(state):
    state.x = state.x * state.rate
    return state


def pair(state):
    return [state, state.x * 2], (state, 1)


KEPT = SimpleNamespace()


def keep(state):
    KEPT.state = state
    return state.x * state.rate


def keep_and_raise(state):
    KEPT.state = state
    raise ValueError


@pytest.mark.parametrize("body", [step, pair])
def test_handed_back(body):
    for rate in (0.5, 0.25):
        compiled = torch.compile(body)
        for _ in range(3):
            want, got = State(torch.ones(2), rate), State(torch.ones(2), rate)
            found = compiled(got)
            body(want)
            if body is pair:
                assert found[0][0] is got and found[1][0] is got
            else:
                assert found is got
            assert got.x.tolist() == want.x.tolist() and type(got.rate) is float


@pytest.mark.parametrize("make", [lambda x: [x, 1.5], lambda x: {"x": x, "rate": 1.5}])
def test_lists_and_dicts(make):
    compiled = torch.compile(lambda given: given)
    for _ in range(3):
        given = make(torch.ones(2))
        assert compiled(given) is given


@pytest.mark.parametrize("body", [keep, keep_and_raise])
def test_kept(body):
    compiled = torch.compile(body)
    for _ in range(4):
        state = State(torch.ones(2), 1.5)
        try:
            assert compiled(state).tolist() == [1.5, 1.5]
        except ValueError:
            assert body is keep_and_raise
        assert KEPT.state is state and type(state.rate) is float


def test_tuples_keep_their_floats_as_data():
    compiled = torch.compile(lambda pair: [pair, pair[0] * pair[1]])
    for rate in (1.5, 2.5, 3.5):
        given, product = compiled((torch.ones(2), rate))
        assert given[1] == rate and product.tolist() == [rate, rate]


LOG = []


def test_beside_numbers():
    @torch.compile
    def body(x, given, rate):
        LOG.append(rate * 2)
        given["n"] = rate + 1
        return x * rate, rate, LOG, given

    for k in range(4):
        given = {"rate": 0.5}
        found = body(torch.ones(2), given, k * 0.5)
        assert found[1:] == (k * 0.5, LOG, given)
        assert found[2] is LOG and found[3] is given
        assert {type(item) for item in (*LOG, *given.values())} == {float}
    assert LOG == [0.0, 1.0, 2.0, 3.0]
