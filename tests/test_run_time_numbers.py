"""Python floats as arguments of compiled functions: data where they can be, never frozen."""

import gc
import json
import math
import operator
import pickle
from datetime import timedelta
from fractions import Fraction

import numpy as np
import pytest
import wengert as torch
import wengert.nn.functional as F
from comparing import close

USES = {
    "operands": lambda x, s: x * s + s * 2 + (s - 1) * x + 3 / s - s,
    "powers": lambda x, s: x.abs() ** s + s**x,
    "results": lambda x, s: (s, s + 1, -s, [s * 2], {"s": s}),
    "classes": lambda x, s: (isinstance(s, float), isinstance(s, int | float), x * s),
    "comparisons": lambda x, s: x if s < 2 else x * 2,
    "minimum": lambda x, s: max(s, 1.5) * x,
    "rounding": lambda x, s: (round(s, 1) + x, int(s), math.floor(s), math.ceil(s), math.sqrt(s)),
    "text": lambda x, s: (x * s, f"{s:.2f}", str(s)),
    "attributes": lambda x, s: (F.leaky_relu(-x, s), F.softplus(x, beta=s)),
    "losses": lambda x, s: F.huber_loss(x, -x, delta=s),
    "alpha": lambda x, s: torch.add(x, x, alpha=s),
    "filling": lambda x, s: (torch.full((2,), s), torch.full_like(x, s), x.clone().fill_(s)),
    "tensors": lambda x, s: x * torch.tensor(s) + torch.tensor([s, 1.0]),
    "bounds": lambda x, s: (x.clamp(-s, s), x.masked_fill(x > 0, s), torch.where(x > 0, s, x)),
    "one bound": lambda x, s: (x.clamp(0.0, s), x.clip(-s, 3), x.clamp(max=s), x.clamp_min(s)),
    "scaled terms": lambda x, s: (torch.sub(x, x, alpha=s), torch.addcmul(x, x, x, value=s),
                                  x.clone().add_(x, alpha=-s), x.clone().addcdiv_(x, x, value=s)),
    "clipping": lambda x, s: clipped(x, s),
    "padding": lambda x, s: F.pad(x, (1, 1), value=s),
    "draws": lambda x, s: (F.dropout(x, s / 10), torch.normal(0.0, s, (2,)), x.normal_(0, s)),
    "ranges": lambda x, s: (torch.arange(0, s, 1.0), torch.linspace(0, s, 3)),
    "kinds": lambda x, s: (type(s) is float, type(s).__name__, x * s),
    "no tensors": lambda x, s: (isinstance(s, torch.Tensor), torch.is_tensor(s), x * s),
    "attributes asked for": lambda x, s: (hasattr(s, "shape"), x * s),
    "encoded": lambda x, s: (json.dumps({"s": s}), pickle.loads(pickle.dumps(s)), x * s),
    "methods": lambda x, s: (s.is_integer(), s.hex(), s.as_integer_ratio(), s.conjugate() + x),
    "parts": lambda x, s: (s.real * x, s.imag),
    "as tensors": lambda x, s: (torch.as_tensor(s), torch.asarray(s) * x),
    "lerp": lambda x, s: torch.lerp(x, x * 2, s) + x // s,
    "grown": lambda x, s: grown(x, s),
    "of NumPy": lambda x, s: (np.float64(2) * s, s - np.float32(2), (np.ones(2) / s).tolist(), x),
    "compared with NumPy's": lambda x, s: ((np.ones(2) > s).tolist(), s == np.float64(1), x * s),
    "complex": lambda x, s: (1j * s, s + 2j, x * s),
    "of others": lambda x, s: (timedelta(1) * s, s * timedelta(1), Fraction(1, 2) + s, x * s),
    "refused": lambda x, s: refusals(x, s),
    "written by indices": lambda x, s: (put(x, s), put(x.long(), s), put(x.double(), s)),
    "scattered": lambda x, s: (x.scatter(0, torch.tensor([1]), s), x.scatter_(
        0, torch.tensor([0]), s, reduce="add"), x.scatter(0, torch.tensor([1]), value=s)),
    "quotients with rests": lambda x, s: (divmod(s, 2), divmod(7, s), divmod(s, s), x * s),
}  # fmt: skip


def grown(x, s):
    first = s
    s *= 2
    s += 1.0
    return x * s, s, first


def put(x, s):
    y = x.clone()
    y[torch.tensor([0])] = s
    y[torch.tensor([True, False]), ...] = s * 2
    y[1:] = s
    return y


def refusals(x, s):
    found = []
    for operation in (operator.matmul, operator.lshift, operator.or_):
        for left, right in ((s, 1), (1, s), (s, s)):
            try:
                operation(left, right)
            except TypeError as error:
                found.append(str(error))
    assert len(found) == 9 and all("float" in text for text in found)
    return found, x * 2


def clipped(x, bound):
    p = x.clone().requires_grad_()
    p.pow(2).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_([p], bound)
    before = p.grad.clone()
    torch.nn.utils.clip_grad_value_([p], bound / 2)
    return norm, before, p.grad


def plain(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("use", USES)
def test_numbers_are_read_at_every_call(use):
    function = USES[use]
    compiled = torch.compile(function)
    for value in (0.5, 1.0, 2.5, 0.5, 1.0, 2.5, 4.0, 0.5):
        results = []
        for f in (function, compiled):
            torch.manual_seed(0)
            results.append(plain(f(torch.tensor([1.0, -2.0]), value)))
        assert close(*results), (value, results)


DATA = ("operands", "alpha", "bounds", "one bound", "scaled terms", "clipping", "lerp", "filling",
        "written by indices", "quotients with rests")  # fmt: skip


@pytest.mark.parametrize("use", DATA)
def test_numbers_are_data(use):
    compiled = torch.compile(USES[use])
    for value in (0.5, 1.25, 2.5, 4.0):
        compiled(torch.tensor([1.0, -2.0]), value)
    assert compiled.explain().count("trace of") == 1


USUAL = 0.5


def test_numbers_are_the_objects_that_were_given():
    def chosen(x, number):
        return (x * 2 if number is USUAL else x * 3), number

    compiled = torch.compile(chosen)
    for k in range(6):
        number = USUAL if k % 2 else float("0.5")
        for function in (chosen, compiled):
            value, back = function(torch.ones(2), number)
            assert back is number
            assert value.tolist() == ([2.0, 2.0] if number is USUAL else [3.0, 3.0])
    assert "R122" in compiled.explain()
    returning = torch.compile(lambda x, number: (x if x is not None else number, number))
    assert all(returning(torch.ones(2), k)[1] is k for k in (0.25, 1.5, 2.5))
    assert "R122" not in returning.explain()


def test_comparisons_of_numbers_behind_a_branch_count_on_their_side_only():
    def chosen(x, rate, other):
        if x.sum() > 0:
            x = x * 2 if rate > 0.5 else x * 3
        if min(rate, other) < 0:
            x = -x
        return x - rate if rate - other == 1 else x

    compiled = torch.compile(chosen)
    numbers = [(0.25, 0.5), (0.75, -0.5), (1.5, 0.5), (-0.5, 2.0)]
    for k in range(48):
        x = torch.tensor([1.0, 2.0]) * (-1 if k % 3 == 0 else 1)
        rate, other = numbers[k % 4] if k < 24 else numbers[k // 3 % 4]
        assert compiled(x, rate, other).tolist() == chosen(x, rate, other).tolist(), k
    assert "replayed" in compiled.explain()


def test_no_number_outlives_its_recording(monkeypatch):
    optimizer = torch.optim.Adam([w := torch.nn.Parameter(torch.ones(3))])

    def step(x, s):
        (w * x * s).sum().backward()
        optimizer.step()

    def slow(*objects):
        raise AssertionError("looks through all objects there are")

    gc.collect()
    gc.disable()  # nothing may wait for the collector
    try:
        monkeypatch.setattr(gc, "get_referrers", slow)
        torch.compile(step)(torch.ones(3), 0.5)
    finally:
        gc.enable()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_chosen_beside_halves(dtype):
    def chosen(x, other):
        return torch.where(x > 0, x, other)

    compiled, x = torch.compile(chosen), torch.tensor([1.0, -2.0], dtype=dtype)
    for number in (1.5, 0.3, 700.0):
        got, want = compiled(x, number), chosen(x, number)
        assert got.dtype is want.dtype and got.tolist() == want.tolist()
    assert "replayed 2 times" in compiled.explain()


@pytest.mark.parametrize("number", [300, -129, 1e39, -1e308, 2**70])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.float32, torch.float64])
def test_constants_that_do_not_fit(dtype, number):
    def outcome(function):
        try:
            return function(torch.tensor([44, 1], dtype=dtype)).tolist()
        except Exception as error:
            return type(error), str(error)

    for body in (lambda x: x * number, lambda x: x == number, lambda x: x - number):
        compiled = torch.compile(body)
        for _ in range(2):
            assert outcome(compiled) == outcome(body)
