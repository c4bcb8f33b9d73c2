"""A Function's context takes attributes of any name, also of the node's own parts."""

from typing import ClassVar

import pytest
import wengert as torch
from wengert.tracer import context_names

NAMES = sorted(context_names._HIDDEN)


class Marked(torch.autograd.Function):
    """Doubles; its context has an attribute under each name that the node uses itself."""

    seen: ClassVar[list] = []

    @staticmethod
    def forward(ctx, x):
        for name in NAMES:
            setattr(ctx, name, f"my {name}")
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        Marked.seen.append([getattr(ctx, name) for name in NAMES])
        ctx.place = "moved"
        return grad * 2 * x


@pytest.fixture
def called():
    Marked.seen.clear()
    x = torch.full((2,), 3.0, requires_grad=True)
    return x, Marked.apply(x)


WANTED = [f"my {name}" for name in NAMES]


def test_attributes_are_seen_inside_and_outside(called):
    x, y = called
    node = y.grad_fn
    assert [getattr(node, name) for name in NAMES] == WANTED
    (y * 1).sum().backward(retain_graph=True)
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 12.0]
    assert [seen[:5] for seen in Marked.seen] == [WANTED[:5]] * 2
    assert node.place == "moved"


def test_the_node_works_as_ever(called):
    x, y = called
    node = y.grad_fn
    assert node.name() == type(node).__name__ == "MarkedBackward"
    assert node.next_functions[0][0].variable is x
    calls = []
    node.register_hook(lambda *grads: calls.append(len(grads)))
    y.sum().backward()
    assert calls == [2]
    assert {"extra", "edges", "_count"} <= set(dir(node))
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.sum().backward()


def test_attributes_may_be_set_and_deleted_outside(called):
    _, y = called
    node = y.grad_fn
    node.extra = 5
    assert node.extra == 5
    del node.extra
    assert not hasattr(node, "extra")


def test_what_backward_sets():
    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            ctx.edges, ctx.extra, ctx.plan = "e", "x", "p"
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    y = Late.apply(x)
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    node = y.grad_fn
    assert (node.edges, node.extra, node.plan) == ("e", "x", "p")
    assert x.grad.tolist() == [4.0, 4.0]


def test_inside_a_compiled_function():
    step = torch.compile(lambda x: Marked.apply(x * 1) + 1)
    Marked.seen.clear()
    for k in range(3):
        x = torch.full((2,), float(k), requires_grad=True)
        step(x).sum().backward()
        assert x.grad.tolist() == [2.0 * k, 2.0 * k]
    assert all(seen[:5] == WANTED[:5] for seen in Marked.seen)
