"""Calls that came before give what they gave, and know their limits."""

import warnings

import numpy as np
import pytest
import wengert as torch
from functional_cases import CASES, Context
from wengert.tracer import familiar_calls, familiar_calls_text

F = torch.nn.functional
TIMES = familiar_calls.OFTEN + 2


@pytest.fixture(autouse=True)
def ran(monkeypatch):
    """How often written code ran."""
    seen = []
    write = familiar_calls_text.write

    def counted(watch, result):
        code = write(watch, result)
        if code is None:
            return None

        def call(*tensors):
            made = code(*tensors)
            if made is not None:
                seen.append(code)
            return made

        return call

    monkeypatch.setattr(familiar_calls, "write", counted)
    return seen


def members(result):
    return result if isinstance(result, tuple | list) else (result,)


def graph(node):
    """All that a graph shows, from a node on."""
    if node is None or not node.is_op:
        return type(node).__name__
    saved = [getattr(v, "array", getattr(v, "_array", v)) for v in node.saved]
    return (
        type(node).__name__, node.attrs, list(node.call_types()), node.saved and node.versions,
        [v.tobytes() if isinstance(v, np.ndarray) else v for v in saved],
        node.place is not None, [e and (graph(e[0]), e[1]) for e in node.edges],
    )  # fmt: skip


def facts(result):
    """All that a result shows."""
    if not isinstance(result, torch.Tensor):
        return result
    view = result._view
    return (
        result.dtype, tuple(result.shape), result.stride(), result._array.tobytes(),
        result.requires_grad, result.is_leaf, result.output_nr, result._version, result._mark,
        graph(result.grad_fn),
        view and (view.seen, view.origin, [(s[0].name, s[1], s[2]) for s in view.chain]),
    )  # fmt: skip


def outcome(expression):
    """The facts of a call and its gradients, or its error."""
    context = Context("wengert", expression)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = members(eval(expression, context.names()))
        except Exception as error:
            return type(error), str(error)
    shown = [facts(r) for r in results]
    for r in results:
        if isinstance(r, torch.Tensor) and r.requires_grad:
            r.sum().abs().backward(retain_graph=True)
    return shown, [leaf.grad is not None and leaf.grad._array.tobytes() for leaf in context.leaves]


@pytest.mark.parametrize("part", range(8))
def test_functions_agree(part, ran):
    for expression in CASES[part::8]:
        first = outcome(expression)
        for _ in range(TIMES):
            assert outcome(expression) == first, expression
    assert len(ran) > len(CASES[part::8])


def repeat(function, times=TIMES):
    return [function() for _ in range(times)]


def test_elements_are_checked_every_time(ran):
    x, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 1])
    repeat(lambda: F.cross_entropy(x, labels))
    assert ran
    with pytest.raises(IndexError, match=r"Target 3 is out of bounds"):
        F.cross_entropy(x, labels + 1)
    repeat(lambda: x[labels])
    with pytest.raises(IndexError, match=r"index 5 is out of bounds for dimension 0 with size 4"):
        x[labels + 3]


def test_calls_are_told_apart(ran):
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    for make in (
        lambda: x[1], lambda: x[True], lambda: x[1:], lambda: x[None], lambda: x.sum(1),
        lambda: x.sum(True), lambda: x.sum(1, keepdim=True), lambda: x.t().reshape(9),
        lambda: x.reshape(9), lambda: torch.matmul(x, y), lambda: torch.matmul(x, x),
        lambda: F.threshold(x, 0.0, 0.0), lambda: F.threshold(x, 0.0, -0.0),
        lambda: x.double().sum(1), lambda: x.sum(1, dtype=torch.float64),
    ):  # fmt: skip
        try:
            expected = make()
        except TypeError:
            with pytest.raises(TypeError):
                repeat(make)
            continue
        for found in repeat(make):
            assert facts(found)[:4] == facts(expected)[:4]
    signs = [np.signbit(F.threshold(-torch.ones(2), 0.0, zero)._array[0]) for zero in (0.0, -0.0)]
    assert signs == [False, True]


def test_modes_are_part_of_a_call(ran):
    x = torch.ones(2, 3, requires_grad=True)
    repeat(lambda: x.sum(0))
    with torch.no_grad():
        for y in repeat(lambda: x.sum(0).mean(0)):
            assert not y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match=r"no_grad.*test_familiar_calls.py"):
        y.backward()
    with torch.inference_mode():
        before = len(ran)
        made = repeat(lambda: x.sum(0))
        assert len(ran) > before and all(y.is_inference() for y in made)
        assert not any(view.is_inference() for view in repeat(lambda: x.transpose(0, 1)))
        made = repeat(lambda: made[0].reshape(3, 1))
        assert all(y.is_inference() and y._view.origin == "inference" for y in made)
    assert not any(y.is_inference() for y in repeat(lambda: made[0].sum(0)))
    whole = torch.arange(4)
    repeat(lambda: torch.softmax(whole.float(), 0).mean())
    torch.set_default_dtype(torch.float64)
    try:
        assert repeat(lambda: whole.true_divide(2).sum())[-1].dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_views_share_memory_and_history(ran):
    for _ in range(TIMES):
        x = torch.ones(2, 3, requires_grad=True)
        y = x * 1
        row = y[1]
        row.mul_(5)
        assert y._version == row._version == 1
        assert type(y.grad_fn).__name__ == "CopySlices"
        y.view(6).sum().backward()
        assert x.grad.tolist() == [[1, 1, 1], [5, 5, 5]]
    assert ran


def test_views_of_what_was_written_have_its_history(ran):
    def doubled(write):
        x = torch.ones(2, 3, requires_grad=True)
        base = x * 1
        flat = base.view(6)
        if write:
            base.mul_(2)
        flat[2:].sum().backward()
        return x.grad.tolist()

    assert repeat(lambda: doubled(False))[-1] == [[0, 0, 1], [1, 1, 1]] and ran
    assert doubled(True) == [[0, 0, 2], [2, 2, 2]]


def test_writes_since_are_an_error(ran):
    w = torch.ones(3, 3, requires_grad=True)
    for _ in range(TIMES):
        x = torch.ones(2, 3)
        y = F.linear(x, w)
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_what_draws_writes_or_warns_is_run(ran):
    torch.manual_seed(0)
    x = torch.ones(64)
    masks = repeat(lambda: F.dropout(x, 0.5))
    assert len({m._array.tobytes() for m in masks}) == TIMES
    mean, var = torch.zeros(3), torch.ones(3)

    def running():
        F.batch_norm(torch.ones(4, 3), mean, var, training=True)
        return mean[0].item()

    means = repeat(running)
    assert means == sorted(set(means))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        repeat(lambda: F.softmax(torch.ones(2)))
    assert len(seen) == TIMES and all(w.filename == __file__ for w in seen)


def test_hooks_on_saved_values_run(ran):
    w, seen = torch.ones(2, 2, requires_grad=True), []
    repeat(lambda: F.linear(torch.ones(1, 2), w))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        F.linear(torch.ones(1, 2), w).sum().backward()
    assert seen and w.grad is not None


def test_derivatives_with_history(ran):
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)

    def slopes():
        y = F.log_softmax(F.linear(x.tanh(), w), 1).pow(2).mean()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        second = torch.autograd.grad(grad.pow(2).sum(), (x, w), create_graph=True)
        return [facts(g) for g in (grad, *second)]

    first, *others = repeat(slopes, TIMES + 1)
    assert len(ran) > 20 and all(other == first for other in others)


def test_large_calls(ran):
    x, w = torch.randn(8, 64, 128), torch.randn(384, 128, requires_grad=True)
    first = F.gelu(F.linear(x, w))
    assert [facts(y) for y in repeat(lambda: F.gelu(F.linear(x, w)))] == [facts(first)] * TIMES
    assert len(ran) >= 2 * (TIMES - familiar_calls.OFTEN)  # other tests may have made such calls


def test_many_calls_that_never_come_again(ran):
    x = torch.arange(5000.0)
    for k in range(4 * familiar_calls.MOST_KNOWN):
        assert x[k].item() == k
    assert not ran
