"""Derivatives as straight NumPy code give the bits of the rules run on tensors."""

import pytest
import wengert as torch
from catalogue_cases import cases_of, leaf, ops
from wengert.ir.op import TABLE
from wengert.tracer import familiar, straight


def gradients(case, number=None):
    """Backward through one call, as bytes: with a seed, so that no gradient is all ones.

    From all results, or from the one with this number among those that have a history.
    """
    inputs = [leaf(x) for x in case.inputs]
    results = case.op(*inputs, **case.attrs)
    results = [r for r in (results if isinstance(results, tuple) else (results,))
               if r.requires_grad]  # fmt: skip
    if number is not None:
        results = results[number : number + 1]
    if not results:
        return None
    seeds = [torch.linspace(0.5, 1.5, r.numel()).to(r.dtype).reshape(r.shape) for r in results]
    try:
        torch.autograd.backward(results, seeds)
    except (NotImplementedError, RuntimeError) as error:  # torch has no derivative either
        return type(error), str(error)
    found = [x.grad for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    return [None if g is None else (g.dtype, tuple(g.shape), g.stride(), g.numpy().tobytes())
            for g in found]  # fmt: skip


@pytest.mark.parametrize("name", list(ops(differentiable=True)))
def test_bits_are_the_same(name, monkeypatch):
    for case in cases_of(TABLE[name]):
        monkeypatch.setattr(straight, "OFTEN", 1 << 20)
        by_rules = gradients(case)
        monkeypatch.setattr(straight, "OFTEN", 0)
        assert gradients(case) == by_rules


@pytest.mark.parametrize("name", list(ops(differentiable=True)))
def test_bits_of_familiar_graphs_are_the_same(name, monkeypatch):
    """See tests/test_familiar.py: here each call is a graph, and comes three times."""
    monkeypatch.setattr(familiar, "OFTEN", 2)
    for case in cases_of(TABLE[name]):
        for number in range(3):
            by_engine = gradients(case, number)
            if not case.op.random and by_engine is not None:
                assert gradients(case, number) == by_engine
                assert gradients(case, number) == by_engine


def count_runs(monkeypatch):
    runs, run = [], straight.run

    def counted(found, node, grads):
        runs.append(node.op.name)
        return run(found, node, grads)

    monkeypatch.setattr(straight, "run", counted)
    return runs


def test_the_third_time_is_straight(monkeypatch):
    runs = count_runs(monkeypatch)
    # graphs that other tests made known must not serve
    monkeypatch.setattr(familiar, "backward", lambda *arguments: False)
    x = torch.randn(7, 11, requires_grad=True)
    for _ in range(straight.OFTEN + 2):
        x.sum(1).sum().backward()
    assert runs == ["sum", "sum"] * 2
    x.sum(1).sum().backward(create_graph=True)  # differentiated itself: by the rules
    assert len(runs) == 4
    assert torch.equal(x.grad, torch.full((7, 11), float(straight.OFTEN + 3)))


def test_a_changed_saved_value_is_still_an_error(monkeypatch):
    monkeypatch.setattr(straight, "OFTEN", 0)
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    z = (y * y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_results_that_took_no_part_have_no_gradient(monkeypatch):
    monkeypatch.setattr(straight, "OFTEN", 0)
    x = torch.randn(4, 6, requires_grad=True)
    first, _ = x.chunk(2, 1)
    first.sum().backward()
    assert x.grad.tolist() == [[1.0] * 3 + [0.0] * 3] * 4


def test_half_gradients_keep_their_type(monkeypatch):
    monkeypatch.setattr(straight, "OFTEN", 0)
    x = torch.randn(4, 6, dtype=torch.bfloat16, requires_grad=True)
    (x * x).float().sum().backward()
    assert x.grad.dtype is torch.bfloat16


def test_shapes_are_forgotten_in_time(monkeypatch):
    monkeypatch.setattr(straight, "MOST", 5)
    for size in range(1, 20):
        x = torch.randn(size, 3, requires_grad=True)
        x.sum(0).sum().backward()
        (plan,) = x.sum(0).grad_fn.op.plans.values()
        assert len(plan.straight) <= 5
