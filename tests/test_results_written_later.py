"""Backward after somebody wrote to a result: it raises, or computes with what is there now.

In eager a result may be memory that backward keeps, whole or in part, as it is, by `detach()` or
by `.data`. Writes to it are counted or not: by `.data` and by NumPy they are not.
"""

import itertools

import numpy as np
import pytest
import wengert as torch
from portions import half

KEPT = {
    "itself": lambda v: (v * v).sum(),
    "detached": lambda v: (v * v.detach()).sum(),
    "data": lambda v: (v * v.data).sum(),
    "both": lambda v: (v * v.data.detach()).sum() + (v * v).sum(),
    "turned": lambda v: (v * v.data.t().t()).sum(),
    "view": lambda v: (v.view(-1) * v.view(-1).detach()).sum(),
    "part": lambda v: (v * v[0].data).sum(),
    "result": lambda v: v.exp().sum(),
}
RETURNED = {
    "itself": lambda v: v,
    "turned": lambda v: v.t(),
    "flat": lambda v: v.view(-1),
    "slice": lambda v: v[:, 1:],
    "row of detached": lambda v: v.detach()[0],
    "data": lambda v: v.data,
    "turned data": lambda v: v.data.t(),
}


def counted(result):
    with torch.no_grad():
        result.mul_(2)


WRITES = {
    "data": lambda result: result.data.mul_(2),
    "counted": counted,
    "numpy": lambda result: np.multiply(*[result.detach().numpy()] * 2, result.detach().numpy()),
    "none": lambda result: result.detach().numpy(),
}


def made(keep, give, branch):
    def body(x):
        v = x * 1.0 - 0.25
        if branch == "before" and v.sum() > 1000:
            v = v * 2
        total = keep(v) + give(v).sum()
        if branch == "after" and v.sum() > 1000:
            total = total * 2
        return total, give(v)

    return body


def gradients(function, write, create_graph=False):
    """Of three calls; where backward raises, its words."""
    found = []
    for _ in range(3):
        x = torch.arange(6.0).reshape(2, 3).requires_grad_()
        total, result = function(x)
        write(result)
        try:
            (grad,) = torch.autograd.grad(total, x, create_graph=create_graph)
            found.append(grad.detach())
            if grad.requires_grad:
                found.append(torch.autograd.grad(grad.sum(), x, allow_unused=True)[0])
        except RuntimeError as error:
            found.append(str(error).partition(":")[0])
    return found


def alike(a, b):
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return torch.allclose(a, b) if tensors else a == b


@pytest.mark.parametrize("write", ["data", "numpy"])
@pytest.mark.parametrize("branches", [False, True])
def test_results_that_are_turned_in_memory(branches, write):
    for give in (lambda v: v, lambda v: v.t(), lambda v: v.detach()[0], lambda v: v.data):
        for keep in (KEPT["itself"], KEPT["data"], KEPT["part"]):

            def body(x, keep=keep, give=give):
                v = x.t() * 2
                if branches and v.sum() > 1000:
                    v = v * 2
                return keep(v), give(v)

            want, got = (gradients(f, WRITES[write]) for f in (body, torch.compile(body)))
            assert all(map(alike, want, got)), (want, got)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("branch", ["", "before", "after"])
def test_backward_sees_what_is_written_to_results(branch, create_graph, write):
    number = [*WRITES.values()].index(write) + create_graph
    for kept, returned in half(itertools.product(KEPT, RETURNED), number):
        body = made(KEPT[kept], RETURNED[returned], branch)
        want = gradients(body, write, create_graph)
        got = gradients(torch.compile(body), write, create_graph)
        assert len(want) == len(got) and all(map(alike, want, got)), (kept, returned, want, got)


def test_paths_that_hand_on_other_values():
    """A segment that two paths share holds what either of them hands out."""

    def body(x):
        v = x * 2
        w = v * 3
        if x.sum() > 0:
            return (v * v.data).sum() + (w * w.data).sum(), v
        return (v * v.data).sum() + (w * w.data).sum(), w

    compiled = torch.compile(body)
    for sign in (1.0, -1.0, 1.0, -1.0):
        found = []
        for function in (body, compiled):
            x = torch.full((3,), sign, requires_grad=True)
            total, result = function(x)
            result.data.mul_(5)
            total.backward()
            found.append(x.grad.tolist())
        assert found[0] == found[1]


def test_create_graph_after_an_input_was_written():
    def body(x, w):
        return (x * w).sin().sum()

    compiled = torch.compile(body)
    for _ in range(3):
        found = []
        for function in (body, compiled):
            x, w = (torch.arange(3.0).add(k).requires_grad_() for k in (1, 2))
            total = function(x, w)
            w.data.mul_(2)
            first = torch.autograd.grad(total, (x, w), create_graph=True)
            second = torch.autograd.grad(sum(g.sum() for g in first), (x, w))
            found.append((*first, *second))
        assert all(map(alike, *found)), found


PACKED = {
    "flat": lambda v: (v.reshape(-1), v.sin()),
    "turned": lambda v: (v.t(), v.sin()),
    "turned in memory": lambda v: (lambda t: (t, t.sin()))(v.t() * v.t()),
    "turned back": lambda v: (lambda t: (t.t(), t.sin()))(v.t() * v.t()),
    "part of a flat one": lambda v: (v.view(-1), v[1:].sin(), v[1:].exp()),
    "part": lambda v: (v[1:], v.sin()),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("pack", [lambda t: t, lambda t: t.detach(), lambda t: t.clone()])
def test_values_that_hooks_were_given_show_writes(pack, write):
    for name, body in PACKED.items():
        compiled = torch.compile(lambda x, body=body: body(x * 1.5))
        for _ in range(4):
            found = []
            for function in (lambda x, body=body: body(x * 1.5), compiled):
                x = torch.linspace(-1, 2, 9).view(3, 3).requires_grad_()
                with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                    first, *others = function(x)
                WRITES[write](first)
                sum([t.sum() for t in others]).backward()
                found.append(x.grad)
            assert alike(*found), name
