"""Compiled graphs give what the interpreter gives: random graphs, all kinds of ops mixed."""

import numpy as np
import pytest
from graphs import check, random_graph


@pytest.mark.parametrize("seed", range(40))
def test_random_graph(seed):
    rng = np.random.default_rng(seed)
    check(random_graph(rng, steps=int(rng.integers(3, 16))), seed=seed)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(4))
def test_random_graph_of_other_floats(dtype, seed):
    rng = np.random.default_rng(100 + seed)
    check(random_graph(rng, steps=6, dtype=dtype), seed=seed)
