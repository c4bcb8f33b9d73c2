"""The workloads in JAX, as its users write them: one jax.jit over the whole step, state donated.

Dense weights are (in, out), images NHWC; recurrent cells run under lax.scan. The data-dependent
loop reads values, so it runs op by op under jax.vjp.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from cases import Case, array, labels, weights
from jax import lax


def pure(function: Any, leaves: list[Any], seed: Any = None) -> Case:
    """Forward and backward of a function of leaves; `seed` is the gradient of its result."""

    @jax.jit
    def run(seed: Any, *leaves: Any) -> Any:
        value, pull = jax.vjp(function, *leaves)
        return value, pull(jnp.ones_like(value) if seed is None else seed)

    return kept(
        partial(run, None if seed is None else jnp.asarray(seed), *map(jnp.asarray, leaves))
    )


def kept(run: Any) -> Case:
    last: list[Any] = [None]

    def step() -> None:
        last[0] = jax.block_until_ready(run())

    return Case(step, lambda: float(jnp.abs(last[0][1][0]).sum()))


def training(loss: Any, parameters: Any, optimizer: Any, *batch: Any) -> Case:
    """A whole training step; `loss` is a function of (parameters, *batch)."""
    start, update = optimizer
    parameters = jax.tree.map(jnp.asarray, parameters)
    inputs = [jnp.asarray(values) for values in batch]

    @partial(jax.jit, donate_argnums=(0, 1))
    def run(parameters: Any, state: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(parameters, *batch)
        return value, *update(parameters, grads, state)

    held = [None, parameters, start(parameters)]

    def step() -> None:
        held[:] = jax.block_until_ready(run(held[1], held[2], *inputs))

    return Case(step, lambda: float(held[0]))  # type: ignore[arg-type]


# --- optimizers ----------------------------------------------------------------------------------


def sgd(rate: float, momentum: float = 0.0) -> Any:
    def start(parameters: Any) -> Any:
        return jax.tree.map(jnp.zeros_like, parameters) if momentum else None

    def update(parameters: Any, grads: Any, state: Any) -> Any:
        if momentum:
            grads = state = jax.tree.map(lambda v, g: momentum * v + g, state, grads)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, grads), state

    return start, update


def adam(rate: float, decay: float = 0.0) -> Any:
    def start(parameters: Any) -> Any:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return zeros, jax.tree.map(jnp.zeros_like, parameters), jnp.zeros(())

    def update(parameters: Any, grads: Any, state: Any) -> Any:
        mean, square, count = state
        count = count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
        square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, square, grads)

        def moved(p: Any, m: Any, v: Any) -> Any:
            scaled = jnp.sqrt(v / (1 - 0.999**count)) + 1e-8
            return p * (1 - rate * decay) - rate * (m / (1 - 0.9**count)) / scaled

        return jax.tree.map(moved, parameters, mean, square), (mean, square, count)

    return start, update


# --- kernels -------------------------------------------------------------------------------------


def dispatch(size: int = 4) -> Case:
    return pure(lambda a, b: a + b, [array(size), array(size, seed=1)], array(size, seed=7))


def value_loop(size: int = 16) -> Case:
    x, seed = jnp.asarray(array(size)), jnp.asarray(array(size, seed=7))

    def function(x: Any) -> Any:
        y = x * 2
        while jnp.linalg.norm(lax.stop_gradient(y)) < 1000:
            y = y * 2
        return y

    def run() -> Any:
        value, pull = jax.vjp(function, x)
        return value, pull(seed)

    return kept(run)


def pointwise(size: int = 1024) -> Case:
    leaves = [array(size, size, seed=k) for k in range(3)]
    return pure(lambda x, w, b: jax.nn.gelu(x * w + b, approximate=True) * x, leaves,
                array(size, size, seed=7))  # fmt: skip


def cross_entropy(logits: Any, y: Any) -> Any:
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1)
    return -jnp.mean(picked)


def softmax_cross_entropy(rows: int = 512, classes: int = 1000) -> Case:
    y = jnp.asarray(labels(rows, classes))
    return pure(lambda x: cross_entropy(x, y), [array(rows, classes)])


def normal(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * w + b


def layer_norm(rows: int = 512, width: int = 768) -> Case:
    leaves = [array(rows, width), array(width, seed=1), array(width, seed=2)]
    return pure(normal, leaves, array(rows, width, seed=7))


def matmul(size: int = 256) -> Case:
    leaves = [array(size, size), array(size, size, seed=1)]
    return pure(lambda a, b: a @ b, leaves, array(size, size, seed=7))


def gradient_penalty(batch: int = 64, width: int = 64) -> Case:
    w1, b1, w2, b2 = map(jnp.asarray, dense([16, width, 1]))

    def function(x: Any) -> Any:
        slope = jax.grad(lambda x: (jnp.tanh(x @ w1 + b1) @ w2 + b2).sum())(x)
        return jnp.mean((jnp.sqrt((slope**2).sum(1) + 1e-6) - 1) ** 2)

    return pure(function, [array(batch, 16)])


# --- models --------------------------------------------------------------------------------------


def dense(sizes: list[int]) -> list[Any]:
    """Weights (in, out) and biases of a stack of dense layers."""
    shapes: list[tuple[int, ...]] = []
    for before, after in pairwise(sizes):
        shapes += [(after, before), (after,)]
    return [w.T if w.ndim == 2 else w for w in weights(shapes)]


def mlp(parameters: Any, x: Any, activation: Any) -> Any:
    for k in range(0, len(parameters) - 2, 2):
        x = activation(x @ parameters[k] + parameters[k + 1])
    return x @ parameters[-2] + parameters[-1]


def squared(a: Any, b: Any) -> Any:
    return jnp.mean((a - b) ** 2)


def mlp_small(batch: int = 16, width: int = 16) -> Case:
    return training(lambda p, x, y: squared(mlp(p, x, jnp.tanh), y), dense([8, width, 1]),
                    sgd(0.01), array(batch, 8), array(batch, 1, seed=3))  # fmt: skip


def mlp_mnist(batch: int = 128) -> Case:
    return training(lambda p, x, y: cross_entropy(mlp(p, x, jax.nn.relu), y),
                    dense([784, 512, 256, 10]), adam(1e-3), array(batch, 784),
                    labels(batch, 10))  # fmt: skip


def mlp_deep(batch: int = 32, width: int = 64, depth: int = 8) -> Case:
    return training(lambda p, x, y: squared(mlp(p, x, jnp.tanh), y), dense([width] * (depth + 1)),
                    sgd(0.01), array(batch, width), array(batch, width, seed=3))  # fmt: skip


def conv(x: Any, w: Any, padding: str) -> Any:
    return lax.conv_general_dilated(
        x, w, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def images(values: Any) -> Any:
    return values.transpose(0, 2, 3, 1)


def filters(values: Any) -> Any:
    return values.transpose(2, 3, 1, 0)


def lenet(batch: int = 64) -> Case:
    shapes = [(6, 1, 5, 5), (6,), (16, 6, 5, 5), (16,), (120, 400), (120,), (10, 120), (10,)]
    p = weights(shapes)  # type: ignore[arg-type]
    # the first dense layer sees channels last here, so its inputs are put in that order
    first = p[4].reshape(120, 16, 5, 5).transpose(2, 3, 1, 0).reshape(400, 120)
    p = [filters(p[0]), p[1], filters(p[2]), p[3], first, p[5], p[6].T, p[7]]

    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def loss(p: Any, x: Any, y: Any) -> Any:
        h = pooled(jax.nn.relu(conv(x, p[0], "SAME") + p[1]))
        h = pooled(jax.nn.relu(conv(h, p[2], "VALID") + p[3]))
        return cross_entropy(mlp(p[4:], h.reshape(len(h), -1), jax.nn.relu), y)

    return training(loss, p, sgd(0.01, 0.9), images(array(batch, 1, 28, 28)), labels(batch, 10))


def resnet_block(batch: int = 8, channels: int = 32, size: int = 16) -> Case:
    c = channels
    p = weights([(c, c, 3, 3), (c,), (c,), (c, c, 3, 3), (c,), (c,)])
    p[0], p[3] = filters(p[0]), filters(p[3])
    running = [jnp.zeros(c), jnp.ones(c), jnp.zeros(c), jnp.ones(c)]  # donated: no two alike

    def norm(x: Any, w: Any, b: Any) -> Any:
        mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        return (x - mean) * lax.rsqrt(variance + 1e-5) * w + b, [mean, variance]

    def loss(held: Any, x: Any, y: Any) -> Any:
        p, before = held
        h, one = norm(conv(x, p[0], "SAME"), p[1], p[2])
        h, two = norm(conv(jax.nn.relu(h), p[3], "SAME"), p[4], p[5])
        seen = [0.9 * old + 0.1 * new for old, new in zip(before, one + two)]
        return squared(jax.nn.relu(h + x), y), seen

    return with_statistics(loss, p, running, sgd(0.01, 0.9), images(array(batch, c, size, size)),
                           images(array(batch, c, size, size, seed=5)))  # fmt: skip


def with_statistics(loss: Any, parameters: Any, running: Any, optimizer: Any, *batch: Any) -> Case:
    """A training step whose loss also returns new running statistics."""
    start, update = optimizer
    inputs = [jnp.asarray(values) for values in batch]

    @partial(jax.jit, donate_argnums=(0, 1, 2))
    def run(p: Any, running: Any, state: Any, *batch: Any) -> Any:
        graded = jax.value_and_grad(lambda p: loss((p, running), *batch), has_aux=True)
        (value, running), grads = graded(p)
        p, state = update(p, grads, state)
        return value, p, running, state

    parameters = jax.tree.map(jnp.asarray, parameters)
    held = [None, parameters, running, start(parameters)]

    def step() -> None:
        held[:] = jax.block_until_ready(run(*held[1:], *inputs))

    return Case(step, lambda: float(held[0]))  # type: ignore[arg-type]


def transformer_block(batch: int = 8, length: int = 64, width: int = 128, depth: int = 1) -> Case:
    w, heads = width, 4
    shapes = [(w,), (w,), (w,), (w,), (3 * w, w), (3 * w,), (w, w), (w,), (4 * w, w), (4 * w,),
              (w, 4 * w), (w,)]  # fmt: skip
    flat = [a.T if a.ndim == 2 else a for a in weights(shapes * depth)]  # type: ignore[arg-type]
    blocks = [flat[k : k + 12] for k in range(0, len(flat), 12)]

    def block(p: Any, x: Any) -> Any:
        parts = (normal(x, p[0], p[1]) @ p[4] + p[5]).reshape(batch, length, 3, heads, w // heads)
        q, k, v = (parts[:, :, i] for i in range(3))
        mixed = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        x = x + mixed.reshape(batch, length, w) @ p[6] + p[7]
        h = jax.nn.gelu(normal(x, p[2], p[3]) @ p[8] + p[9], approximate=False)
        return x + h @ p[10] + p[11]

    def loss(blocks: Any, x: Any, y: Any) -> Any:
        for p in blocks:
            x = block(p, x)
        return squared(x, y)

    shape = (batch, length, w)
    return training(loss, blocks, adam(1e-3, 0.01), array(*shape), array(*shape, seed=5))


def recurrent(cell: Any, gates: int, start: Any, length: int, batch: int, width: int) -> Case:
    """A cell under lax.scan; the first part of its last state is read out."""
    shapes = [(gates * width, 32), (gates * width, width), (gates * width,), (gates * width,),
              (1, width), (1,)]  # fmt: skip
    p = [a.T if a.ndim == 2 else a for a in weights(shapes)]  # type: ignore[arg-type]

    def loss(p: Any, x: Any, y: Any) -> Any:
        state, _ = lax.scan(lambda state, item: (cell(p, item, state), None), start, x)
        return squared(state[0] @ p[4] + p[5], y)

    return training(loss, p, adam(1e-3), array(length, batch, 32), array(batch, 1, seed=3))


def lstm(length: int = 20, batch: int = 16, width: int = 64) -> Case:
    def cell(p: Any, x: Any, state: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(x @ p[0] + p[2] + h @ p[1] + p[3], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c

    zeros = jnp.zeros((batch, width))
    return recurrent(cell, 4, (zeros, zeros), length, batch, width)


def gru(length: int = 20, batch: int = 16, width: int = 64) -> Case:
    def cell(p: Any, x: Any, state: Any) -> Any:
        (h,) = state
        r1, z1, n1 = jnp.split(x @ p[0] + p[2], 3, axis=1)
        r2, z2, n2 = jnp.split(h @ p[1] + p[3], 3, axis=1)
        r, z = jax.nn.sigmoid(r1 + r2), jax.nn.sigmoid(z1 + z2)
        return ((1 - z) * jnp.tanh(n1 + r * n2) + z * h,)

    return recurrent(cell, 3, (jnp.zeros((batch, width)),), length, batch, width)
