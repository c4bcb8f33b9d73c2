"""Errors about an earlier op name the user's line of it, and say what to do."""

import re
import sys
import threading

import pytest
import wengert as torch

HERE = re.escape(__file__)


def line_of(text):
    """The number of this file's line that ends with the comment `# text`."""
    with open(__file__) as source:
        return next(k for k, line in enumerate(source, 1) if line.rstrip().endswith(f"# {text}"))


def test_a_second_backward_says_where_the_first_was():
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()  # first backward
    with pytest.raises(RuntimeError, match="backward through the graph a second time") as caught:
        y.backward()
    assert f"{__file__}:{line_of('first backward')}" in str(caught.value)
    assert "retain_graph=True" in str(caught.value)


def test_a_changed_value_says_where_it_was_saved_and_changed():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = y * y  # saved here
    y[0] = 5  # changed here
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        z.sum().backward()
    text = str(caught.value)
    assert f"saved at {__file__}:{line_of('saved here')}" in text
    assert f"changed at {__file__}:{line_of('changed here')}" in text
    assert "is at version 1; expected version 0" in text


def test_saved_outputs_and_custom_functions_say_it_too():
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = torch.ones(2, requires_grad=True)
    for make in (lambda t: t.exp(), lambda t: t.sigmoid()):
        y = make(x)
        y.mul_(2)  # output changed
        with pytest.raises(RuntimeError, match=f"changed at {HERE}:{line_of('output changed')}"):
            y.sum().backward()
    w = x * 1
    y = Keep.apply(w)
    w.add_(1)  # input changed
    with pytest.raises(RuntimeError, match=f"changed at {HERE}:{line_of('input changed')}"):
        y.sum().backward()


@pytest.mark.parametrize("how", ["detach", "no_grad", "inference", "integers", "nothing"])
def test_missing_history_says_where_it_was_cut(how):
    x = torch.ones(2, requires_grad=True)
    if how == "detach":
        y, words = x.detach() * 2, r"cut by detach\(\) at "
    elif how == "no_grad":
        with torch.no_grad():
            y = x * 2
        y, words = y.exp().sum(0), r"cut by no_grad\(\) at "
    elif how == "inference":
        with torch.inference_mode():
            y = x * 2
        words = r"cut by inference_mode\(\)"
    elif how == "integers":
        y, words = (x > 0).sum(), "int64 tensor has no gradient"
    else:
        y, words = torch.ones(2) * 2, "nothing it was computed from requires grad"
    with pytest.raises(RuntimeError, match=f"does not require grad and .*{words}"):
        y.sum().backward()


def test_a_refused_write_changes_nothing():
    leaf = torch.ones(2, requires_grad=True)
    y = leaf * 1
    first, second = (leaf * 1).split(1)
    writes = [
        lambda: leaf.add_(1),
        lambda: leaf[0].zero_(),
        lambda: first.mul_(2),
        lambda: y.add_(torch.ones(3)),
        lambda: y.mul_(torch.ones(2, dtype=torch.complex64)),
        lambda: y.__setitem__(5, 1.0),
        lambda: y.__setitem__(0, torch.ones(3)),
        lambda: y.fill_("a"),
        lambda: y.copy_(torch.ones(3)),
    ]
    for write in writes:
        versions = [t._version for t in (leaf, y, first)]
        with pytest.raises((RuntimeError, TypeError, IndexError)):
            write()
        assert [t._version for t in (leaf, y, first)] == versions
        assert [t.tolist() for t in (leaf, y, first, second)] == [[1, 1], [1, 1], [1], [1]]


def test_deep_graphs_run_and_are_freed_in_little_stack():
    done = []

    def work():
        x = torch.ones(1, requires_grad=True)
        y = x
        for _ in range(100_000):
            y = y + 0.5
        y.backward()
        del y
        z = x
        for _ in range(20_000):
            z = z * 1.0
        del z  # freed without a backward
        done.append(x.grad.item())

    # from 3.13 on CPython itself nests deeper when it frees a chain of objects
    small = 256 if sys.version_info < (3, 13) else 2048
    before = threading.stack_size(small * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done == [1.0]
