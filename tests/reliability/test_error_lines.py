"""Errors of compiled functions and of backward: type, key phrase, and the line of the user's op."""

import traceback

import pytest
import wengert as torch
from wengert.nn import functional as F

HERE = __file__
ONES, EYE = torch.ones(4), torch.eye(2)


def indexing(x, index):
    y = x * 2
    return y[index].sum()  # the line


def dividing(a, b):
    c = a + 1
    return c // b  # the line


def factoring(a):
    return torch.linalg.cholesky(a).sum()  # the line


def inverting(a):
    return torch.linalg.inv(a) + 1  # the line


def embedding(index, weight):
    return F.embedding(index, weight).sum()  # the line


def classifying(x, target):
    return F.cross_entropy(x * 2, target)  # the line


def drawing(weights):
    return torch.multinomial(weights, 1)  # the line


def adding(a, b):
    return a.exp() + b  # the line


def integers(*values):
    return torch.tensor(values)


# function, arguments that are fine, arguments that are not, the error
RUNNING = [
    (indexing, (ONES, integers(1, 2)), (ONES, integers(1, 9)), IndexError,
     "index 9 is out of bounds for dimension 0 with size 4"),
    (dividing, (integers(4), integers(2)), (integers(4), integers(0)), RuntimeError,
     "ZeroDivisionError"),
    (factoring, (EYE,), (-EYE,), torch.linalg.LinAlgError, "not positive-definite"),
    (inverting, (EYE,), (EYE * 0,), torch.linalg.LinAlgError, "the input matrix is singular"),
    (embedding, (integers(1), ONES.view(2, 2)), (integers(7), ONES.view(2, 2)), IndexError,
     "index out of range in self"),
    (classifying, (ONES.view(2, 2), integers(0, 1)), (ONES.view(2, 2), integers(0, 5)), IndexError,
     "Target 5 is out of bounds"),
    (drawing, (ONES,), (-ONES,), RuntimeError, "probability tensor contains either"),
    (adding, (ONES, ONES), (ONES, ONES[:3]), RuntimeError,
     "The size of tensor a (4) must match the size of tensor b (3)"),
]  # fmt: skip


def user_line(error):
    """The innermost line of this file that an error went through."""
    return [f.line for f in traceback.extract_tb(error.__traceback__) if f.filename == HERE][-1]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("function", "good", "bad", "kind", "phrase"), RUNNING, ids=[f.__name__ for f, *_ in RUNNING]
)
def test_errors_at_run_time_show_the_line(function, good, bad, kind, phrase, compiled):
    """A replay that fails is run again in Python, so the traceback leads to the op."""
    run = torch.compile(function) if compiled else function
    for _ in range(3):
        expected = run(*good).shape
    with pytest.raises(kind) as caught:
        run(*bad)
    assert phrase in str(caught.value)
    assert user_line(caught.value).endswith("# the line")
    assert run(*good).shape == expected  # and nothing is broken by it


class Crooked(torch.autograd.Function):
    """Its gradient has a wrong shape."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad.repeat(2)


def leaf():
    return torch.ones(2, requires_grad=True)


def overwritten():
    x = leaf()
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def overwritten_in_compiled():
    square = torch.compile(lambda w: (w * w).sum())
    for _ in range(3):
        w = leaf() * 1
        y = square(w)
        w.add_(1)
        y.backward()


def freed():
    y = torch.compile(lambda x: x.exp().sum())
    for _ in range(2):
        result = y(leaf())
        result.backward()
    result.backward()


def crooked():
    Crooked.apply(leaf()).sum().backward()


def hooked():
    y = leaf() * 2
    y.register_hook(lambda grad: grad[:1])
    y.sum().backward()


def mismatched():
    (leaf() * 2).backward(torch.ones(3))


# what is called, the error's key phrase, and what else the message names: the line, or what to do
BACKWARD = [
    (overwritten, "modified by an inplace operation", ("saved at", "changed at", "clone()")),
    (overwritten_in_compiled, "modified by an inplace operation", (HERE, "clone()")),
    (freed, "backward through the graph a second time", ("retain_graph=True", HERE)),
    (crooked, "returned an invalid gradient at index 0", ("CrookedBackward", "[4]", "[2]")),
    (hooked, "has changed the size of value", ("<lambda>",)),
    (mismatched, "Mismatch in shape", ("[3]", "[2]")),
]


@pytest.mark.parametrize(
    ("call", "phrase", "named"), BACKWARD, ids=[c.__name__ for c, *_ in BACKWARD]
)
def test_errors_of_backward_name_what_they_speak_of(call, phrase, named):
    with pytest.raises(RuntimeError) as caught:
        call()
    said = str(caught.value)
    assert phrase in said
    for words in named:
        assert words in said, said
