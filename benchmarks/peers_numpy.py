"""Some workloads in NumPy, derivatives by hand: what one writes without autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case, array, labels, weights


def kept(function: Any, *arguments: Any) -> Case:
    """A step that keeps what it returns; the first of it is the number to check."""
    last: list[Any] = [None]

    def step() -> None:
        last[0] = function(*arguments)

    return Case(step, lambda: float(np.abs(last[0][0]).sum()))


def dispatch(size: int = 4) -> Case:
    return kept(lambda a, b, seed: (seed, seed, a + b), array(size), array(size, seed=1),
                array(size, seed=7))  # fmt: skip


def value_loop(size: int = 16) -> Case:
    def function(x: np.ndarray, seed: np.ndarray) -> Any:
        y, factor = x * 2, 2.0
        while np.linalg.norm(y) < 1000:
            y, factor = y * 2, factor * 2
        return seed * np.float32(factor), y

    return kept(function, array(size), array(size, seed=7))


def pointwise(size: int = 1024) -> Case:
    c, k = np.float32((2 / np.pi) ** 0.5), np.float32(0.044715)

    def function(x: Any, w: Any, b: Any, seed: Any) -> Any:
        h = x * w + b
        t = np.tanh(c * (h + k * h * h * h))
        gelu = 0.5 * h * (1 + t)
        slope = 0.5 * (1 + t) + 0.5 * h * (1 - t * t) * c * (1 + 3 * k * h * h)
        inner = seed * x * slope
        return inner * w + seed * gelu, inner * x, inner

    return kept(function, *(array(size, size, seed=s) for s in (0, 1, 2, 7)))


def softmax_cross_entropy(rows: int = 512, classes: int = 1000) -> Case:
    at = np.arange(rows)

    def function(x: Any, y: Any) -> Any:
        shifted = x - x.max(1, keepdims=True)
        e = np.exp(shifted)
        total = e.sum(1, keepdims=True)
        loss = (np.log(total[:, 0]) - shifted[at, y]).mean()
        grad = e / total
        grad[at, y] -= 1
        return grad / rows, loss

    return kept(function, array(rows, classes), labels(rows, classes))


def layer_norm(rows: int = 512, width: int = 768) -> Case:
    def function(x: Any, w: Any, b: Any, seed: Any) -> Any:
        centred = x - x.mean(1, keepdims=True)
        scale = 1 / np.sqrt((centred * centred).mean(1, keepdims=True) + np.float32(1e-5))
        normal = centred * scale
        out, inner = normal * w + b, seed * w
        grad = scale * (inner - inner.mean(1, keepdims=True)
                        - normal * (inner * normal).mean(1, keepdims=True))  # fmt: skip
        return grad, (seed * normal).sum(0), seed.sum(0), out

    return kept(function, array(rows, width), array(width, seed=1), array(width, seed=2),
                array(rows, width, seed=7))  # fmt: skip


def matmul(size: int = 256) -> Case:
    return kept(lambda a, b, seed: (seed @ b.T, a.T @ seed, a @ b), array(size, size),
                array(size, size, seed=1), array(size, size, seed=7))  # fmt: skip


def mlp_small(batch: int = 16, width: int = 16) -> Case:
    w1, b1, w2, b2 = weights([(width, 8), (width,), (1, width), (1,)])
    x, y, rate = array(batch, 8), array(batch, 1, seed=3), np.float32(0.01)

    def function() -> Any:
        h = np.tanh(x @ w1.T + b1)
        error = h @ w2.T + b2 - y
        loss = np.mean(error * error)
        grad = error * np.float32(2 / batch)
        inner = (grad @ w2) * (1 - h * h)
        for parameter, slope in ((w2, grad.T @ h), (b2, grad.sum(0)), (w1, inner.T @ x),
                                 (b1, inner.sum(0))):  # fmt: skip
            parameter -= rate * slope
        return loss, None

    return kept(function)
