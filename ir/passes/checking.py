"""Compares a graph before and after a pass on random inputs, for `WENGERT_CHECK=1`."""

from __future__ import annotations

import numpy as np

from ..graph import Graph
from ..interp import run
from ..types import BOOL, COMPLEX, INTEGER, TensorType
from ..verify import VerifyError

LIMIT = 1 << 20  # elements; larger graphs are only verified


def compare(name: str, before: Graph, after: Graph) -> None:
    size = sum(var.type.numel for var in before.vars())
    if size > LIMIT or any(node.op.random for node in before.nodes):
        return
    rng = np.random.default_rng(0)
    inputs = [sample(item.var.type, rng) for item in before.inputs]
    try:
        expected = run(before, inputs)
    except (IndexError, RuntimeError, ValueError, np.linalg.LinAlgError):
        return  # random inputs are not in the domain of every graph (indices, singular matrices)
    got = run(after, inputs)
    for k, (a, b) in enumerate(zip(expected, got)):
        if a.dtype.kind in "fc":
            same = np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        else:
            same = np.array_equal(a, b)
        if not same:
            raise VerifyError(f"after pass '{name}': output {k} of @{before.name} changed its value"
                              f"\n{before}\n{after}")  # fmt: skip


def sample(type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Values near one, so that logarithms and roots are defined; small non-negative integers."""
    if type_.dtype.category == BOOL:
        return rng.integers(0, 2, type_.shape).astype(bool)
    if type_.dtype.category == INTEGER:
        return rng.integers(0, 2, type_.shape).astype(type_.dtype.storage)
    values = rng.uniform(0.5, 1.5, type_.shape)
    if type_.dtype.category == COMPLEX:
        values = values + 1j * rng.uniform(0.5, 1.5, type_.shape)
    if type_.dtype.name == "bfloat16":
        from ..types import to_bfloat16

        return to_bfloat16(values.astype(np.float32))
    return np.asarray(values).astype(type_.dtype.storage)
