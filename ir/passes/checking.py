"""Compares graphs before and after passes on random inputs, for `WENGERT_CHECK=1`."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from ..graph import Graph
from ..interp import run, widen
from ..types import BOOL, COMPLEX, INTEGER, TensorType, bfloat16, to_bfloat16
from ..verify import VerifyError, verify

LIMIT = 1 << 20  # elements; larger graphs are only verified
# relative; composites and what they expand to round differently
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}
USUAL_TOLERANCE = 1e-4


class Checker:
    """What a graph gives, for comparison with what passes make of it."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.inputs: list[Any] = []
        self.expected: list[Any] | None = None
        size = sum(var.type.numel for var in graph.vars())
        if size > LIMIT or any(node.op.random for node in graph.nodes):
            return
        rng = np.random.default_rng(0)
        self.inputs = [sample(item.var.type, rng) for item in graph.inputs]
        # random inputs are not in the domain of every graph: indices, singular matrices
        with suppress(IndexError, RuntimeError, ValueError, np.linalg.LinAlgError):
            self.expected = run(graph, self.inputs)

    def check(self, name: str, after: Graph) -> None:
        """The result of pass `name` must be valid and give the same values."""
        try:
            verify(after)
        except VerifyError as error:
            raise VerifyError(f"after pass '{name}': {error}") from None
        if self.expected is None:
            return
        pairs = zip(self.expected, run(after, self.inputs), self.graph.outputs)
        for k, (wanted, got, output) in enumerate(pairs):
            if not same(wanted, got, output.var.type):
                raise VerifyError(f"after pass '{name}': output {k} of @{self.graph.name} changed "
                                  f"its value\n{self.graph}\n{after}")  # fmt: skip


def same(wanted: Any, got: Any, type_: TensorType) -> bool:
    if not (type_.dtype.is_floating_point or type_.dtype.is_complex):
        return bool(np.array_equal(wanted, got))
    rtol = TOLERANCE.get(type_.dtype.name, USUAL_TOLERANCE)
    wanted, got = widen(wanted, type_.dtype), widen(got, type_.dtype)
    return bool(np.allclose(got, wanted, rtol=rtol, atol=rtol / 10, equal_nan=True))


def sample(type_: TensorType, rng: np.random.Generator) -> Any:
    """Values near one, so that logarithms and roots are defined; small non-negative integers."""
    if type_.dtype.category == BOOL:
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype.category == INTEGER:
        return rng.integers(0, 2, type_.shape).astype(type_.dtype.storage)
    values = np.asarray(rng.uniform(0.5, 1.5, type_.shape))
    if type_.dtype.category == COMPLEX:
        values = values + 1j * rng.uniform(0.5, 1.5, type_.shape)
    if type_.dtype is bfloat16:
        return to_bfloat16(values.astype(np.float32))
    return values.astype(type_.dtype.storage)
