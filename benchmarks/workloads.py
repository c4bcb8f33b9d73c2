"""Training steps and kernels written once against torch's API; `T` is torch or wengert.

Each workload is a function of (T, compiled) that returns (step, loss): `step()` runs a forward and
backward (and update), `loss()` reads a number that all systems must agree on.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def tensor(T: Any, *shape: int, seed: int = 0, grad: bool = False, scale: float = 1.0) -> Any:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * scale
    made = T.from_numpy(values)
    return made.requires_grad_(True) if grad else made


def labels(T: Any, count: int, classes: int) -> Any:
    return T.from_numpy(np.random.default_rng(9).integers(0, classes, count))


def fill(model: Any, T: Any) -> None:
    """The same weights in every system, whatever its initialisation."""
    with T.no_grad():
        for k, parameter in enumerate(model.parameters()):
            scale = 1.0 / max(1, parameter.shape[-1]) ** 0.5
            parameter.copy_(tensor(T, *parameter.shape, seed=100 + k, scale=scale))


def pure(T: Any, compiled: bool, function: Any, leaves: list[Any], seed: Any = None) -> Any:
    """Forward and backward of a function of leaves; `seed` is the gradient of its result."""
    run = T.compile(function) if compiled else function
    last: list[Any] = [None]

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        last[0] = run(*leaves)
        last[0].backward(seed)

    return step, lambda: float(leaves[0].grad.abs().sum())


def training(T: Any, compiled: bool, model: Any, optimizer: Any, x: Any, y: Any, loss: Any) -> Any:
    """A whole training step: zero_grad, forward, backward, update."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value

    run = T.compile(step) if compiled and T.__name__ == "wengert" else step
    if compiled and T.__name__ != "wengert":  # torch.compile takes the model, as its users do
        model = T.compile(model)
    last: list[Any] = [None]

    def once() -> None:
        last[0] = run(x, y)

    return once, lambda: float(last[0])


# --- kernels -------------------------------------------------------------------------------------


def pointwise(T: Any, compiled: bool) -> Any:
    x, w, b = (tensor(T, 1024, 1024, seed=k, grad=True) for k in range(3))
    gelu = T.nn.functional.gelu

    def function(x: Any, w: Any, b: Any) -> Any:
        return gelu(x * w + b, approximate="tanh") * x

    return pure(T, compiled, function, [x, w, b], tensor(T, 1024, 1024, seed=7))


def softmax_cross_entropy(T: Any, compiled: bool) -> Any:
    x, y = tensor(T, 512, 1000, grad=True), labels(T, 512, 1000)
    return pure(T, compiled, lambda x: T.nn.functional.cross_entropy(x, y), [x])


def layer_norm(T: Any, compiled: bool) -> Any:
    x, w, b = tensor(T, 512, 768, grad=True), tensor(T, 768, grad=True), tensor(T, 768, grad=True)
    function = T.nn.functional.layer_norm
    return pure(T, compiled, lambda x, w, b: function(x, (768,), w, b), [x, w, b],
                tensor(T, 512, 768, seed=7))  # fmt: skip


def matmul(size: int) -> Any:
    def build(T: Any, compiled: bool) -> Any:
        a, b = tensor(T, size, size, grad=True), tensor(T, size, size, seed=1, grad=True)
        return pure(T, compiled, lambda a, b: a @ b, [a, b], tensor(T, size, size, seed=7))

    return build


def dispatch(T: Any, compiled: bool) -> Any:
    a, b = tensor(T, 4, grad=True), tensor(T, 4, seed=1, grad=True)
    return pure(T, compiled, lambda a, b: a + b, [a, b], tensor(T, 4, seed=7))


def value_loop(T: Any, compiled: bool) -> Any:
    x = tensor(T, 16, grad=True)

    def function(x: Any) -> Any:
        y = x * 2
        while y.data.norm() < 1000:
            y = y * 2
        return y

    return pure(T, compiled, function, [x], tensor(T, 16, seed=7))


def gradient_penalty(T: Any, compiled: bool) -> Any:
    model = T.nn.Sequential(T.nn.Linear(16, 64), T.nn.Tanh(), T.nn.Linear(64, 1))
    fill(model, T)
    x = tensor(T, 64, 16, grad=True)

    def function(x: Any) -> Any:
        (grad,) = T.autograd.grad(model(x).sum(), x, create_graph=True)
        return ((grad.pow(2).sum(1) + 1e-6).sqrt() - 1).pow(2).mean()

    return pure(T, compiled and T.__name__ == "wengert", function, [x])


# --- models --------------------------------------------------------------------------------------


def mlp_small(T: Any, compiled: bool) -> Any:
    nn = T.nn
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    fill(model, T)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    return training(T, compiled, model, optimizer, tensor(T, 16, 8), tensor(T, 16, 1, seed=3),
                    nn.functional.mse_loss)  # fmt: skip


def mlp_mnist(T: Any, compiled: bool) -> Any:
    nn = T.nn
    layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10)]
    model = nn.Sequential(*layers)
    fill(model, T)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    return training(T, compiled, model, optimizer, tensor(T, 128, 784), labels(T, 128, 10),
                    nn.functional.cross_entropy)  # fmt: skip


def lenet(T: Any, compiled: bool) -> Any:
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10),
    )  # fmt: skip
    fill(model, T)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(T, compiled, model, optimizer, tensor(T, 64, 1, 28, 28), labels(T, 64, 10),
                    nn.functional.cross_entropy)  # fmt: skip


def transformer_block(T: Any, compiled: bool) -> Any:
    nn, functional = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(128), nn.LayerNorm(128)
            self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)
            self.up, self.down = nn.Linear(128, 512), nn.Linear(512, 128)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.qkv(self.first(x)).view(batch, length, 3, 4, width // 4)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    model = Block()
    fill(model, T)
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    target = tensor(T, 8, 64, 128, seed=5)
    return training(T, compiled, model, optimizer, tensor(T, 8, 64, 128), target,
                    functional.mse_loss)  # fmt: skip


def lstm(T: Any, compiled: bool) -> Any:
    nn = T.nn

    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = nn.LSTMCell(32, 64), nn.Linear(64, 1)

        def forward(self, x: Any) -> Any:
            h, c = x.new_zeros(16, 64), x.new_zeros(16, 64)
            for step in x.unbind(0):
                h, c = self.cell(step, (h, c))
            return self.head(h)

    model = Unrolled()
    fill(model, T)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    return training(T, compiled, model, optimizer, tensor(T, 20, 16, 32),
                    tensor(T, 16, 1, seed=3), nn.functional.mse_loss)  # fmt: skip


WORKLOADS: dict[str, Any] = {
    "dispatch": dispatch,
    "value_loop": value_loop,
    "pointwise": pointwise,
    "softmax_cross_entropy": softmax_cross_entropy,
    "layer_norm": layer_norm,
    "matmul_64": matmul(64),
    "matmul_256": matmul(256),
    "matmul_1024": matmul(1024),
    "mlp_small": mlp_small,
    "mlp_mnist": mlp_mnist,
    "lenet": lenet,
    "transformer_block": transformer_block,
    "lstm": lstm,
    "gradient_penalty": gradient_penalty,
}
