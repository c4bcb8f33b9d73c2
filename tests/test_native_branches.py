"""Bound calls of functions that branch on values: each segment looks at what it needs."""

import inspect

import pytest
import wengert as torch
from native_calls import check_references, settled, settled_natively
from wengert.runtime import watch

if watch.trouble():
    pytest.skip("calls are not bound here", allow_module_level=True)


def once(x, y):
    return x * y if x.sum() > 0 else x + y


def twice(x, y):
    z = x * y if x.sum() > 0 else x + y
    return z * 2 if z.sum() > 100 else z - 1


def with_condition(x, y):
    positive = x.sum() > 0
    if positive:
        return x * y
    return x * positive + y


def with_condition_at_the_end(x, y):
    positive = x.sum() > 0
    z = x * y if positive else x + y
    return z * 2 if z.sum() > 100 else z - positive.float()


def where_it_is_read_by_backward(x, y):
    positive = x.sum() > 0
    z = torch.where(positive, x * y, x * x)
    return z if positive else z * 2


def giving_an_argument(x, y):
    return (x * 2, y) if x.sum() > 0 else (y[:1], x)


def writing(x, y):
    if x.sum() > 0:
        y.mul_(2.0)
        return x + 1
    return x - 1


FORMS = [once, twice, with_condition, with_condition_at_the_end, where_it_is_read_by_backward,
         giving_an_argument, writing]  # fmt: skip
CALLS = [(1.0, 2.0), (-1.0, 2.0), (30.0, 40.0), (-3.0, 500.0), (1.0, -2.0)]


def given(a, b, grad):
    return [torch.full((4,), a, requires_grad=grad), torch.full((4,), b)]


def outcome(function, a, b, grad):
    x, y = given(a, b, grad)
    found = function(x, y)
    results = found if isinstance(found, tuple) else (found,)
    if grad and results[0].requires_grad:
        results[0].sum().backward()
    values = [r.detach().tolist() for r in (*results, x, y)]
    flags = [(r.requires_grad, r is x, r is y, r.shape, r._version) for r in results]
    return values, flags, None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_all_outcomes_in_any_order(form, grad):
    compiled = torch.compile(form)
    for a, b in [*CALLS, *reversed(CALLS), *CALLS * 4]:
        expected, found = outcome(form, a, b, grad), outcome(compiled, a, b, grad)
        assert found == expected, (a, b)


@pytest.mark.parametrize("form", [once, twice, with_condition, giving_an_argument])
def test_an_outcome_that_is_met_when_the_call_is_bound(form):
    compiled = torch.compile(form)
    settled_natively(compiled, *given(1.0, 2.0, False))
    for a, b in CALLS[1:]:  # recorded and bound by now
        for _ in range(6):
            assert outcome(compiled, a, b, False) == outcome(form, a, b, False)
        assert inspect.isbuiltin(compiled.hot[0])


def test_arguments_that_only_the_first_segment_looks_at():
    compiled = torch.compile(lambda x, y, n: x * n if x.sum() > 0 else y)
    x, y = given(1.0, 2.0, False)
    settled_natively(compiled, x, y, 3)
    assert compiled(x, y, 4).tolist() == [4.0] * 4
    assert compiled(x, None, 3).tolist() == [3.0] * 4
    assert compiled(x, torch.zeros(2, 3), 3).tolist() == [3.0] * 4
    assert compiled(x.double(), y, 3).dtype is torch.float64
    assert compiled(-x, y, 3) is y
    y.requires_grad_()
    assert compiled(x, y, 3).tolist() == [3.0] * 4 and compiled(-x, y, 3) is y


def test_references_of_values_between_segments():
    for grad in (False, True):
        compiled = torch.compile(twice)
        x, y = given(1.0, 2.0, grad)
        settled(compiled, x, y)
        check_references([x, y, None, True], lambda call=compiled, a=x, b=y: call(a, b))
