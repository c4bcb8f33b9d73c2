"""Compiling never changes meaning: what Python sees of tensors besides their values."""

import functools
import warnings

import pytest
import wengert as torch
from scenarios import Scenarios, check, data
from wengert import nn

scenario = Scenarios()


@scenario
def classes_of_arguments(wrap):
    f = wrap(lambda x: x * 2 if isinstance(x, nn.Parameter) else x + 1)
    named = wrap(lambda x: (type(x).__name__, x * 2))
    kinds = [lambda: data(3), lambda: nn.Parameter(data(3)), lambda: data(3, grad=True)]
    return [(f(kind()), named(kind())) for kind in (*kinds, *kinds, *reversed(kinds))]


@scenario
def marks_of_conjugates(wrap):
    z = torch.tensor([1 + 2j, 3j])
    bodies = [lambda z: (z.is_conj(), z * 2), lambda z: (z.conj() * 2, z.conj().is_conj()),
              lambda z: z.resolve_conj() is z, lambda z: z.conj() * 2]  # fmt: skip
    return [f(make()) for f in map(wrap, bodies)
            for make in (lambda: z, z.conj, lambda: z, z.conj, z.conj, lambda: z)]  # fmt: skip


@scenario
def facts_of_arguments(wrap):
    base = data(10)
    kept = data(3, grad=True)
    kept.grad = torch.ones(3)
    arguments = [lambda: data(3), lambda: base[:3], lambda: base[4:7], lambda: data(3, grad=True),
                 lambda: data(3, grad=True) * 2, lambda: data(3, grad=True).exp(),
                 lambda: kept]  # fmt: skip
    bodies = [lambda x: (x.is_leaf, x * 2), lambda x: (x.grad_fn is None, x * 2),
              lambda x: (type(x.grad_fn).__name__, x * 2), lambda x: (x._is_view(), x * 2),
              lambda x: (x._base is None, x * 2), lambda x: (x.storage_offset(), x * 2),
              lambda x: (x._version, x * 2), lambda x: (x.is_inference(), x * 2),
              lambda x: (x.data_ptr() == base.data_ptr(), x * 2)]  # fmt: skip
    found = []
    for f in map(wrap, bodies):
        found += [f(make()) for make in (*arguments, *arguments, *reversed(arguments))]
        base.add_(1)
    return found


@scenario
def backward_into_arguments(wrap):
    def body(x):
        (x * 2).sum().backward()
        return x.grad

    f, found = wrap(body), []
    for k in (0, 1, 2, 3, 0, 1, 2, 3, 1, 0):
        x = data(3, k=k, grad=True)
        seen = []
        if k == 1:
            x.register_hook(lambda g, seen=seen: seen.append(g) or g * 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found += [f(x * 3 if k == 2 else x), x.grad, seen]
    return found


@scenario
def identities(wrap):
    known, memo = {}, {}

    def by_id(x):
        return x + known.setdefault(id(x), len(known))

    def by_hash(x):
        return x * memo.setdefault(x, len(memo) + 1)

    @functools.lru_cache(2)
    def square(x):
        return x * x

    tensors = [data(3, k=k) for k in range(3)]
    one, table = {tensors[0]}, {tensors[0]: 2.0, tensors[1]: 3.0}
    bodies = [by_id, by_hash, lambda x: square(x) + 1, lambda x: x * 2 if x in one else x,
              lambda x: x * table.get(x, 1.0), lambda x: x * (2 if id(x) == id(tensors[0]) else 3),
              lambda x: x * 2 if x is tensors[0] else x]  # fmt: skip
    order = (0, 0, 0, 1, 1, 2, 0, 1, 2, 2)
    return [[f(tensors[k]) for k in order] for f in map(wrap, bodies)], square.cache_info()


@scenario
def results_that_backward_went_through(wrap):
    def body(x):
        h, free = x.exp(), x + 1
        (h.sum() + free.sum()).backward()
        return h, free

    f, found = wrap(body), []
    for k in range(4):
        x = data(3, k=k, grad=True)
        h, free = f(x)
        free.sum().backward()
        with pytest.raises(RuntimeError, match="a second time"):
            h.sum().backward()
        found += [h, free, x.grad]
    return found


@scenario
def results_and_their_detached_twins(wrap):
    def body(x):
        y = x * 2
        return y, y.detach()

    f, found = wrap(body), []
    for k in range(3):
        y, twin = f(data(3, k=k))
        twin.requires_grad_()
        found += [y is twin, y.requires_grad, y, twin.data_ptr() == y.data_ptr()]
    return found


@pytest.mark.parametrize("run", scenario, ids=lambda run: run.__name__)
def test_scenario(run):
    check(run)


def test_the_class_of_an_argument_is_named():
    f = torch.compile(lambda x: x * 2)
    f(data(3, grad=True))
    f(nn.Parameter(data(3)))
    assert "requires grad a Parameter" in f.explain()


def test_looks_at_facts_are_replayed_and_named():
    f = torch.compile(lambda x: x * 2 if x.is_leaf else x)
    for k in range(3):
        f(data(3, k=k, grad=True))
    f(data(3, grad=True) * 2)
    f(data(3, grad=True) * 2)
    assert "replayed 2 times" in f.explain() and "replayed 1 times" in f.explain()
    assert "is_leaf of a tensor differs" in f.explain()


def test_state_that_is_kept_by_tensor_is_replayed():
    """As optimizers written by users keep it."""
    weights = [data(3, k=k) for k in range(2)]
    averages = {w: torch.zeros(3) for w in weights}

    @torch.compile
    def update(rate):
        for w in weights:
            averages[w].mul_(rate).add_(w, alpha=1 - rate)

    for _ in range(4):
        update(0.5)
    assert "replayed 3 times" in update.explain()
    assert averages[weights[1]].tolist() == pytest.approx((weights[1] * (1 - 0.5**4)).tolist())
    weights[0] = data(3, k=5)
    with pytest.raises(KeyError):
        update(0.5)


def test_results_of_classes_and_modes_that_the_body_chose():
    def inferred(x):
        with torch.inference_mode():
            return x * 2

    make, infer = torch.compile(lambda x: nn.Parameter(x * 2)), torch.compile(inferred)
    for k in range(3):
        assert type(make(torch.full((2,), float(k)))) is nn.Parameter
        assert infer(torch.full((2,), float(k))).is_inference()
