"""Calls and backwards that raise in the middle leave what eager leaves."""

from pathlib import Path

import pytest
import wengert as torch
import wengert.nn.functional as F


def leaves():
    torch.manual_seed(0)
    return [torch.randn(3).requires_grad_() for _ in range(4)]


def left(tensors):
    """What can be seen of leaves."""
    return [(t._version, None if t.grad is None else (t.grad.tolist(), t.grad._version))
            for t in tensors]  # fmt: skip


def close(a, b):
    if isinstance(a, float):
        return a == pytest.approx(b, rel=1e-4)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


def attempt(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)[:75]
    return None


def two_products(a, b, c, d):
    return ((a * b).exp() * c + d).sum()


def shared_leaf(a, b, c, d):
    return (((a * b).tanh() * c).sigmoid() + d.exp() * a).sum()


def several_results(a, b, c, d):
    y = a * b
    return (y.exp() * c).sum() + y[0] * d[1]


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("written", [(), (0,), (1,), (2,), (3,), (0, 2), (1, 3)])
@pytest.mark.parametrize("body", [two_products, shared_leaf, several_results])
def test_backward_that_needs_what_was_written_or_freed(body, written, retain):
    def run(wrap):
        tensors, f, found = leaves(), wrap(body), []
        for _ in range(4):
            y = f(*tensors)
            with torch.no_grad():
                for k in written:
                    tensors[k].mul_(1.5)
            for _ in range(3):
                found.append((attempt(lambda y=y: y.backward(retain_graph=retain)), left(tensors)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_leaves_that_wait_for_other_histories():
    """A leaf that is used outside too gets its gradient when that history was gone through."""

    def run(wrap):
        a, b, c, d = leaves()
        f, found = wrap(two_products), []
        for k in range(4):
            older = (d * 2).sum() if k % 2 else (c * 2).sum()
            y = f(a, b * 1, c, d) * 2 + older
            with torch.no_grad():
                c.mul_(1.5)
            found.append((attempt(y.backward), left((a, b, c, d))))
            z = f(a, b, c, d)
            with torch.no_grad():
                c.mul_(1.5)
            found.append(attempt(lambda z=z: torch.autograd.grad(z, [d, a])))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("mode", ["create_graph", "inputs"])
def test_other_ways_to_go_backward(mode):
    def run(wrap):
        tensors, f, found = leaves(), wrap(two_products), []
        options = {"create_graph": True} if mode == "create_graph" else {"inputs": tensors[1:]}
        for _ in range(4):
            y = f(*tensors)
            with torch.no_grad():
                tensors[2].mul_(1.5)
            found.append((attempt(lambda y=y: y.backward(**options)), left(tensors)))
            for tensor in tensors:
                tensor.grad = None
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_the_error_names_op_and_call():
    def body(x, y):
        return (x * y).sum()  # the op

    f = torch.compile(body)
    x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    for _ in range(3):
        out = f(x, y)  # the call
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError) as caught:
        out.backward()
    lines = Path(__file__).read_text().split("\n")
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert f"{__file__}:{lines.index('        return (x * y).sum()  # the op') + 1}" in text
    assert f"{__file__}:{lines.index('        out = f(x, y)  # the call') + 1}" in text


# --- errors that depend on values ----------------------------------------------------------------

ERRORS = {
    "index": (lambda i, a: a[i], torch.tensor([0, 1]), torch.tensor([0, 7])),
    "division": (lambda i, a: 5 // i, torch.tensor([2, 1]), torch.tensor([0, 1])),
    "inverse": (lambda i, a: torch.linalg.inv(i), torch.eye(2), torch.zeros(2, 2)),
    "targets": (lambda i, a: F.cross_entropy(a.expand(2, 3), i), torch.tensor([0, 1]),
                torch.tensor([0, 5])),
    "bernoulli": (lambda i, a: torch.bernoulli(i), torch.full((2,), 0.5), torch.full((2,), 5.0)),
    "multinomial": (lambda i, a: torch.multinomial(i, 1), torch.ones(2), -torch.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_after_effects(name):
    op, good, bad = ERRORS[name]

    def run(wrap):
        tensors, buffer, found = leaves(), torch.zeros(3), []
        optimizer = torch.optim.SGD(tensors, lr=0.01, momentum=0.5)

        def body(i, a, b, c, d):
            buffer.add_(1)
            optimizer.zero_grad()
            ((a * b).tanh() * c + d).sum().backward()
            optimizer.step()
            r = torch.rand(2)
            x = op(i, a.detach())
            buffer.mul_(2)
            return x.double().sum() + r.sum()

        f = wrap(body)
        torch.manual_seed(3)
        for i in (good, good, good, good, bad, good, bad, good):
            raised = attempt(lambda i=i: found.append(f(i, *tensors).item()))
            moments = [s["momentum_buffer"].tolist() for s in optimizer.state.values()]
            found.append((raised, left(tensors), buffer.tolist(), buffer._version, moments,
                          torch.rand(1).item()))  # fmt: skip
        return found

    assert close(run(torch.compile), run(lambda f: f))
