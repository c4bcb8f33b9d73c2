"""Compiled graphs give what the interpreter gives: random graphs, all kinds of ops mixed."""

import numpy as np
import pytest
from graphs import check, random_graph
from wengert.codegen import cluster


@pytest.mark.parametrize("seed", range(40))
def test_random_graph(seed):
    rng = np.random.default_rng(seed)
    check(random_graph(rng, steps=int(rng.integers(3, 16))), seed=seed)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(4))
def test_random_graph_of_other_floats(dtype, seed):
    rng = np.random.default_rng(100 + seed)
    check(random_graph(rng, steps=6, dtype=dtype), seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_random_graph_in_sections(seed, monkeypatch):
    """Long graphs are scheduled in sections; here, short ones in very short sections."""
    monkeypatch.setattr(cluster, "SECTION", 1 + seed % 3)
    rng = np.random.default_rng(200 + seed)
    check(random_graph(rng, steps=14), seed=seed)
