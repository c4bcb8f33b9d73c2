"""Gathers, scatters and joins inside graphs."""

import numpy as np
import pytest
import wengert as torch
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


# --- joins ---------------------------------------------------------------------------------------


def native(graph, arrays=None):
    compiled = check(graph, arrays)
    assert not compiled.host_calls, compiled.host_calls
    return compiled


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat(dim):
    def f(a, b, c):
        parts = (a * 2, b.exp(), c.permute((2, 1, 0)))
        joined = TABLE["cat"](*parts, dim=dim)
        return joined.relu(), joined.sum(dim)

    shapes = [[3, 4, 5], [3, 4, 5], [3, 4, 5]]
    for k, n in enumerate((1, 2, 4)):
        shapes[k][dim] = n
    shapes[2] = shapes[2][::-1]
    native(build(f, *((F, *s) for s in shapes)))


def test_slice_scatter_pad_flip_roll():
    def f(a, b):
        return (
            TABLE["slice_scatter"](a, b, dim=1, start=2, stop=5, step=1),
            TABLE["constant_pad_nd"](a * 2, pad=(1, 2, 3, 0), value=1.5),
            TABLE["constant_pad_nd"](a, pad=(-1, 2), value=0.0),
            TABLE["flip"](a, dims=(0, 1)) + a,
            TABLE["roll"](a, shifts=(2, -1), dims=(0, 1)),
        )

    native(build(f, (F, 4, 7), (F, 4, 3)))


def test_gradient_of_slices_accumulates():
    def f(a, g):
        zeros = TABLE["full"](size=(6, 5), fill_value=0.0, dtype=a.dtype)
        one = TABLE["slice_scatter"](zeros, g, dim=0, start=0, stop=2, step=1)
        two = TABLE["slice_scatter"](zeros, g, dim=0, start=4, stop=6, step=1)
        return one + two + a

    native(build(f, (F, 6, 5), (F, 2, 5)))


# --- scatters ------------------------------------------------------------------------------------


def test_scatter_one_per_row():
    def f(x, i, v):
        zero = x * 0
        return zero.scatter_add(1, i, v), zero.scatter(1, i, v) - x

    native(build(f, (F, 6, 5), (I, 6, 1), (F, 6, 1)))


def test_scatter_add_with_collisions():
    def f(x, i, v):
        return x.exp().scatter_add(0, i, v * 2), x.scatter_add(0, i[:4, :5], v)

    native(build(f, (F, 5, 6), (I, 8, 6), (F, 8, 6)))


def test_index_put_and_embedding_grad():
    def f(x, i, v, g):
        put = TABLE["index_put"]
        return (
            put(x, v, i, spec=(True,), accumulate=True),
            put(x, v * 0 + 3, i, spec=(True,), accumulate=False),
            put(x, x[:, :4], i[:4] * 0 + 1, spec=(False, True), accumulate=True).tanh(),
            TABLE["embedding_grad"](g, i, count=9, padding_idx=2, scale_grad_by_freq=False),
        )

    native(build(f, (F, 7, 4), (I, 6), (F, 6, 4), (F, 6, 3)))


# --- extrema with indices ------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, None])
def test_arg_extrema(dim):
    x = np.array([[1, 3, 3, 0], [np.nan, 2, np.nan, 5], [-np.inf, -np.inf, -1, -2]], "f")

    def f(x):
        found = [TABLE[n](x, dim=dim, keepdim=False) for n in ("argmax", "argmin")]
        if dim is not None:
            found += [*TABLE["max_dim"](x, dim=dim), *TABLE["min_dim"](x, dim=dim, keepdim=True)]
        return tuple(found)

    native(build(f, (F, 3, 4)), [x])
    native(build(f, (I, 5, 6)))


def test_scans():
    def f(x, i):
        return (x * 2).cumsum(1), x.permute((2, 0, 1)).cumprod(0), i.cumsum(0), x.cumsum(2).relu()

    native(build(f, (F, 3, 5, 4), (I, 7)))
    native(build(f, (F, 3, 1, 4), (I, 1)))


def test_norms_are_native():
    def f(x):
        return x.norm(), x.norm(dim=1), x.norm(1), x.norm(float("inf"), dim=0, keepdim=True)

    native(build(f, (F, 6, 5)))


def test_coverage_names_every_op():
    from wengert.codegen.coverage import coverage

    found = coverage()
    assert set(found) == set(TABLE)
    assert found["tanh"] == "fused" and found["convolution"] == "by its parts"
    assert found["mm"] == "own kernel" and found["linalg_svd"] == "host call"


@pytest.mark.parametrize("stride", [(5, 2), (1, 1), (0, 3)])
def test_strided_windows_and_their_gradients(stride):
    def function(x):
        seen = x.as_strided((3, 4), stride, 1)
        return seen * 2, torch.autograd.grad((seen * seen).sum(), x)[0]

    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    compiled = torch.compile(function)
    for got, expected in zip([compiled(x) for _ in range(2)][1], function(x)):
        assert torch.equal(got, expected)
    assert "host" not in compiled.dump("kernels")


def test_steps_and_diagonals_are_written():
    def function(x, y):
        x = x.clone()
        x[1::2] = y[:2]
        x.diagonal(1).copy_(y[0, :4])
        return x, x.slice_scatter(y[:, :2], 1, 1, 4, 2)

    x, y = torch.zeros(4, 6), torch.arange(24.0).reshape(4, 6)
    compiled = torch.compile(function)
    for got, expected in zip([compiled(x, y) for _ in range(2)][1], function(x, y)):
        assert torch.equal(got, expected)
    assert "host" not in compiled.dump("kernels")
