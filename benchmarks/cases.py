"""What the versions of a workload share: the same numbers in every system, and what a case is.

A workload is named by a function and the sizes that differ from its defaults, as in
"matmul:size=64" or "transformer_block:length=256,depth=2".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Case:
    """A workload in one system: `step()` runs once, `loss()` reads a number all must agree on."""

    step: Callable[[], Any]
    loss: Callable[[], float]
    compiled: Any = None  # the compiled function, where one may be asked about


def array(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(seed).standard_normal(shape)
    return (values * scale).astype(np.float32)


def labels(count: int, classes: int) -> np.ndarray:
    return np.random.default_rng(9).integers(0, classes, count)


def weights(shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Parameters of a model, in the order in which torch's modules list them."""
    return [array(*shape, seed=100 + k, scale=max(1, shape[-1]) ** -0.5)
            for k, shape in enumerate(shapes)]  # fmt: skip


def parsed(spec: str) -> tuple[str, dict[str, int]]:
    """The function's name and the sizes in "name:key=value,key=value"."""
    name, _, text = spec.partition(":")
    pairs = (item.split("=") for item in text.split(",") if item)
    return name, {key: int(value) for key, value in pairs}
