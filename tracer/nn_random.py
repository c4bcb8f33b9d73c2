"""Lends the default generator to the random entries of `ir/ops/nn_dropout.py`."""

from __future__ import annotations

import numpy as np

from ..ir.ops import nn_dropout
from . import sampling
from .random import default_generator


class Source:
    """Draws from torch's CPU stream; 16-bit floats come as float32, to be rounded by the caller."""

    @staticmethod
    def mask(size: tuple[int, ...], p: float) -> np.ndarray:
        return sampling.dropout_mask(default_generator, size, p)

    @staticmethod
    def uniform(size: tuple[int, ...], dtype: str) -> np.ndarray:
        return sampling.uniform(default_generator, size, dtype=dtype)

    @staticmethod
    def exponential(size: tuple[int, ...], dtype: str) -> np.ndarray:
        return sampling.exponential(default_generator, size, dtype=dtype)

    @staticmethod
    def rrelu(x: np.ndarray, lower: float, upper: float) -> np.ndarray:
        return sampling.rrelu_noise(default_generator, x, lower, upper)


nn_dropout.source = Source
