"""Writes that autograd does not see keep the history, compiled as eager."""

import pytest
import wengert as torch


def through_detach(a):
    v = a * 2
    v.detach().clamp_(min=3.0)
    return v / 3


def through_data(a):
    v = a * 2
    v.data.mul_(5)
    return v * 3


def without_grad(a):
    v = a * 2
    with torch.no_grad():
        v[:2] = 9.0
    return v * a


def into_a_parameter(a):
    with torch.no_grad():
        a.clamp_(min=1.5)
    return a * a


def seen(a):
    v = a * 2
    v[:2] = 9.0
    return v * a


def after_it_was_saved(a):
    v = a * 2
    w = (v * v.detach()).exp()
    v.data.add_(1)
    w.data.mul_(3)
    return w * 2


def of_an_operand(a, other=None):
    other = torch.ones(3) * 2 if other is None else other
    v = a * other
    other.data.add_(1)
    return v


@pytest.mark.parametrize(
    "function",
    [through_detach, through_data, without_grad, into_a_parameter, seen, after_it_was_saved,
     of_an_operand],
)  # fmt: skip
def test_gradients_after_writes(function):
    def run(call):
        leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        found = []
        for _ in range(3):
            value = call(leaf)
            found.append((value.tolist(), torch.autograd.grad(value.sum(), leaf)[0].tolist()))
        return found

    assert run(torch.compile(function)) == run(function)


@pytest.mark.parametrize("when", ["before", "between", "never"])
def test_numpy_may_write_between_forward_and_backward(when):
    """Eager keeps sin(x); a compiled backward computes it again, of x as it was."""

    def body(x, w):
        return (x.sin() * w).sum() + (x * 2).exp().sum()

    def run(call):
        found = []
        for k in range(4):
            x = torch.tensor([1.0, 2.0, 3.0 + k], requires_grad=True)
            w = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
            array = x.detach().numpy() if when == "before" else None
            value = call(x, w)
            if when == "between":
                array = x.detach().numpy()
            if array is not None:
                array += 5
            found += [g.tolist() for g in torch.autograd.grad(value, (x, w))]
        return found

    for a, b in zip(run(torch.compile(body)), run(body), strict=True):
        assert a == pytest.approx(b, rel=1e-5)


def test_weights_that_turn_in_memory_they_share():
    def run(wrap):
        torch.manual_seed(0)
        first, second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        function, found = wrap(lambda x: second(first(x))), []
        changes = [
            lambda: setattr(first, "weight", torch.nn.Parameter(second.weight.detach().t())),
            lambda: setattr(first.weight, "data", second.weight.data.t()),
            lambda: setattr(first.weight, "data", second.weight.data),
            lambda: setattr(second.weight, "data", first.weight.data.t()),
        ]
        for change in (lambda: None, *changes):
            change()
            found += [function(torch.full((2, 3), float(k))).detach() for k in range(3)]
        return found

    for want, got in zip(run(lambda f: f), run(torch.compile)):
        torch.testing.assert_close(got, want)
