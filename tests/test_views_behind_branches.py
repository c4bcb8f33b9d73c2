"""Views of arguments that are made before a branch and used behind it."""

import pytest
import wengert as torch


def turned(x, w):
    v = w.t()
    return x @ v if x.sum() > 0 else x


def several(x, w):
    v = w.t()
    part, (a, b) = v[1:], w.chunk(2)
    if x.sum() > 0:
        y = x[:, 1:] @ part + (a * b).sum()
        return (y * v.sum(), v) if y.sum() > 5 else y
    return x @ v, part


def asked(x, w):
    flag, row = x[0, 0], w[0]
    if flag > 0:
        return (x * row).sum() if row[1] > 0 else row * 2
    return x * row * flag


def counted(w):
    with torch.no_grad():
        w.mul_(3)


WRITES = {
    "none": lambda w: None,
    "counted": counted,
    "data": lambda w: w.data.mul_(3),
    "replaced": lambda w: setattr(w, "data", torch.zeros(4, 3)),
}


def looks(function, write, round):
    """Gradients, or the error, after a write between forward and backward."""
    x = (torch.ones(2, 3) * [1.0, -1.0, 0.1][round % 3]).requires_grad_()
    w = (torch.ones(4, 3) * 2).requires_grad_()
    results = function(x, w)
    results = results if isinstance(results, tuple) else (results,)
    WRITES[write](w)
    try:
        sum(r.sum() for r in results).backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    grads = [None if t.grad is None else t.grad.tolist() for t in (x, w)]
    return grads, [(r.stride(), r._is_view()) for r in results]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("body", [turned, several, asked], ids=lambda body: body.__name__)
def test_backward_sees_what_is_written(body, write):
    compiled = torch.compile(body)
    for round in range(9):
        assert looks(compiled, write, round) == looks(body, write, round)


def test_the_view_is_not_handed_over():
    """It is made again behind the branch, of the argument."""
    compiled = torch.compile(turned)
    for _ in range(4):
        looks(compiled, "none", 0)
    second = compiled.latest().root.children[True]
    assert [key[0] for key in second.keys_in] == ["in", "in"]
