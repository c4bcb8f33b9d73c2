"""`torch.distributions` gives what torch recorded: samples, densities, gradients, errors."""

import json
import math

import numpy as np
import pytest
import wengert as torch
from distribution_cases import (
    DISTRIBUTIONS,
    ERRORS,
    PAIRS,
    RECORDS,
    describe,
    divergence,
    failure,
)
from wengert import distributions

RECORDED = json.loads(RECORDS.read_text())
# relative and absolute tolerance: torch approximates how gamma samples move, and the variance of
# continuous_bernoulli is a difference of nearly equal numbers
TOLERANCES = {"moved": (3e-3, 1e-4), "cdf": (1e-4, 1e-5), "variance": (1e-4, 3e-5),
              "stddev": (1e-4, 3e-5)}  # fmt: skip


def close(found, expected, rel=2e-5, abs_=2e-6):
    """Equal up to rounding, in any nesting of lists and dicts; NaN equals NaN."""
    if isinstance(expected, dict):
        assert sorted(found) == sorted(expected)
        return all(close(found[k], v, rel, abs_) for k, v in expected.items())
    if isinstance(expected, list) and isinstance(found, list | tuple):
        assert len(found) == len(expected)
        return all(close(f, e, rel, abs_) for f, e in zip(found, expected))
    if isinstance(expected, float):
        same = math.isnan(found) and math.isnan(expected)
        assert same or math.isclose(found, expected, rel_tol=rel, abs_tol=abs_)
        return True
    return found == expected


@pytest.mark.parametrize("text", DISTRIBUTIONS)
def test_distributions_are_torchs(text):
    found, expected = describe(torch, text), RECORDED[text]
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        assert close(found[name], value, *TOLERANCES.get(name, (2e-5, 3e-6))), name


@pytest.mark.parametrize("text", PAIRS)
def test_divergences_are_torchs(text):
    assert close(divergence(torch, text), RECORDED[text], abs_=3e-5)


@pytest.mark.parametrize("text", ERRORS)
def test_errors_are_torchs(text):
    """Its type and words; what to do may follow."""
    (kind, said), (torchs, words) = failure(torch, text), RECORDED[text]
    assert kind == torchs
    assert said.startswith(words)


def test_gamma_slopes_are_the_quantiles():
    """The slope of a sample equals the change of the quantile it stands for."""
    shape = torch.tensor([0.3, 1.0, 4.0, 30.0, 3e4, 1e6], dtype=torch.float64)
    torch.manual_seed(0)
    x = torch._standard_gamma(shape)
    slope = torch._standard_gamma_grad(shape, x)
    step = 1e-6 * shape
    below = torch.special.gammainc(shape - step, x - step * slope)
    above = torch.special.gammainc(shape + step, x + step * slope)
    steepest = torch.distributions.Gamma(shape, 1.0).log_prob(x).exp()
    assert ((above - below).abs() / (2 * step * steepest) < 1e-4).all()
    assert torch._standard_gamma_grad(torch.ones(1), torch.zeros(1)).item() == 0


def test_dirichlet_slopes_are_those_of_beta():
    """Between two shares the slope is known: x = u^(1/a) for Beta(a, 1)."""
    a = torch.tensor([0.4, 1.0, 7.0], dtype=torch.float64)
    x = torch.tensor([0.9, 0.2, 0.6], dtype=torch.float64)
    expected = -x * x.log() / a / (1 - x)
    found = torch._dirichlet_grad(x, a, a + 1)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12)


def test_compiled_steps_draw_and_move_as_eager():
    logits = torch.tensor([0.1, -0.4, 0.8], requires_grad=True)
    shape = torch.tensor([2.0, 0.7], requires_grad=True)

    def loss():
        chosen = distributions.Categorical(logits=logits)
        draws = distributions.Gamma(shape, 1.5).rsample((4,))
        spread = distributions.Normal(draws, 1.0).rsample()
        return spread.sum() - chosen.log_prob(chosen.sample()) + 0.1 * chosen.entropy()

    def run(function):
        found = []
        torch.manual_seed(5)
        for _ in range(3):
            value = function()
            found.append((value.item(), *torch.autograd.grad(value, [logits, shape])))
        return found

    for eager, compiled in zip(run(loss), run(torch.compile(loss))):
        assert eager[0] == pytest.approx(compiled[0], rel=1e-5)
        for a, b in zip(eager[1:], compiled[1:]):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_registry_finds_the_most_specific_pair():
    class Mine(distributions.Normal):
        pass

    @distributions.register_kl(Mine, distributions.Normal)
    def mine(p, q):
        return torch.tensor(7.0)

    mine_, normal = Mine(0.0, 1.0), distributions.Normal(0.0, 1.0)
    assert distributions.kl_divergence(mine_, normal).item() == 7
    assert distributions.kl_divergence(normal, mine_).item() == 0
    with pytest.raises(TypeError, match="Distribution subclass"):
        distributions.register_kl(int, Mine)


def test_transforms_invert_and_measure():
    names = ("Exp", "Sigmoid", "Softplus", "Tanh", "StickBreaking", "CorrCholesky")
    for name in names:
        transform = getattr(distributions, name + "Transform")(cache_size=1)
        x = torch.tensor([0.3, -0.8, 0.5], dtype=torch.float64, requires_grad=True)
        y = transform(x)
        assert transform.inv.inv is transform
        assert transform.inv(y) is x  # cached
        plain = transform.with_cache(0)
        np.testing.assert_allclose(plain.inv(y).detach().numpy(), x.detach().numpy(), rtol=1e-9)
        assert transform.codomain.check(y).all()
        growth = plain.log_abs_det_jacobian(x, y)
        if growth.dim():
            slope = torch.autograd.grad(y.sum(), x)[0].log()
            np.testing.assert_allclose(growth.detach().numpy(), slope.numpy(), rtol=1e-9)


def test_regions_have_transforms():
    constraints, x = distributions.constraints, torch.tensor([0.5, -1.5, 2.0])
    for region in (constraints.positive, constraints.less_than(-1.0), constraints.interval(2, 5),
                   constraints.unit_interval, constraints.simplex, constraints.real_vector,
                   constraints.corr_cholesky, constraints.stack([constraints.real,
                   constraints.positive, constraints.unit_interval], 0)):  # fmt: skip
        for registry in (distributions.biject_to, distributions.transform_to):
            assert region.check(registry(region)(x)).all(), region
    matrix = distributions.transform_to(constraints.positive_definite)(torch.ones(3, 3))
    assert constraints.positive_definite.check(matrix).all()
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        distributions.biject_to(constraints.boolean)


def test_validation_can_be_turned_off():
    assert distributions.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    distributions.Distribution.set_default_validate_args(False)
    try:
        assert distributions.Normal(0.0, -1.0).scale.item() == -1
    finally:
        distributions.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        distributions.Normal(0.0, -1.0)
