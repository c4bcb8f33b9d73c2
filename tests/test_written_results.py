"""Results of compiled functions that are written in place before backward: errors as in eager."""

import pytest
import wengert as torch


def view(x):
    return x.tanh().view(-1, 1)


def two(x):
    y = x * 2
    return y, y * y


def branch(x):
    y = x.exp()
    return (y, y * 2) if x.sum() > 0 else (y * 2, y)


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0]


def unseen(tensor):
    with torch.no_grad():
        tensor.mul_(2)


WRITES = {"no_grad": unseen, "detach": lambda t: t.detach().mul_(2), "seen": lambda t: t.mul_(2)}


def outcome(function, write, written, root):
    """The gradient; True if there is none because of what was written."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    root = results[root].sum()
    write(results[written])
    try:
        root.backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return x.grad.tolist()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize(("body", "written", "root", "raises"), [
    (torch.exp, 0, 0, True), (lambda x: x + 1, 0, 0, False), (view, 0, 0, True),
    (two, 0, 1, True), (two, 0, 0, False), (two, 1, 1, False),
    (branch, 0, 1, True), (branch, 1, 0, False), (Exp.apply, 0, 0, True),
])  # fmt: skip
def test_backward_raises_where_eager_does(body, written, root, raises, write):
    expected = outcome(body, WRITES[write], written, root)
    assert (expected is True) == raises
    compiled = torch.compile(lambda x: body(x))
    for _ in range(3):
        found = outcome(compiled, WRITES[write], written, root)
        assert found == (True if raises else pytest.approx(expected))
    assert "replayed 2 times" in compiled.explain()


def test_higher_orders_raise_too():
    compiled = torch.compile(lambda x: x.exp())
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        y = compiled(x)
        y.detach().zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(y.sum(), x, create_graph=True)
