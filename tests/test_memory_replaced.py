"""Memory of inputs is replaced (`w.data = ...`) between a compiled forward and its backward.

Eager reads the new memory where it kept the tensor, the old where it kept a view of it.
"""

import weakref

import pytest
import wengert as torch
import wengert.nn.functional as F
from portions import half
from scenarios import data
from test_backward_stopped import attempt, close


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad * w, grad * x


def branching(x, w):
    y = x @ w.t()
    if y.sum() > 1000:
        return y
    return (y * 2) @ w.t()


BODIES = {
    "itself": lambda x, w: x @ w,
    "view": lambda x, w: x @ w.t(),
    "both": lambda x, w: x @ w.t() * w.sum() + w * w,
    "layers": lambda x, w: F.linear(torch.tanh(F.linear(x, w)), w),
    "computed": lambda x, w: (x.t() * w.view(-1).view(3, 3)).sin(),
    "expanded": lambda x, w: x.expand(2, 3, 3) * w,
    "detached": lambda x, w: x * w.detach(),
    "branching": branching,
    "custom": Product.apply,
    "custom on views": lambda x, w: Product.apply(x.t(), w.t()),
    "dropped": lambda x, w: F.dropout(x @ w.t(), 0.5) @ w,
}


def other(k, grad=False):
    return data(3, 3, k=k).double().requires_grad_(grad)


def counted(tensor):
    with torch.no_grad():
        tensor.mul_(3)


def replaced(x, w, alias):
    w.data = other(50)


def twice(x, w, alias):
    w.data = other(50)
    w.data = other(51)


def written_then(x, w, alias):
    w.data = other(50)
    counted(w)


def written_before(x, w, alias):
    counted(w)
    w.data = other(50)


def written_behind(x, w, alias):
    w.data = other(50)
    alias.data.mul_(2)


def counted_behind(x, w, alias):
    w.data = other(50)
    counted(alias)


def both(x, w, alias):
    w.data, x.data = other(50), other(52)


def with_a_write(x, w, alias):
    w.data = other(50)
    x.data.mul_(2)


def put_back(x, w, alias):
    before = w.data
    w.data = other(50)
    w.data = before


CHANGES = [replaced, twice, written_then, written_before, written_behind, counted_behind, both,
           with_a_write, put_back]  # fmt: skip


def plainly(y, x, w, change):
    change()
    y.sum().backward()


def from_a_gradient(y, x, w, change):
    change()
    y.backward(torch.full_like(y, 2.0))


def kept(y, x, w, change):
    y.sum().backward(retain_graph=True)
    change()
    y.sum().backward(retain_graph=True)
    change()
    y.sum().backward()


def differentiated(y, x, w, change):
    change()
    first = torch.autograd.grad((y * y).sum(), (x, w), create_graph=True)
    sum((g * g).sum() for g in first).backward()


def in_between(y, x, w, change):
    first = torch.autograd.grad((y * y).sum(), (x, w), create_graph=True)
    change()
    sum((g * g).sum() for g in first).backward()


def by_a_hook(y, x, w, change):
    handle = x.register_hook(lambda grad: change())
    try:
        y.sum().backward()
    finally:
        handle.remove()


def behind_ops(y, x, w, change):
    z = (y * w.sum()).tanh()
    change()
    z.sum().backward()


WAYS = [plainly, from_a_gradient, kept, differentiated, in_between, by_a_hook, behind_ops]


def outcomes(wrap, body, change, way, captured, twice):
    """Gradients, or the words of errors, of four calls."""
    found, weight = [], other(9, grad=True)
    call = wrap(lambda x: body(x, weight)) if captured else wrap(body)
    second = wrap(lambda a, b: (a * b.t()).tanh())
    for k in range(4):
        x, w = other(k, grad=True), weight if captured else other(k + 20, grad=True)
        w.grad, alias = None, w.detach()
        torch.manual_seed(k)
        y = call(x) if captured else call(x, w)
        y = second(y * 1, w) if twice else y
        error = attempt(lambda y=y, x=x, w=w, a=alias: way(y, x, w, lambda: change(x, w, a)))
        found.append((error, [t.grad.tolist() if t.grad is not None else None for t in (x, w)]))
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BODIES)
def test_backward_reads_what_eager_kept(name, way):
    body = BODIES[name]
    turn = [*BODIES].index(name) + [*WAYS].index(way)
    for number, change in half(enumerate(CHANGES), turn):
        captured, twice = bool(number % 2), number % 3 == 1
        runs = [outcomes(wrap, body, change, way, captured, twice)
                for wrap in (torch.compile, lambda f: f)]  # fmt: skip
        assert close(*runs), change


def test_memory_that_nobody_needs_is_let_go():
    """Neither the tensor nor its new storage keeps the old memory alive."""
    w = other(1, grad=True)
    call = torch.compile(lambda x: x @ w.t())
    for _ in range(4):
        y = call(other(2, grad=True))
        before = weakref.ref(w._array)
        w.data = other(5)
        assert before() is not None
        y.sum().backward()
        assert before() is None


def test_versions_stay_ints():
    w = data(3, grad=True)
    counted(w)
    w.data = data(3, k=1)
    assert type(w._version) is int and w._version == 1


KEPT = {
    "detached": lambda x, w: x * w.detach() * w,
    "data": lambda x, w: x * w.data * w,
    "data alone": lambda x, w: x * w.data,
    "view of detached": lambda x, w: x @ w.detach().t() * w,
    "detached view": lambda x, w: x @ w.t().detach() * w,
    "computed": lambda x, w: (x * w.detach()).exp() * w + x * w.data,
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", KEPT)
def test_what_was_detached_stays_on_the_old_memory(name, grad):
    """Whose writes `detach()` counts, and `.data` does not."""
    for change in (counted_behind, written_behind, written_before, lambda x, w, a: counted(w)):
        found = []
        for call in (torch.compile(KEPT[name]), KEPT[name]):
            found.append([])
            for k in range(4):
                x, w = other(k, grad=True), other(k + 20, grad=grad)
                y, alias = call(x, w), w.detach()
                change(x, w, alias)
                error = attempt((y * y).sum().backward)
                found[-1].append((error, None if x.grad is None else x.grad.tolist(),
                                  None if w.grad is None else w.grad.tolist()))  # fmt: skip
        assert close(*found), change
