"""Scenarios that run with eager functions and with compiled ones, and what they may observe.

A scenario gets `wrap`, which is `compile` or nothing, and returns what can be observed. Compiling
never changes meaning: both must be the same.
"""

import dataclasses

import numpy as np
import pytest
import wengert as torch
from wengert import nn


class Scenarios(list):
    """Collects scenarios: a decorator, and what the test is parametrised by."""

    def __call__(self, function):
        self.append(function)
        return function


def check(run):
    """Runs a scenario both ways."""
    torch.manual_seed(0)
    want = plain(run(lambda f, **options: f))
    torch.manual_seed(0)
    got = plain(run(torch.compile))
    assert close(got, want), f"\ncompiled: {got}\neager:    {want}"


def plain(value):
    if isinstance(value, torch.Tensor):
        history = None if value.grad_fn is None else "history"
        return ("tensor", str(value.dtype), tuple(value.shape), value.requires_grad, history,
                value.detach().tolist())  # fmt: skip
    if isinstance(value, np.ndarray):
        return ("array", value.dtype.name, value.tolist())
    if isinstance(value, tuple | list):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return [type(value).__name__, *((k, plain(v)) for k, v in value.items())]
    if dataclasses.is_dataclass(value):
        return [type(value).__name__, plain(vars(value))]
    if isinstance(value, BaseException):
        return (type(value).__name__, str(value).split("\n")[0])
    return value


def close(a, b):
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float | complex) and isinstance(b, float | complex):
        return a == b or a == pytest.approx(b, rel=2e-4, abs=2e-5, nan_ok=True)
    return a == b


def grads_of(*tensors):
    return [None if t.grad is None else t.grad.clone() for t in tensors]


def data(*shape, k=0, grad=False):
    generator = np.random.default_rng(k)
    made = torch.tensor(generator.standard_normal(shape).astype(np.float32))
    return made.requires_grad_(grad)


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return error


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.4)
        self.last = nn.Linear(6, 2)
        self.scale = 1.0

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x))))) * self.scale


def filled(module, k=5):
    generator = np.random.default_rng(k)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.tensor(generator.standard_normal(tuple(p.shape)).astype(np.float32)))
    return module
