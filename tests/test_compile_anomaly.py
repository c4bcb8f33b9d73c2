"""Compiled functions in anomaly mode, and graphs that were freed: eager's errors, word by word."""

import warnings

import pytest
import wengert as torch


def roots(x):
    y = x - x
    return (torch.sqrt(y) * 0).sum()


def step(x):
    loss = roots(x)
    loss.backward()
    return loss.detach()


def failure(call):
    """The error, its notes, and what was warned of; addresses and the stack left out."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError) as caught:
            call()
    first = [str(w.message).partition(".")[0] for w in told if w.category is UserWarning]
    return str(caught.value), getattr(caught.value, "__notes__", []), first


def leaf():
    return torch.tensor([1.0, 2.0], requires_grad=True)


def warmed(body, count=4):
    fn = torch.compile(body)
    for _ in range(count):
        fn(leaf())
    return fn


def both_in_the_mode(fn):
    with torch.autograd.set_detect_anomaly(True):
        fn(leaf()).backward()


def backward_in_the_mode(fn):
    out = fn(leaf())
    with torch.autograd.set_detect_anomaly(True):
        out.backward()


class Rooted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / x.sqrt()


CASES = {
    "an op": roots,
    "a custom Function": lambda x: (Rooted.apply(x - x) * 0).sum(),
    "of several": lambda x: (x.exp() * roots(x)).sum(),
}


@pytest.mark.parametrize("how", [both_in_the_mode, backward_in_the_mode])
@pytest.mark.parametrize("name", CASES)
def test_eager_and_compiled_say_the_same(name, how):
    fn = warmed(CASES[name])
    wanted = failure(lambda: how(CASES[name]))
    for _ in range(2):
        assert failure(lambda: how(fn)) == wanted


def test_the_node_that_made_a_nan_is_named():
    fn = warmed(roots)
    wanted = failure(lambda: both_in_the_mode(roots))
    assert "SqrtBackward0" in wanted[0]
    for _ in range(2):
        assert failure(lambda: both_in_the_mode(fn)) == wanted


def test_a_step_that_goes_backward_inside_looks_for_nan():
    fn = warmed(step)

    def call(function):
        with torch.autograd.set_detect_anomaly(True):
            function(leaf())

    assert failure(lambda: call(fn)) == failure(lambda: call(step))


def test_calls_are_compiled_again_after_the_mode():
    fn = warmed(roots)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        fn(leaf()).backward()
    out = fn(leaf())
    assert out.grad_fn.name() == "CompiledFunctionBackward"


def second_backward(fn):
    out = fn(leaf())
    out.backward()
    out.backward()


def second_grad(fn):
    x = leaf()
    out = fn(x)
    torch.autograd.grad(out, x)
    torch.autograd.grad(out, x)


@pytest.mark.parametrize("twice", [second_backward, second_grad])
def test_a_freed_graph_names_the_first_backward(twice):
    def body(x):
        return (x.log() * x).sum()

    fn = warmed(body)
    wanted, *_ = failure(lambda: twice(body))
    assert "The first backward was at" in wanted
    for _ in range(4):
        assert failure(lambda: twice(fn))[0] == wanted
