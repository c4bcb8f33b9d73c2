"""What the lines of the catalogue of errors are written in."""

import numpy as np
import wengert as torch
from wengert import distributions as dist
from wengert import nn, optim
from wengert.nn import functional as F
from wengert.utils import data

__all__ = ["F", "data", "dist", "nn", "np", "optim", "torch"]


def t(*shape, requires_grad=False):
    """Ones."""
    return torch.ones(shape, requires_grad=requires_grad)


def i(*values):
    """Integers."""
    return torch.tensor(values)


def leaf():
    return torch.ones(2, requires_grad=True)


def param(grad):
    made = leaf()
    made.grad = torch.full((2,), grad)
    return made


def sgd():
    return optim.SGD([t(2)], lr=0.1)


def put(x, index, value):
    x[index] = value


def set_attribute(owner, name, value):
    setattr(owner, name, value)
    return owner


def give_data(x, value):
    x.data = value


def give_grad(x, value):
    x.grad = value


def twice(y):
    y.backward()
    y.backward()


def change(make):
    y = make()
    y.add_(1)
    y.sum().backward()


def traced(function):
    compiled = torch.compile(function)
    for _ in range(2):
        compiled(t(2))
    return compiled
