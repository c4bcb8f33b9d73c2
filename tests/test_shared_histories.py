"""Results that share a part of their history: backward from one frees what it comes to, and from
another it raises when it comes there, behind compiled calls as in eager."""

import itertools

import pytest
import wengert as torch
import wengert.nn.functional as F
from custom_functions import Square, Twice
from test_backward_stopped import attempt, close, leaves, left


def products(a, b, c, d):
    y = a * b
    return (y * c).sum(), (y * d).sum()


def kept_results(a, b, c, d):
    y = (a * b).tanh()
    return (y * c).exp().sum(), (y.sin() * d).sum()


def three(a, b, c, d):
    y = a.exp()
    z = y * b
    return z.sum(), (z * c).sum(), (y * d).log1p().sum()


def without_values(a, b, c, d):
    y = a * b
    return (y * c).sum(), (y * d).softmax(0), (d * 2 + y).sum()


def apart_behind_a_branch(a, b, c, d):
    u, v = a.exp() * b, c.exp() * d
    if u.sum() > -1e9:
        return u.sin().sum(), v.sin().sum()
    return u, v


def shared_behind_a_branch(a, b, c, d):
    u = a.exp() * b
    v, w = u * c, u * d
    if u.sum() > -1e9:
        return v.sin().sum(), w.sin().sum()
    return v, w


def custom(a, b, c, d):
    y, z = Twice.apply(a + b), Square.apply(a + b)
    return (y * c).sum(), (y + d).sum(), (z * d).sum(), (z + c).sum()


BODIES = [products, kept_results, three, without_values, apart_behind_a_branch,
          shared_behind_a_branch, custom]  # fmt: skip
WRITES = {
    "nothing": lambda tensor: None,
    "in place": lambda tensor: tensor.mul_(1.5),
    "data": lambda tensor: tensor.data.mul_(1.5),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("body", BODIES)
def test_one_result_after_another(body, write, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")

    def run(function, order, written):
        tensors, found = leaves(), []
        for _ in range(3):
            results = [result.sum() for result in function(*tensors)]
            for k in order:
                found.append((attempt(results[k].backward), left(tensors)))
                with torch.no_grad():
                    WRITES[write](tensors[written])
            for tensor in tensors:
                tensor.grad = None
        return found

    compiled = torch.compile(body)
    for order in itertools.permutations(range(len(body(*leaves())))):
        for written in range(4) if write != "nothing" else (0,):
            call = (order, written)
            assert close(run(compiled, *call), run(body, *call)), call


@pytest.mark.parametrize("write", ["in place", "data"])
def test_writes_before_the_first_backward(write):
    """Eager keeps what is made of `a`, and not `a`: it may be written."""

    def body(a, b, c, d):
        y = a.cumsum(0).exp()
        return (y * b).sum(), (y * c).sum()

    def run(function):
        tensors, found = leaves(), []
        for _ in range(3):
            results = function(*tensors)
            with torch.no_grad():
                WRITES[write](tensors[0])
            found += [(attempt(result.backward), left(tensors)) for result in results]
        return found

    assert close(run(torch.compile(body)), run(body))


def test_what_is_kept():
    """Nothing, where no leaf is left to come to by what is not freed."""
    weight = torch.randn(4, 3).requires_grad_()
    other = torch.randn(3).requires_grad_()
    x, y = torch.randn(5, 4), torch.tensor([0, 1, 2, 0, 1])

    @torch.compile
    def probabilities(x, y):
        logits = x @ weight
        return F.cross_entropy(logits, y), logits.softmax(1)

    @torch.compile
    def heads(x, y):
        hidden = x @ weight
        return F.cross_entropy(hidden, y), (hidden * other).sum()

    for function, is_kept in ((probabilities, False), (heads, True)):
        for _ in range(3):
            loss, rest = function(x, y)
            loss.backward()
        assert (loss.grad_fn.inputs is not None) is is_kept
        weight.grad = other.grad = None
        with pytest.raises(RuntimeError, match="second time"):
            rest.sum().backward()
        assert (other.grad is not None) is is_kept
        assert weight.grad is None
