"""Training steps written once against torch's API: a model, an optimizer, one batch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from cases import Case, array, labels, weights


def fill(T: Any, model: Any) -> None:
    """The same weights in every system, whatever its initialisation."""
    parameters = list(model.parameters())
    with T.no_grad():
        for parameter, values in zip(parameters, weights([tuple(p.shape) for p in parameters])):
            parameter.copy_(T.from_numpy(values))


def training(T: Any, compiled: bool, model: Any, optimizer: Any, loss: Any, *batch: Any) -> Case:
    """A whole training step: zero_grad, forward, backward, update.

    wengert compiles it as a whole. torch.compile cannot look through backward(): it is given the
    loss and the update, as its documentation advises.
    """
    fill(T, model)
    parts = compiled and T.__name__ == "torch"
    last: list[Any] = [None]

    def value_of(x: Any, y: Any) -> Any:
        return loss(model(x), y)

    value_of = T.compile(value_of) if parts else value_of
    update = T.compile(optimizer.step) if parts else optimizer.step

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        value = value_of(x, y)
        value.backward()
        update()
        return value

    run = T.compile(step) if compiled and not parts else step
    inputs = [T.from_numpy(values) for values in batch]

    def once() -> None:
        last[0] = run(*inputs)

    return Case(once, lambda: float(last[0]), run)


def mlp(T: Any, sizes: list[int], activation: Any) -> Any:
    layers: list[Any] = []
    for before, after in pairwise(sizes):
        layers += [T.nn.Linear(before, after), activation()]
    return T.nn.Sequential(*layers[:-1])


def mlp_small(T: Any, compiled: bool, batch: int = 16, width: int = 16) -> Case:
    model = mlp(T, [8, width, 1], T.nn.Tanh)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    return training(T, compiled, model, optimizer, T.nn.functional.mse_loss, array(batch, 8),
                    array(batch, 1, seed=3))  # fmt: skip


def mlp_mnist(T: Any, compiled: bool, batch: int = 128) -> Case:
    model = mlp(T, [784, 512, 256, 10], T.nn.ReLU)
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    return training(T, compiled, model, optimizer, T.nn.functional.cross_entropy,
                    array(batch, 784), labels(batch, 10))  # fmt: skip


def mlp_deep(T: Any, compiled: bool, batch: int = 32, width: int = 64, depth: int = 8) -> Case:
    model = mlp(T, [width] * (depth + 1), T.nn.Tanh)
    optimizer = T.optim.SGD(model.parameters(), lr=0.01)
    return training(T, compiled, model, optimizer, T.nn.functional.mse_loss, array(batch, width),
                    array(batch, width, seed=3))  # fmt: skip


def lenet(T: Any, compiled: bool, batch: int = 64) -> Case:
    nn = T.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 10),
    )  # fmt: skip
    optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(T, compiled, model, optimizer, nn.functional.cross_entropy,
                    array(batch, 1, 28, 28), labels(batch, 10))  # fmt: skip


def resnet_block(T: Any, compiled: bool, batch: int = 8, channels: int = 32,
                 size: int = 16) -> Case:  # fmt: skip
    nn = T.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(channels)

        def forward(self, x: Any) -> Any:
            h = self.norm1(self.conv1(x)).relu()
            return (self.norm2(self.conv2(h)) + x).relu()

    model = Block()
    optimizer = T.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    shape = (batch, channels, size, size)
    return training(T, compiled, model, optimizer, nn.functional.mse_loss, array(*shape),
                    array(*shape, seed=5))  # fmt: skip


def transformer_block(T: Any, compiled: bool, batch: int = 8, length: int = 64, width: int = 128,
                      depth: int = 1) -> Case:  # fmt: skip
    nn, functional = T.nn, T.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            parts = self.qkv(self.first(x)).view(batch, length, 3, 4, width // 4)
            q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.second(x))))

    model = nn.Sequential(*[Block() for _ in range(depth)])
    optimizer = T.optim.AdamW(model.parameters(), lr=1e-3)
    shape = (batch, length, width)
    return training(T, compiled, model, optimizer, functional.mse_loss, array(*shape),
                    array(*shape, seed=5))  # fmt: skip


def recurrent(T: Any, compiled: bool, cell: Any, length: int, batch: int, width: int) -> Case:
    """A cell unrolled by hand over a sequence; the last state is read out."""
    nn = T.nn

    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.head = cell(32, width), nn.Linear(width, 1)

        def forward(self, x: Any) -> Any:
            state = x.new_zeros(batch, width)
            if cell is nn.LSTMCell:
                state = (state, x.new_zeros(batch, width))
            for item in x.unbind(0):
                state = self.cell(item, state)
            return self.head(state[0] if cell is nn.LSTMCell else state)

    model = Unrolled()
    optimizer = T.optim.Adam(model.parameters(), lr=1e-3)
    return training(T, compiled, model, optimizer, nn.functional.mse_loss,
                    array(length, batch, 32), array(batch, 1, seed=3))  # fmt: skip


def lstm(T: Any, compiled: bool, length: int = 20, batch: int = 16, width: int = 64) -> Case:
    return recurrent(T, compiled, T.nn.LSTMCell, length, batch, width)


def gru(T: Any, compiled: bool, length: int = 20, batch: int = 16, width: int = 64) -> Case:
    return recurrent(T, compiled, T.nn.GRUCell, length, batch, width)
