"""Gathers, scatters and joins inside graphs."""

import numpy as np
import pytest
from graphs import build, check, of, sample
from wengert.backend import compile_graph
from wengert.ir import passes
from wengert.ir.op import TABLE

F, I = "float32", "int64"


def test_gather_is_native():
    def f(x, i):
        return x.exp().gather(1, i) * 2, x.gather(1, i).sum(1)

    assert not check(build(f, (F, 6, 5), (I, 6, 3))).host_calls


def test_embedding_and_index():
    def f(w, i):
        rows = TABLE["embedding"](w, i)
        return rows.relu(), w[i] + 1, w[:, 1:].index_select(0, i.reshape(-1))

    assert not check(build(f, (F, 5, 7), (I, 4, 3))).host_calls


def test_several_indices():
    def f(x, i, j):
        return x[i, j], x[:, i, j] * 2, x[i, :, j], x[i.unsqueeze(1), j]

    graph = build(f, (F, 5, 5, 5), (I, 4), (I, 4))
    assert not check(graph).host_calls


def test_negative_index_counts_from_the_end():
    graph = build(lambda x, i: x[i], (F, 5), (I, 3))
    check(graph, [np.arange(5, dtype="f"), np.array([-1, 0, -5])])


@pytest.mark.parametrize("bad", [5, -6, 1 << 40])
def test_index_out_of_range(bad):
    run = compile_graph(passes.optimise(build(lambda x, i: x[i], (F, 5), (I, 3))))
    with pytest.raises(IndexError, match="out of range"):
        run(np.arange(5, dtype="f"), np.array([0, bad, 1]))
    assert run(np.arange(5, dtype="f"), np.array([0, 4, 1]))[0].tolist() == [0, 4, 1]


def test_arrays_of_other_types():
    check(build(lambda x, i: x[i], ("bool", 5, 2), ("int32", 3)))
    check(build(lambda x, i: x[i], ("bfloat16", 5, 2), ("int32", 3)))


__all__ = ["of", "sample"]
