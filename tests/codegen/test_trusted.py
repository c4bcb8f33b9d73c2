"""Indices that were checked, or found, by an earlier kernel are not checked again."""

import numpy as np
import pytest
from graphs import build, check
from wengert.backend import compile_graph
from wengert.codegen.affine import Expr
from wengert.codegen.trusted import elements
from wengert.ir.op import TABLE
from wengert.ir.program import STATUS
from wengert.ir.types import int64

F, I = "float32", "int64"


def failing(compiled):
    """How many launches may fail, and whether something was written before one does."""
    steps = compiled.program.steps
    count = sum(any(word.buffer == STATUS for word in step.words) for step in steps)
    return count, compiled.runnable.early


def step(weight, bias, tokens):
    """Of a model with an embedding: some parameters are written before the embedding's gradient."""
    rows = TABLE["embedding"](weight, tokens[:, :-1])
    grad = (rows * rows + bias).tanh()
    slope = TABLE["embedding_grad"](grad, tokens[:, :-1], count=weight.shape[0], padding_idx=-1,
                                    scale_grad_by_freq=False)  # fmt: skip
    return bias - grad.sum((0, 1)), weight - slope


def test_gradients_rely_on_the_forward_pass():
    graph = build(step, (F, 9, 6), (F, 6), (I, 4, 5), writes={0: 1, 1: 0})
    compiled = check(graph)
    assert failing(compiled) == (1, [])
    given = [np.ones((9, 6), "f"), np.ones(6, "f"), np.full((4, 5), 10**9)]
    with pytest.raises(IndexError):
        compiled(*given)
    assert all((array == 1).all() for array in given[:2])


def test_other_elements_are_checked():
    def f(x, i):
        return x[i[:-1]].exp().sum(), x[i].sin().sum() * x[i[:-1]].exp().sum()

    compiled = check(build(f, (F, 7), (I, 5)))
    for at in range(5):
        i = np.zeros(5, np.int64)
        i[at] = 8
        with pytest.raises(IndexError):
            compiled(np.ones(7, "f"), i)


def test_places_that_ops_find_need_no_check():
    def pooled(x):
        result, places = TABLE["max_pool"](x, kernel=(2, 2), stride=(2, 2), padding=(0, 0),
                                           dilation=(1, 1), ceil_mode=False)  # fmt: skip
        return TABLE["plane_scatter"](result * 2, places, size=(6, 8))

    def sorted_back(x):
        values, places = TABLE["sort"](x, dim=1, descending=False, stable=False)
        return (x * 0).scatter(1, places, values.exp())

    def clamped(x):
        return x[(x * 9).to("int64").clamp(0, x.shape[0] - 1)]

    for function, shape in ((pooled, (2, 3, 6, 8)), (sorted_back, (4, 9)), (clamped, (7,))):
        assert failing(check(build(function, (F, *shape)))) == (0, [])


@pytest.mark.parametrize("limit", [4, 5])
def test_what_may_be_beyond_is_checked(limit):
    """Clamped to more than there is; counted up to more than there is."""
    counted = TABLE["iota"]
    for index in (lambda x: x.to("int64").clamp(0, limit),
                  lambda x: counted(size=limit + 1, dtype=int64)):  # fmt: skip
        compiled = compile_graph(build(lambda x, index=index: x[index(x)], (F, 5)))
        if limit < 5:
            compiled(np.full(5, 9, "f"))
            continue
        with pytest.raises(IndexError):
            compiled(np.full(5, 9, "f"))


def test_what_comes_before_a_check_is_written_after_it():
    """Statistics of a batch norm, before a loss looks at its targets; what it writes itself."""

    def f(mean, x, i):
        new = mean * 0.9 + x.mean(0) * 0.1
        return new, (x - new).gather(1, i).sum()

    def same(x, y, i):
        return x + y[i]

    for function, types in ((f, ((F, 5), (F, 4, 5), (I, 4, 1))), (same, ((F, 4), (F, 5), (I, 4)))):
        compiled = check(build(function, *types, writes={0: 0}))
        count, early = failing(compiled)
        assert count == 1 and early == []
        given = [np.ones(shape, "f") for _, *shape in types[:2]]
        with pytest.raises((IndexError, RuntimeError)):
            compiled(*given, np.full(types[2][1:], 7))
        assert (given[0] == 1).all()


def test_loops_are_compared_by_what_they_come_to():
    whole = elements(Expr((12, 4, 1)), [2, 3, 4])
    assert whole == elements(Expr((1,)), [24]) == elements(Expr((4, 0, 1)), [6, 9, 4])
    assert whole != elements(Expr((1,), 1), [24]) and whole != elements(Expr((1,)), [23])
    assert elements(Expr((12, 1)), [2, 4]) not in (whole, elements(Expr((12, 1)), [2, 5]))
    assert elements(Expr((1,), 0, ((1, None),)), [3]) is None
