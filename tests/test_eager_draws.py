"""Eager draws by native code: NumPy's bits, NumPy's state after."""

import numpy as np
import pytest
import wengert as torch
from wengert import eager_draws
from wengert.tracer import sampling

CALLS = {
    "rand": lambda n: torch.rand(n),
    "rand float64": lambda n: torch.rand(n, dtype=torch.float64),
    "rand float16": lambda n: torch.rand(n, dtype=torch.float16),
    "uniform_": lambda n: torch.empty(n).uniform_(-3, 2.5),
    "uniform_ float64": lambda n: torch.empty(n, dtype=torch.float64).uniform_(-3, 2.5),
    "randn": lambda n: torch.randn(n),
    "randn float64": lambda n: torch.randn(n, dtype=torch.float64),
    "randn bfloat16": lambda n: torch.randn(n, dtype=torch.bfloat16),
    "normal_": lambda n: torch.empty(n).normal_(2, 0.5),
    "randint": lambda n: torch.randint(-5, 1000, (n,)),
    "randint int32": lambda n: torch.randint(0, 7, (n,), dtype=torch.int32),
    "randint wide": lambda n: torch.randint(0, 2**40, (n,)),
    "randperm": lambda n: torch.randperm(n),
    "bernoulli_": lambda n: torch.empty(n).bernoulli_(0.3),
    "bernoulli": lambda n: torch.bernoulli(torch.full((n,), 0.3)),
    "dropout": lambda n: torch.nn.functional.dropout(torch.ones(n)),
    "exponential_": lambda n: torch.empty(n).exponential_(),
    "log_normal_": lambda n: torch.empty(n).log_normal_(),
    "multinomial": lambda n: torch.multinomial(torch.ones(n + 1), 1),
}


def drawn(call, sizes):
    torch.manual_seed(3)
    values = [call(n) for n in sizes]
    return [v.double().numpy() for v in values], torch.get_rng_state().numpy()


@pytest.mark.parametrize("name", CALLS)
def test_bits_and_states_are_those_of_numpy(name, monkeypatch):
    sizes = (1, 3, 15, 16, 17, 0, 63, 700)
    monkeypatch.setattr(eager_draws, "is_ready", lambda exact, elements: True)
    monkeypatch.setattr(sampling, "native", eager_draws.draw)
    found, state = drawn(CALLS[name], sizes)
    monkeypatch.setattr(sampling, "native", lambda *call: None)
    expected, expected_state = drawn(CALLS[name], sizes)
    for got, want in zip(found, expected):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(state, expected_state)


def test_native_code_draws_once_it_is_there(monkeypatch):
    monkeypatch.setattr(eager_draws, "is_ready", lambda exact, elements: True)
    generator = torch.Generator().manual_seed(0)
    assert eager_draws.draw(generator, "normal", 100, "float32", 0.0, 1.0).shape == (100,)
    assert eager_draws.draw(generator, "normal", 100, "float64", 0.0, 1.0) is None
    assert eager_draws.draw(generator, "poisson", 100, "float32") is None
    monkeypatch.setattr(eager_draws, "is_ready", lambda exact, elements: False)
    assert eager_draws.draw(generator, "normal", 100, "float32", 0.0, 1.0) is None


def test_bad_parameters_raise_as_before():
    with pytest.raises(RuntimeError, match="std >= 0"):
        torch.empty(100).normal_(0, -1)
    with pytest.raises(RuntimeError, match="from=3 > to=2"):
        torch.empty(100).uniform_(3, 2)
