"""Kernels and training steps written once against torch's API; `T` is torch or wengert.

A workload is a function of (T, compiled, **sizes) that returns a Case of forward and backward; the
training steps are in models.py.
"""

from __future__ import annotations

from typing import Any

from cases import Case, array, labels
from models import (  # noqa: F401
    fill,
    gru,
    lenet,
    lstm,
    mlp_deep,
    mlp_mnist,
    mlp_small,
    resnet_block,
    transformer_block,
)


def tensor(T: Any, *shape: int, seed: int = 0, grad: bool = False) -> Any:
    return T.from_numpy(array(*shape, seed=seed)).requires_grad_(grad)


def pure(T: Any, compiled: bool, function: Any, leaves: list[Any], seed: Any = None) -> Case:
    """Forward and backward of a function of leaves; `seed` is the gradient of its result."""
    run = T.compile(function) if compiled else function

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        run(*leaves).backward(seed)

    return Case(step, lambda: float(leaves[0].grad.abs().sum()), run)


def dispatch(T: Any, compiled: bool, size: int = 4) -> Case:
    a, b = tensor(T, size, grad=True), tensor(T, size, seed=1, grad=True)
    return pure(T, compiled, lambda a, b: a + b, [a, b], tensor(T, size, seed=7))


def value_loop(T: Any, compiled: bool, size: int = 16) -> Case:
    def function(x: Any) -> Any:
        y = x * 2
        while y.data.norm() < 1000:
            y = y * 2
        return y

    return pure(T, compiled, function, [tensor(T, size, grad=True)], tensor(T, size, seed=7))


def pointwise(T: Any, compiled: bool, size: int = 1024) -> Case:
    leaves = [tensor(T, size, size, seed=k, grad=True) for k in range(3)]
    gelu = T.nn.functional.gelu

    def function(x: Any, w: Any, b: Any) -> Any:
        return gelu(x * w + b, approximate="tanh") * x

    return pure(T, compiled, function, leaves, tensor(T, size, size, seed=7))


def softmax_cross_entropy(T: Any, compiled: bool, rows: int = 512, classes: int = 1000) -> Case:
    x, y = tensor(T, rows, classes, grad=True), T.from_numpy(labels(rows, classes))
    return pure(T, compiled, lambda x: T.nn.functional.cross_entropy(x, y), [x])


def layer_norm(T: Any, compiled: bool, rows: int = 512, width: int = 768) -> Case:
    leaves = [tensor(T, rows, width, grad=True), tensor(T, width, seed=1, grad=True),
              tensor(T, width, seed=2, grad=True)]  # fmt: skip
    norm = T.nn.functional.layer_norm
    return pure(T, compiled, lambda x, w, b: norm(x, (width,), w, b), leaves,
                tensor(T, rows, width, seed=7))  # fmt: skip


def matmul(T: Any, compiled: bool, size: int = 256) -> Case:
    a, b = tensor(T, size, size, grad=True), tensor(T, size, size, seed=1, grad=True)
    return pure(T, compiled, lambda a, b: a @ b, [a, b], tensor(T, size, size, seed=7))


def gradient_penalty(T: Any, compiled: bool, batch: int = 64, width: int = 64) -> Case:
    """Double backward; torch.compile takes it in the form of torch.func only."""
    model = T.nn.Sequential(T.nn.Linear(16, width), T.nn.Tanh(), T.nn.Linear(width, 1))
    fill(T, model)
    by_function = compiled and T.__name__ == "torch"

    def function(x: Any) -> Any:
        if by_function:
            slope = T.func.grad(lambda x: model(x).sum())(x)
        else:
            (slope,) = T.autograd.grad(model(x).sum(), x, create_graph=True)
        return ((slope.pow(2).sum(1) + 1e-6).sqrt() - 1).pow(2).mean()

    return pure(T, compiled, function, [tensor(T, batch, 16, grad=True)])


def chain(T: Any, compiled: bool, layers: int = 100) -> Case:
    """A graph of ten recorded ops a layer, layers of sixteen kinds: for compile times."""
    scale = tensor(T, 8, 8, seed=1, grad=True)

    def function(x: Any) -> Any:
        for k in range(layers):
            part = x.sum(0, keepdim=True).sin() / (k % 16 + 1)
            x = (x @ scale).tanh() * (1 + k % 16 / 16) + part * 0.1
        return x.sum()

    return pure(T, compiled, function, [tensor(T, 8, 8, grad=True)])
