"""Convolutions and pools inside graphs, with odd geometries."""

import numpy as np
import pytest
from graphs import build, check, sample
from wengert.ir.op import TABLE
from wengert.ir.types import TensorType, float32

F = "float32"


def native(graph, arrays=None):
    compiled = check(graph, arrays)
    assert not compiled.host_calls, compiled.host_calls
    return compiled


GEOMETRIES = [
    # x, weight, stride, padding, dilation, groups
    ((2, 3, 8, 7), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 3, 8, 7), (4, 3, 3, 2), (2, 3), (1, 0), (1, 2), 1),
    ((1, 4, 5, 5), (6, 4, 1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((2, 4, 9, 6), (6, 2, 3, 3), (2, 1), (2, 1), (1, 1), 2),
    ((2, 5, 7, 7), (5, 1, 3, 3), (1, 2), (1, 1), (1, 1), 5),
    ((3, 2, 11), (4, 2, 4), (3,), (2,), (2,), 1),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 2, 1), (0, 1, 1), (1, 1, 2), 1),
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolution_and_its_gradients(geometry):
    x, w, stride, padding, dilation, groups = geometry
    attrs = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)

    def f(x, w, b):
        y = TABLE["convolution"](x, w, b, **attrs)
        g = y.tanh()
        return (
            y.relu(),
            TABLE["conv_input"](g, w, None, size=tuple(x.shape[2:]), **attrs),
            TABLE["conv_weight"](x, g, kernel=tuple(w.shape[2:]), **attrs),
        )

    native(build(f, (F, *x), (F, *w), (F, w[0])))


POOLS = [
    ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    ((2, 3, 9, 7), (3, 2), (2, 1), (1, 1), (1, 2), True),
    ((1, 2, 6), (3,), (3,), (1,), (1,), True),
    ((5, 5), (2, 3), (1, 2), (0, 1), (2, 1), False),
    ((1, 1, 1), (2, 2), (1, 1), (1, 1), (1, 1), False),  # windows larger than the plane
]


@pytest.mark.parametrize("geometry", POOLS)
def test_max_pool(geometry):
    shape, kernel, stride, padding, dilation, ceil = geometry
    attrs = dict(kernel=kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil)

    def f(x):
        best, where = TABLE["max_pool"](x, **attrs)
        back = TABLE["plane_scatter"](best * 2, where, size=tuple(shape[-len(kernel) :]))
        return best, where, back

    graph = build(f, (F, *shape))
    native(graph)
    x = sample(TensorType(float32, shape), np.random.default_rng(3))
    x.reshape(-1)[::7] = -np.inf
    native(graph, [x])
    x.reshape(-1)[::3] = np.nan  # windows with several: the last counts
    native(graph, [x])
    native(graph, [np.full_like(x, -np.inf)])


def test_loops_cut_in_vain_count_as_one():
    """The average's windows do not join the maximum's loops, which stay long enough for vectors."""

    def f(x):
        attrs = dict(kernel=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=False)
        best, where = TABLE["max_pool"](x, dilation=(1, 1), **attrs)
        halved = dict(kernel=(2, 2), stride=(2, 2), padding=(0, 0), count_include_pad=True)
        return TABLE["avg_pool"](best, ceil_mode=False, **halved), where

    graph = build(f, (F, 2, 3, 56, 56))
    kernels = native(graph).program.kernels
    assert [k.kind for k in kernels if "amax" in k.text] == ["column"]


@pytest.mark.parametrize("geometry", POOLS)
@pytest.mark.parametrize("whole", [True, False])
def test_avg_pool(geometry, whole):
    shape, kernel, stride, padding, _, ceil = geometry
    attrs = dict(kernel=kernel, stride=stride, padding=padding, ceil_mode=ceil,
                 count_include_pad=whole)  # fmt: skip

    def f(x):
        y = TABLE["avg_pool"](x, **attrs)
        return y, TABLE["avg_spread"](y, size=tuple(shape[-len(kernel) :]), **attrs)

    native(build(f, (F, *shape)))
