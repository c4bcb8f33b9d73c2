"""Random programs: eager and compiled must agree over several calls, in values and effects.

A program is a list of steps over a few tensors: pointwise ops, views, in-place writes (also through
views, and into tensors from outside), reductions, branches and loops on values, looks at values,
masks, dropout, detach, no_grad and arithmetic of numbers. It is drawn once, then run eagerly and
compiled on several inputs, while what it finds in closures and containers changes from call to
call, and something may be written before backward.
"""

import pytest
import wengert as torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

UNARY = ("tanh", "exp", "sigmoid", "neg", "abs", "sin", "relu", "square")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
VIEWS = (
    lambda t: t.t(),
    lambda t: t.reshape(-1)[: t.numel()].view(t.shape),
    lambda t: t.flip(0),
    lambda t: t[:, 1:],
    lambda t: t.unsqueeze(0).expand(2, *t.shape)[1],
)
WRITES = (
    lambda t: t.mul_(0.5),
    lambda t: t[0].add_(1),
    lambda t: t[:, 0].fill_(0.25),
    lambda t: t.clamp_(-1, 1),
    lambda t: t.t()[1].neg_(),
)
REDUCTIONS = (
    lambda t: t - t.mean(),
    lambda t: t - t.amax(1, keepdim=True),
    lambda t: t.softmax(1),
    lambda t: t / (t.norm() + 1),
)

LOOKS = (
    lambda t: t * t.sum().item(),
    lambda t: t + float(t[0, 0]),
    lambda t: t * len([v for v in t[0].tolist() if v > 0]),
    lambda t: t - torch.from_numpy(t.detach().numpy().copy()),
    lambda t: t * 2 if t.max().item() > 1 else t,
)

NUMBERS = (
    lambda t, number: t * 2 if number > 0.3 else t - number,
    lambda t, number: t * number if number * 2 - 1 > 0 else t + 1 / (number + 1),
    lambda t, number: t + max(number, 0.4) ** 2,
)

step = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(UNARY), st.integers(0, 3)),
    st.tuples(st.just("binary"), st.sampled_from(BINARY), st.integers(0, 3)),
    st.tuples(st.just("view"), st.sampled_from(VIEWS), st.integers(0, 3)),
    st.tuples(st.just("write"), st.sampled_from(WRITES), st.integers(0, 3)),
    st.tuples(st.just("reduce"), st.sampled_from(REDUCTIONS), st.integers(0, 3)),
    st.tuples(st.just("branch"), st.sampled_from(UNARY), st.integers(0, 3)),
    st.tuples(st.just("detach"), st.none(), st.integers(0, 3)),
    st.tuples(st.just("no_grad"), st.sampled_from(UNARY), st.integers(0, 3)),
    st.tuples(st.just("matmul"), st.none(), st.integers(0, 3)),
    st.tuples(st.just("loop"), st.none(), st.integers(0, 3)),
    st.tuples(st.just("look"), st.sampled_from(LOOKS), st.integers(0, 3)),
    st.tuples(st.just("mask"), st.none(), st.integers(0, 3)),
    st.tuples(st.just("dropout"), st.none(), st.integers(0, 3)),
    st.tuples(st.just("outside"), st.sampled_from(WRITES), st.integers(0, 3)),
    st.tuples(st.just("number"), st.sampled_from(NUMBERS), st.integers(0, 3)),
)


# what may happen between forward and backward
LATE = (
    lambda x, y, last: None,
    lambda x, y, last: x.data.mul_(0.5),
    lambda x, y, last: torch.no_grad()(x.mul_)(0.5),
    lambda x, y, last: y.add_(1),
    lambda x, y, last: last.data.mul_(2),
    lambda x, y, last: torch.no_grad()(last.mul_)(2) if last is not x else None,
)


def same_shape(values, like):
    return [v for v in values if v.shape == like.shape]


def run_step(kind, what, value, values):
    if kind == "unary":
        return getattr(value, what)()
    if kind == "binary":
        return getattr(value, what)(same_shape(values, value)[-1])
    if kind in ("view", "reduce"):
        return what(value)
    if kind == "write":
        return what(value * 1)
    if kind == "branch":
        # not 0: the sum of what has no mean is rounding alone
        return getattr(value, what)() if value.sum() > 0.01 else value * 3
    if kind == "detach":
        return value * value.detach()
    if kind == "no_grad":
        with torch.no_grad():
            shift = getattr(value, what)()
        return value + shift
    if kind == "loop":
        while value.abs().sum() < 20:
            value = value * 2 + 0.1
        return value
    if kind == "look":
        return what(value)
    if kind == "mask":
        return value * value[value > 0].sum()
    if kind == "dropout":
        return torch.nn.functional.dropout(value, 0.3)
    return value @ value.t()


class Outside:
    """What the program finds in its closure: tensors, numbers, a list."""

    def __init__(self):
        self.buffer, self.scale, self.items = torch.ones(3, 4), 1.0, [torch.zeros(3, 4)]

    def change(self, k):
        self.scale = 1.0 + k // 2
        if k % 2:
            self.buffer = torch.full((3, 4), 0.5 * k)
            self.items = [*self.items, torch.full((3, 4), 0.1 * k)][-2:]


def make(program, outside):
    def function(x, given, shift):
        y = given["y"]
        values = [x * outside.scale - shift, y * outside.buffer + sum(outside.items)]
        for kind, what, pick in program:
            if kind == "outside":
                with torch.no_grad():
                    what((outside.buffer, y, outside.items[-1])[pick % 3])
                continue
            value = values[pick % len(values)]
            result = what(value, shift) if kind == "number" else (
                run_step(kind, what, value, values))  # fmt: skip
            if result.dim() == 2 and result.shape[0] > 1 and result.shape[1] > 2:
                values.append(result)
        with torch.no_grad():
            y.mul_(0.9)
        return {"total": sum(v.sum() for v in values), "last": values[-1], "shift": shift * 2}

    return function


def outcome(function, outside, x_values, y_values, seed, late):
    torch.manual_seed(seed)
    x = torch.tensor(x_values, requires_grad=True)
    y = torch.tensor(y_values)
    found = function(x, {"y": y}, 0.25 * seed)
    total, last = found["total"], found["last"]
    late(x, y, last)
    try:
        total.backward()
        grad = x.grad
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error), error
        grad = torch.tensor(torch.nan)  # of how far backward came nothing is promised
    return (total.detach(), last.detach(), grad, y, outside.buffer, *outside.items,
            torch.rand(1), torch.tensor(found["shift"]))  # fmt: skip


def close(a, b):
    return torch.allclose(a, b, rtol=2e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(program=st.lists(step, min_size=1, max_size=8), seed=st.integers(0, 1000),
       late=st.sampled_from(LATE))  # fmt: skip
def test_random_programs(backend, program, seed, late, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    monkeypatch.setenv("WENGERT_BACKEND", backend)
    sides = Outside(), Outside()
    function, compiled = make(program, sides[0]), torch.compile(make(program, sides[1]))
    for k in range(4):
        torch.manual_seed(seed + k)
        x, y = torch.randn(3, 4).tolist(), torch.randn(3, 4).tolist()
        results = [outcome(f, o, x, y, k, late) for f, o in zip((function, compiled), sides)]
        for side in sides:
            side.change(k)
        for a, b in zip(*results, strict=True):
            assert a.shape == b.shape
            assert close(a, b), (a, b)
