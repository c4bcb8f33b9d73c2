"""Nodes of compiled calls that have no AccumulateGrad of a leaf yet: nobody can tell."""

import gc
import weakref

import pytest
import wengert as torch
from native_calls import settled
from wengert.runtime import watch

native = pytest.mark.skipif(bool(watch.trouble()), reason="calls are not bound here")


def doubled(x):
    function = torch.compile(lambda x: (x * 2).sum())
    settled(function, x)
    return function


def node_of(x):
    return x.view_as(x).grad_fn.next_functions[0][0]


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0], requires_grad=True)


@native
def test_calls_share_what_stands_for_accumulators(x):
    function = doubled(x)
    for _ in range(4):  # the first of them ask Python
        function(x).backward()
    x.grad = None
    one, two = function(x), function(x)
    assert one.grad_fn.unmade is two.grad_fn.unmade
    assert x._leaf.accumulator() is None
    one.backward()
    assert x._leaf.accumulator() is None and x.grad.tolist() == [2.0, 2.0]
    other = torch.tensor([3.0, 4.0], requires_grad=True)
    settled(function, other)
    assert function(other).grad_fn.unmade is not two.grad_fn.unmade


def test_hooks_given_meanwhile_are_kept_by_graphs_that_are_older(x):
    function = doubled(x)
    before, calls = function(x), []
    node_of(x).register_prehook(lambda grads: calls.append("hook"))
    after = function(x)
    assert before.grad_fn.next_functions[0][0] is after.grad_fn.next_functions[0][0]
    before.backward()
    assert calls == ["hook"] and x.grad.tolist() == [2.0, 2.0]
    after.backward()
    assert calls == ["hook", "hook"]


def test_hooks_go_with_the_last_graph(x):
    function = doubled(x)
    before, calls = function(x), []
    node = node_of(x)
    node.register_prehook(lambda grads: calls.append("hook"))
    gone = weakref.ref(node)
    del node
    assert gone() is not None  # held by the graph that has not asked for it
    del before
    assert gone() is None
    function(x).backward()
    assert not calls


def test_metadata_stay_with_the_graph(x):
    function = doubled(x)
    out = function(x)
    node_of(x).metadata["note"] = 1
    assert out.grad_fn.next_functions[0][0].metadata == {"note": 1}


def test_a_graph_whose_backward_ran_still_leads_to_the_leaf(x):
    function = doubled(x)
    w = torch.tensor([3.0, 4.0])
    both = torch.compile(lambda x, w: (x * w).sum())
    settled(both, x, w)
    for _ in range(4):
        out, scaled = function(x), both(x, w)
        out.backward()
        scaled.backward()
    ((node, number),) = out.grad_fn.next_functions
    assert node.variable is x and number == 0 and node is node_of(x)
    assert scaled.grad_fn.next_functions == ((node, 0),)
    with pytest.raises(RuntimeError, match="a second time"):
        scaled.backward()


def test_leaves_are_held_by_graphs_alone():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function = doubled(x)
    for _ in range(4):
        function(x).backward()
    out = function(x)
    out.backward()
    gone = weakref.ref(x)
    del x
    assert gone() is not None and out.grad_fn.next_functions[0][0].variable is gone()
    del out
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("retain", [False, True])
def test_flags_of_leaves_may_change_before_backward(x, retain):
    function = doubled(x)
    out = function(x)
    x.requires_grad_(False)
    out.backward(retain_graph=retain)
    assert x.grad is None
    assert out.grad_fn.next_functions[0][0].variable is x


def test_leaves_that_become_results_are_still_at_the_end(x):
    function = doubled(x)
    out = function(x)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    x.requires_grad_(False)
    x.mul_(w)
    assert x.grad_fn is not None
    assert out.grad_fn.next_functions[0][0].variable is x


def test_gradients_of_several_paths(x):
    function = torch.compile(lambda x, y: (x * y).sum())
    y = torch.tensor([3.0, 4.0], requires_grad=True)
    settled(function, x, y)
    inner = x * 2  # has history, y is a leaf
    settled(function, inner, y)
    x.grad = y.grad = None
    total = function(inner, y) + function(x, y)
    (dx,) = torch.autograd.grad(total, x, retain_graph=True)
    total.backward()
    assert dx.tolist() == x.grad.tolist() == [9.0, 12.0]
    assert y.grad.tolist() == [3.0, 6.0]


@native
def test_tensors_that_stand_for_leaves(x):
    from wengert.tracer.saved import attach_edge

    function = doubled(x)
    stand_in = torch.tensor([1.0, 2.0])
    attach_edge(stand_in, (node_of(x), 0))
    for _ in range(4):
        function(stand_in).backward()
    assert x.grad.tolist() == [8.0, 8.0]
