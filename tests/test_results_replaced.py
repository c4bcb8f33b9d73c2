"""The memory of a result of a compiled call is replaced (`y.data = ...`) before backward.

Eager reads the new memory where an op kept the tensor, the old where one kept its own output, or
something that was made of the tensor.
"""

import pytest
import wengert as torch
from test_backward_stopped import attempt, close


def branching(x, w):
    v = x * w
    u = v.sin()
    if v.sum() > 1000:
        return v
    return v, u * v * v.detach()


def of_a_value(x, w):
    v = w.detach() * 2
    return v, x * v


BODIES = {
    "output": lambda x, w: (x.exp(),),
    "operand": lambda x, w: (lambda v: (v, v * v))(x * w),
    "both": lambda x, w: (lambda v: (v, v.sin() * v * w))((x * w).exp()),
    "detached": lambda x, w: (lambda v: (v, v * v * v.detach()))(x * w),
    "data": lambda x, w: (lambda v: (v, v * v * v.data))(x * w),
    "views": lambda x, w: (lambda v: (v, v.t() @ v + w))(x * w),
    "a view is returned": lambda x, w: (lambda v: (v.t(), v * v))(x * w),
    "without history": of_a_value,
    "branching": branching,
}


def other(k):
    return torch.arange(4.0).add(k).div(7).view(2, 2)


def counted(tensor):
    with torch.no_grad():
        tensor.mul_(2)


def replaced(y, alias):
    y.data = other(5)


def twice(y, alias):
    y.data = other(5)
    y.data = other(6)


def written_then(y, alias):
    y.data = other(5)
    y.data.mul_(2)


def counted_then(y, alias):
    y.data = other(5)
    counted(y)


def written_behind(y, alias):
    y.data = other(5)
    alias.data.mul_(2)


def counted_behind(y, alias):
    y.data = other(5)
    counted(alias)


def written_before(y, alias):
    y.data.mul_(2)
    y.data = other(5)


def put_back(y, alias):
    before = y.data
    y.data = other(5)
    y.data = before


CHANGES = [replaced, twice, written_then, counted_then, written_behind, counted_behind,
           written_before, put_back]  # fmt: skip


def plainly(results, x, w, change):
    change()
    results[-1].sum().backward()


def kept(results, x, w, change):
    results[-1].sum().backward(retain_graph=True)
    change()
    results[-1].sum().backward(retain_graph=True)
    change()
    sum((r * r).sum() for r in results if r.requires_grad).backward()


def differentiated(results, x, w, change):
    change()
    first = torch.autograd.grad(results[-1].sum(), (x, w), create_graph=True, allow_unused=True)
    total = sum((g * g).sum() for g in first if g is not None)
    if total.requires_grad:
        total.backward()


def outcomes(call, change, way):
    """Gradients, or the words of errors, of four calls."""
    found = []
    for k in range(4):
        x, w = other(k).requires_grad_(), other(k + 2).requires_grad_()
        results = call(x, w)
        y, alias = results[0], results[0].detach()
        error = attempt(lambda r=results, x=x, w=w, y=y, a=alias: way(
            r, x, w, lambda: change(y, a)))  # fmt: skip
        found.append((error, [t.grad.tolist() if t.grad is not None else None for t in (x, w)]))
    return found


@pytest.mark.parametrize("way", [plainly, kept, differentiated])
@pytest.mark.parametrize("name", BODIES)
def test_backward_reads_what_eager_kept(name, way):
    body = BODIES[name]
    for change in CHANGES:
        if name == "branching" and change is counted_behind:
            continue  # of writes to the old memory it is not told
        want, got = (outcomes(call, change, way) for call in (body, torch.compile(body)))
        assert close(want, got), change
