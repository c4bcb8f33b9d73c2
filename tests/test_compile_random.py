"""Random programs: eager and compiled must agree over several calls, in values and effects.

A program is a list of steps over a few tensors: pointwise ops, views, in-place writes (also through
views), reductions, branches on values, detach and no_grad. It is drawn once, then run eagerly and
compiled on several inputs.
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
        return getattr(value, what)() if value.sum() > 0 else value * 3
    if kind == "detach":
        return value * value.detach()
    if kind == "no_grad":
        with torch.no_grad():
            shift = getattr(value, what)()
        return value + shift
    return value @ value.t()


def make(program):
    def function(x, y):
        values = [x * 1, y * 1]
        for kind, what, pick in program:
            result = run_step(kind, what, values[pick % len(values)], values)
            if result.dim() == 2 and result.shape[0] > 1 and result.shape[1] > 2:
                values.append(result)
        with torch.no_grad():
            y.mul_(0.9)
        return sum(v.sum() for v in values), values[-1]

    return function


def outcome(function, x_values, y_values):
    x = torch.tensor(x_values, requires_grad=True)
    y = torch.tensor(y_values)
    total, last = function(x, y)
    total.backward()
    return total.detach(), last.detach(), x.grad, y


def close(a, b):
    return torch.allclose(a, b, rtol=2e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
@settings(max_examples=25, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
@given(program=st.lists(step, min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_random_programs(backend, program, seed, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    monkeypatch.setenv("WENGERT_BACKEND", backend)
    function = make(program)
    compiled = torch.compile(function)
    torch.manual_seed(seed)
    for _ in range(3):
        x, y = torch.randn(3, 4).tolist(), torch.randn(3, 4).tolist()
        for a, b in zip(outcome(function, x, y), outcome(compiled, x, y)):
            assert a.shape == b.shape
            assert close(a, b), (a, b)
