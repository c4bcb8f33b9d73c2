"""Compiling never changes meaning: what Python sees of tensors besides their values."""

import pytest
import wengert as torch
from scenarios import Scenarios, check, data
from wengert import nn

scenario = Scenarios()


@scenario
def classes_of_arguments(wrap):
    f = wrap(lambda x: x * 2 if isinstance(x, nn.Parameter) else x + 1)
    named = wrap(lambda x: (type(x).__name__, x * 2))
    kinds = [lambda: data(3), lambda: nn.Parameter(data(3)), lambda: data(3, grad=True)]
    return [(f(kind()), named(kind())) for kind in (*kinds, *kinds, *reversed(kinds))]


@pytest.mark.parametrize("run", scenario, ids=lambda run: run.__name__)
def test_scenario(run):
    check(run)


def test_the_class_of_an_argument_is_named():
    f = torch.compile(lambda x: x * 2)
    f(data(3, grad=True))
    f(nn.Parameter(data(3)))
    assert "requires grad a Parameter" in f.explain()
