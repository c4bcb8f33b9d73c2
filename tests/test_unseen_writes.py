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


@pytest.mark.parametrize(
    "function", [through_detach, through_data, without_grad, into_a_parameter, seen]
)
def test_gradients_after_writes(function):
    def run(call):
        leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        found = []
        for _ in range(3):
            value = call(leaf)
            found.append((value.tolist(), torch.autograd.grad(value.sum(), leaf)[0].tolist()))
        return found

    assert run(torch.compile(function)) == run(function)
