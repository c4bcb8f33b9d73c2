"""Kernels over flat arrays, called with any number of elements.

A program whose one kernel runs over contiguous arrays of one size is compiled for a size that
stands for all: the only word of its argument block that depends on the size is the size itself.
"""

from __future__ import annotations

import ctypes

import numpy as np

from ..ir.program import INPUT, OUTPUT, Launch, Program
from . import threads
from .layout import data_of
from .loading import Code


class Flat:
    """The kernel of a program, whose argument block has sizes and pointers in these places."""

    def __init__(
        self, program: Program, sizes: list[int], pointers: list[tuple[int, int]], grain: int
    ) -> None:
        (launch,) = program.steps
        assert isinstance(launch, Launch)
        self.code = Code(program)  # keeps the function loaded
        self.function = self.code.symbols[launch.symbol]
        self.results = [r.type.dtype.storage for r in program.results]
        self.words = [word.value for word in launch.words]
        self.block = ctypes.c_int64 * len(self.words)
        self.sizes, self.pointers, self.grain = sizes, pointers, grain
        self.parallel = threads.pool().parallel

    def run(self, like: np.ndarray, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """New arrays laid out as `like`, computed from `arrays`."""
        made = [np.empty_like(like, dtype) for dtype in self.results]
        arrays = [*arrays, *made]
        words, count = list(self.words), like.size
        for k in self.sizes:
            words[k] = count
        for k, which in self.pointers:
            words[k] += data_of(arrays[which])
        self.parallel(self.function, self.block(*words), -(-count // self.grain))
        return made


def flat(program: Program, size: int) -> Flat | None:
    """The kernel of a program made for `size` elements, if it is one kernel over flat arrays."""
    if len(program.steps) != 1 or not isinstance(program.steps[0], Launch) or program.errors:
        return None
    launch = program.steps[0]
    sizes, pointers, grains = [], [], []
    for k, word in enumerate(launch.words):
        if word.buffer is None:
            if word.value == size:
                sizes.append(k)
            else:
                grains.append(word.value)
            continue
        buffer = program.buffers[word.buffer] if word.buffer >= 0 else None
        if buffer is None or buffer.kind not in (INPUT, OUTPUT):
            return None
        first = len(program.inputs) if buffer.kind == OUTPUT else 0
        pointers.append((k, first + buffer.index))
    if len(sizes) != 1 or len(grains) != 1 or -(-size // grains[0]) != launch.chunks:
        return None
    return Flat(program, sizes, pointers, grains[0])
