"""Numbers that `item()` gives, where Python only reckons with them.

See Note [Numbers of tensors].
"""

import json
import math
import sys
import types
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest
import wengert as torch
from comparing import close
from native_calls import settled_natively
from wengert.runtime import watch

if watch.trouble() or sys.version_info >= (3, 13):
    pytest.skip("bodies that see numbers run here", allow_module_level=True)


def normalized(x):
    return x / x.norm().item()


def chosen(x):
    scale = x.sum().item()
    if 0 < scale < 10:
        return x * scale
    return x - scale


def stepped(x):
    value, rounds = x.abs().sum().item(), 0
    while value > 1.0:
        value /= 2
        rounds += 1
    return x * value, rounds


def compared(x):
    a, b = x.sum().item(), x.max().item()
    return (x * a if a < b else x * b), a == b, a if a > b else b


NATIVE = [normalized, chosen, stepped, compared]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("body", NATIVE)
def test_such_calls_are_native(body, grad):
    function = torch.compile(body)
    torch.manual_seed(1)
    for scale in (1.0, 2.0, 0.25, -1.0, 1.0):
        x = (torch.rand(4) * scale).requires_grad_(grad)
        found, wanted = settled_natively(function, x), body(x)
        sides = [r if isinstance(r, tuple) else (r,) for r in (found, wanted)]
        for ours, theirs in zip(*sides, strict=True):
            assert type(ours) is type(theirs)
            if not isinstance(theirs, torch.Tensor):
                assert ours == theirs or ours == pytest.approx(theirs, rel=1e-6)
                continue
            torch.testing.assert_close(ours, theirs)
            assert ours.requires_grad == theirs.requires_grad == grad
        if grad:
            grads = [torch.autograd.grad(side[0].sum(), x) for side in sides]
            torch.testing.assert_close(*grads)


builtins_max = max


def encoded(x):
    value = x.sum().item()
    return json.dumps({"value": value}), x * value


def encoded_later(x):
    value = x.sum().item() * 2
    return json.dumps([value]), x * value


def told_apart(x):
    value = x.sum().item()
    return type(value) is float, value.is_integer(), type(value * 2), x * value


def kept(x, log):
    value = x.sum().item()
    log.append(value)
    return x * value


def put(x, log):
    value = x.sum().item()
    total = value + 1
    log[0:0] = [total]
    return x * value


def beside_numpy(x):
    value = x.sum().item()
    return np.float64(2) * value, value * np.ones(2), x * value


def into_numpy(x):
    array, value = np.ones(2), x.sum().item()
    array *= value
    array += value + 1
    return array, (array > value).tolist(), np.float64(1) < value, x * value


def chosen_by_key(x):
    return builtins_max(x.sum().item(), 2.0, key=json.dumps), x * 2


def beside_others(x):
    value = x.sum().item()
    return timedelta(1) * value, value * timedelta(1), Fraction(1, 2) * value, x * value


def complex_ones(x):
    return 1j * x.sum().item(), x * 2


def closed(x):
    value = x.sum().item()
    return (lambda: math.sqrt(value))(), x * value


def seen_in_variables(x):
    value = x.sum().item()
    return sorted(locals()), type(locals()["value"]), x * value


def refused(x):
    value = x.sum().item()
    try:
        return value | 1
    except TypeError as error:
        return str(error), json.dumps(value)


def max(*values):  # not Python's
    return json.dumps(values)


def by_another_max(x):
    return max(x.sum().item(), 1.0), x * 2


ELSEWHERE = [encoded, encoded_later, told_apart, beside_numpy, into_numpy, chosen_by_key,
             beside_others, complex_ones,
             closed, seen_in_variables, refused, by_another_max]  # fmt: skip


def plain(value):
    if isinstance(value, torch.Tensor | np.ndarray):
        return value.tolist()
    return [plain(v) for v in value] if isinstance(value, tuple | list) else value


@pytest.mark.parametrize("body", ELSEWHERE)
def test_numbers_that_go_elsewhere_are_floats(body):
    function = torch.compile(body)
    for k in range(5):
        x = torch.tensor([k + 1.0, 2.0])
        assert plain(function(x)) == plain(body(x))


@pytest.mark.parametrize("body", [kept, put])
def test_floats_are_kept(body):
    function, log = torch.compile(body), []
    for k in range(5):
        function(torch.tensor([k + 1.0]), log)
    assert all(type(value) is float for value in log)
    assert sorted(log) == [k + 1.0 + (body is put) for k in range(5)]


def test_errors_are_pythons():
    def inverse(x):
        return x * (1 / x.sum().item())

    function = torch.compile(inverse)
    settled_natively(function, torch.ones(3))
    with pytest.raises(ZeroDivisionError, match="float division by zero"):
        function(torch.zeros(3))
    assert function(torch.ones(2)).tolist() == [0.5, 0.5]


def test_a_function_that_looks_is_recorded_with_floats():
    def body(x):
        return x * math.sqrt(x.sum().item() + 1)

    function = torch.compile(body)
    for k in range(4):
        assert close(plain(function(torch.ones(3) * k)), plain(body(torch.ones(3) * k)))
    assert "item()" in function.explain() and "[R101]" in function.explain()


def test_a_full_graph_has_arithmetic_only():
    function = torch.compile(normalized, fullgraph=True)
    assert function(torch.tensor([3.0, 4.0])).tolist() == pytest.approx([0.6, 0.8])
    for body in (lambda x: x * abs(x.sum().item()), lambda x: x * abs(x.sum().item() + 1)):
        with pytest.raises(torch._dynamo.exc.Unsupported, match=r"item\(\).*hands a value"):
            torch.compile(body, fullgraph=True)(torch.ones(2))


def test_float_arguments_stay_data_beside_numbers_of_tensors():
    function = torch.compile(lambda x, s: (x * (x.sum().item() + s), s))
    for k in range(6):
        value, back = function(torch.ones(2), k + 0.5)
        assert value.tolist() == [k + 2.5] * 2 and back == k + 0.5
    assert function.explain().count("trace of") == 1


def test_sizes_may_vary():
    function = torch.compile(lambda x: x * x.sum().item(), dynamic=True)
    for n in (2, 3, 4, 5, 3):
        assert function(torch.ones(n)).tolist() == [float(n)] * n
    assert function.explain().count("symbolic") >= 1


def test_modules_and_methods():
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x / x.norm().item(), x.max().item()

    module = Scaled()
    compiled, x = torch.compile(module), torch.tensor([3.0, 4.0])
    for _ in range(4):
        value, most = compiled(x)
        torch.testing.assert_close(value, module(x)[0])
        assert most == 4.0
    assert "Python body" not in compiled.explain()


def test_no_number_outlives_its_recording():
    found = []

    def body(x):
        value = x.sum().item()
        found.append(sys._getframe())
        return x * value

    function = torch.compile(body)
    function(torch.ones(2))
    assert isinstance(found[0], types.FrameType)
    assert type(found[0].f_locals["value"]) is float
