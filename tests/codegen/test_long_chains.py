"""Kernels of thousands of instructions: nothing nests as deeply as a graph is long."""

import wengert as torch
from graphs import build
from wengert.codegen import cluster
from wengert.codegen.schedule import Scheduler


def test_a_long_chain_is_one_kernel():
    def chain(x):
        for _ in range(600):
            x = x * 0.5 + 1
        return x

    function = torch.compile(chain)
    function(torch.ones(8))
    assert function(torch.ones(8)).tolist() == [2.0] * 8
    assert "replayed 1 times" in function.explain()


def test_a_weight_may_be_read_in_hundreds_of_places():
    """Its gradient is a sum of as many terms, added up in one kernel."""
    w = torch.full((4, 4), 0.25, requires_grad=True)

    def repeated(x):
        for _ in range(260):
            x = (x @ w).tanh()
        return x.sum()

    grads = []
    for function in (repeated, torch.compile(repeated)):
        for _ in range(2):
            w.grad = None
            function(torch.ones(4, 4)).backward()
        grads.append(w.grad)
    assert "replayed 1 times" in function.explain()
    assert torch.allclose(*grads, rtol=1e-4)


def test_clusters_of_a_section_know_only_each_other(monkeypatch):
    """What each knows of the others does not grow with the graph, nor does the time it takes."""

    def chain(x):
        for _ in range(40):
            x = x.softmax(0).softmax(1)
        return x

    monkeypatch.setattr(cluster, "SECTION", 8)
    plan = Scheduler(build(chain, ("float32", 3, 5)))
    assert len(plan.order.closed) > 50 and len(plan.order.section) <= 8
    assert all(c.above == c.mask == 0 for c in plan.order.closed)
    assert max(c.above.bit_length() for c in plan.order.section) < 100
    for c in plan.clusters:
        assert all(d.position < c.position for d in c.deps)
