"""The short way of ops that do not promote gives what the general way gives."""

import itertools

import pytest
import wengert as torch
from catalogue_cases import cases_of, leaf, ops
from wengert.ir.op import TABLE
from wengert.tracer import eager, plain


def facts(out):
    """All that a result shows."""
    node = out.grad_fn
    view = out._view
    return (
        out.dtype, tuple(out.shape), out.stride(), out.detach().numpy().tobytes(),
        out.requires_grad, out.is_leaf, out._mark, type(node).__name__,
        node and (node.types, node.uniform, node.attrs, len(node.saved), node.versions,
                  [e and (type(e[0]).__name__, e[1]) for e in node.edges], node.place[1] > 0),
        view and (view.seen, view.origin, [step[0].name for step in view.chain]),
    )  # fmt: skip


def run(case, needs, chained=False):
    inputs = [leaf(x, needs) for x in case.inputs]
    if chained:  # views of results: with a chain of views, and a history
        inputs = [x.unsqueeze(0).squeeze(0) if isinstance(x, torch.Tensor) else x for x in inputs]
    results = case.op(*inputs, **case.attrs)
    return [facts(r) for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("name", [n for n in ops() if plain.can_be(TABLE[n])])
def test_both_ways_agree(name, monkeypatch):
    op = TABLE[name]
    for case in cases_of(op):
        for needs, chained in itertools.product((False, True), repeat=2):
            for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
                with mode(), monkeypatch.context() as patch:
                    quick = run(case, needs, chained)
                    patch.setattr(op, "plain", lambda inputs, attrs: None)
                    patch.setattr(eager, "run_plain", lambda op, inputs, attrs: None)
                    assert run(case, needs, chained) == quick


def written(function):
    """Calls it until the short ways of its ops are written, whatever ran before."""
    for _ in range(eager.MANY_CALLS + 2):
        function()


def test_small_calls_take_it(monkeypatch):
    x = torch.ones(3, 4, requires_grad=True)
    written(lambda: x.t().mm(x).sum(0)[1:])
    monkeypatch.setattr(eager, "run_plain", None)
    y = x.t().mm(x).sum(0)[1:]
    assert y.tolist() == [12.0, 12.0, 12.0]
    assert type(y.grad_fn).__name__ == "SliceBackward0"


def test_calls_in_inference_mode_take_it(monkeypatch):
    x = torch.ones(3, 4, requires_grad=True)
    with torch.inference_mode():
        written(lambda: x.t().mm(x).sum(0) * 2.0)
        monkeypatch.setattr(eager, "run_plain", None)
        y = x.t().mm(x).sum(0)
        assert y.is_inference() and (y * 2.0).is_inference() and not x.t().is_inference()
        monkeypatch.setattr(eager, "relate", None)  # the general way ends there
        assert (y * 2.0 + y).tolist() == [36.0] * 4
