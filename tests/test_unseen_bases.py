"""Results that show all of a tensor which nobody else sees are views of it, as in eager."""

import copy

import pytest
import wengert as torch
from wengert import nn

torch.manual_seed(0)
LAYER = nn.Linear(3, 4)
BODIES = {
    "view": lambda x: (x * 2).view(-1),
    "unsqueeze": lambda x: (x * 2).unsqueeze(0),
    "two views": lambda x: (x * 2).view(3, 2).unsqueeze(1),
    "layer": lambda x: LAYER(x.reshape(1, 2, 3)),
    "two results": lambda x: ((x * 2).view(-1), (x + 1).view(3, 2)),
    "among others": lambda x: {"a": [(x * 2).flatten()], "b": x + 1},
    "written before": lambda x: (x * 2).add_(1).view(-1),
    "branch": lambda x: (x * 2).view(-1) if x.sum() > -100 else x,
    "no result is one": lambda x: x * 2,
}


def tensors_of(made):
    if isinstance(made, torch.Tensor):
        return [made]
    return [t for part in (made.values() if isinstance(made, dict) else made)
            for t in tensors_of(part)]  # fmt: skip


def facts(t):
    base = t._base
    found = [t._is_view(), t._version, t.is_leaf, t.requires_grad, t.tolist()]
    if base is not None:
        found += [base is t._base, base._is_view(), base._base is None, base._version,
                  tuple(base.shape), base.requires_grad, base.is_leaf, base.tolist(),
                  base.data_ptr() == t.data_ptr(), base.stride()]  # fmt: skip
    return found


def attempt(call):
    try:
        found = call()
    except Exception as error:
        return type(error).__name__, str(error)[:60]
    return found.tolist() if isinstance(found, torch.Tensor) else found


def write(y):
    y.mul_(3)
    return facts(y)


def write_base(y):
    if y._base is None:
        return None
    base = y._base
    base.mul_(3)
    return facts(y), base.grad_fn is None


def write_before_asking(y):
    y.view(-1)[0] = 5.0
    y.add_(1)
    return facts(y)


def write_leaf(y):
    y = y.detach() if y.requires_grad else y
    return facts(y.requires_grad_()), attempt(lambda: y.mul_(2))


def views_of_it(y):
    z = y.view(-1)
    return (facts(z), z._base is (y._base if y._is_view() else y), facts(y[:1]),
            facts(y.detach()), facts(y.data))  # fmt: skip


def views_of_base(y):
    if y._base is None:
        return None
    z = y._base.view(-1)
    z[0] = 7.0
    return facts(z), z._base is y._base, facts(y)


LATER = {
    "facts": facts,
    "written": write,
    "base written": write_base,
    "written before": write_before_asking,
    "leaf": write_leaf,
    "views": views_of_it,
    "views of the base": views_of_base,
    "detach_": lambda y: (attempt(lambda: facts(y.detach_())), facts(y)),
    "detach_ the base": lambda y: None if y._base is None else facts(y._base.detach_()),
    "data": lambda y: (setattr(y, "data", torch.zeros_like(y.detach())), facts(y)),
    "hooks": lambda y: hooked(y),
    "used before": lambda y: used_before(y),
    "set_": lambda y: attempt(lambda: facts(y.detach().set_(torch.zeros(2)))),
    "transposed": lambda y: (facts(y.unsqueeze_(0)), facts(y.unsqueeze_(-1))),
    "copied": lambda y: (attempt(lambda: facts(copy.copy(y))), facts(copy.deepcopy(y.detach()))),
    "under no_grad": lambda y: under_no_grad(y),
}  # fmt: skip


def hooked(y):
    """Hooks and kept gradients of both."""
    log = []
    if not y.requires_grad:
        return log
    y.register_hook(lambda g: log.append(("before", g.tolist())))
    y.retain_grad()
    base = y._base
    if base is not None:
        base.register_hook(lambda g: log.append(("base", tuple(g.shape), g.tolist())))
        base.retain_grad()
    y.register_hook(lambda g: log.append(("after", g.tolist())))
    y.exp().sum().backward(retain_graph=True)
    return sorted(log), y.grad.tolist(), None if base is None else base.grad.tolist()


def used_before(y):
    """Views and history of it that are older than the question."""
    row, used = y.view(-1)[1:], (y * 2).sum()
    found = [facts(row), row._base is (y._base if y._is_view() else y), facts(y)]
    row.mul_(2)
    found += [facts(row), facts(y), used.item()]
    if y.requires_grad:
        used.backward(retain_graph=True)
    return found


def under_no_grad(y):
    with torch.no_grad():
        found = facts(y)
        y.mul_(2)
        return found, facts(y)


CASES = [(body, tracked, later) for i, body in enumerate(BODIES) for tracked in (False, True)
         for k, later in enumerate(LATER) if (i + tracked + k) % 2]  # fmt: skip


@pytest.mark.parametrize("body, tracked, later", CASES)  # each pair of these
def test_results(body, tracked, later):
    def run(wrap):
        f, found = wrap(BODIES[body]), []
        for k in range(5):
            x = torch.arange(6.0).reshape(2, 3).add(k).requires_grad_(tracked)
            for y in tensors_of(f(x)):
                found.append(LATER[later](y))
                if y.requires_grad and y.grad_fn is not None:
                    y.pow(2).sum().backward()
            found.append(None if x.grad is None else x.grad.tolist())
        return found

    eager, compiled = run(lambda f: f), run(torch.compile)
    for a, b in zip(eager, compiled):
        assert alike(a, b)


def alike(a, b):
    if isinstance(a, float):
        return b == pytest.approx(a, rel=1e-5)
    if isinstance(a, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(alike, a, b))
    return a == b


def test_the_base_of_an_argument_is_compared():
    g = torch.compile(lambda y: y + 1 if y._is_view() else y - 1)
    f = torch.compile(lambda x: (x * 2).view(-1))
    h = torch.compile(lambda x: x.view(-1))
    for k in range(8):
        x = torch.full((2, 2), float(k))
        assert g(f(x)).tolist() == [2 * k + 1.0] * 4
        assert g(x * 1.0).tolist() == [[k - 1.0] * 2] * 2
        y = f(x)
        z = h(y)
        assert z._base is y._base and z._base.shape == (2, 2)


def test_sizes_that_vary():
    f = torch.compile(lambda x: (x * 2).view(-1))
    for n in (2, 3, 4, 5, 7):
        y = f(torch.ones(n, 3))
        assert y._is_view() and y._base.shape == (n, 3)


def test_nothing_is_kept_that_nobody_asked_for():
    f = torch.compile(lambda x: (x * 2).view(-1))
    for _ in range(6):
        y = f(torch.ones(2, 2, requires_grad=True))
    assert type(y.grad_fn).__name__ == "CompiledFunctionBackward" and y._view is None
    y.sum().backward()


def test_inference_mode():
    f = torch.compile(lambda x: (x * 2).view(-1))
    for _ in range(5):
        with torch.inference_mode():
            y = f(torch.ones(2, 2))
        assert y._is_view() and y._base.is_inference() and y._base.shape == (2, 2)
        assert y._base.tolist() == [[2, 2], [2, 2]] and not y._base._is_view()


def test_another_type():
    f = torch.compile(lambda x: (x * 2).view(torch.int32))
    for _ in range(5):
        y = f(torch.ones(2, 2))
        assert y._is_view() and y._base.dtype is torch.float32
