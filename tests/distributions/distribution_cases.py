"""Distributions whose samples, densities and gradients torch recorded.

`python distribution_cases.py`, run where torch is installed, writes the records anew. Parameters
a, b are positive, r is real, s lies in (0, 1), v and w are vectors, m a covariance.
"""

import json
import warnings
from pathlib import Path

RECORDS = Path(__file__).resolve().parent.parent / "data" / "distributions.json"

DISTRIBUTIONS = [
    "Normal(r, a)",
    "Normal(0.5, 2.0)",
    "Uniform(-a, b)",
    "Bernoulli(probs=s)",
    "Bernoulli(logits=r)",
    "Categorical(probs=w)",
    "Categorical(logits=v)",
    "Beta(a, b)",
    "Gamma(a, b)",
    "Dirichlet(w)",
    "MultivariateNormal(v, m)",
    "MultivariateNormal(v, precision_matrix=m)",
    "MultivariateNormal(v, scale_tril=torch.linalg.cholesky(m).expand(2, 3, 3))",
    "LowRankMultivariateNormal(v, torch.stack([v, w], -1), w)",
    "Wishart(torch.tensor(4.0), m.detach())",  # torch cannot differentiate samples twice drawn
    "Wishart(torch.tensor([4.0, 5.5]), precision_matrix=m.detach())",
    "GeneralizedPareto(r, a, 0.1 * r)",
    "Independent(Normal(v, w), 1)",
    "Exponential(a)",
    "Laplace(r, a)",
    "LogNormal(r, 0.3 * a)",
    "Poisson(4 * a)",
    "Binomial(5, probs=s)",
    "Binomial(torch.tensor(5), logits=r)",
    "NegativeBinomial(3 * torch.ones(3), logits=-a)",
    "Geometric(probs=s)",
    "HalfNormal(a)",
    "HalfCauchy(a)",
    "StudentT(2 + a, r, b)",
    "Chi2(a)",
    "FisherSnedecor(5 * a, 6 * b)",
    "Gumbel(r, a)",
    "Cauchy(r, a)",
    "Pareto(a, 3 * b)",
    "Weibull(a, b)",
    "Kumaraswamy(a, b)",
    "InverseGamma(3 + a, b)",
    "LogisticNormal(v, w)",
    "ContinuousBernoulli(probs=s)",
    "VonMises(r, a)",
    "LKJCholesky(3, a)",
    "OneHotCategorical(probs=w)",
    "OneHotCategoricalStraightThrough(logits=v)",
    "RelaxedBernoulli(torch.tensor(0.7), probs=s)",
    "RelaxedOneHotCategorical(torch.tensor(0.7), logits=v)",
    "Multinomial(6, probs=w)",
    "MixtureSameFamily(Categorical(logits=r), Normal(r, a))",
    "MixtureSameFamily(Categorical(probs=w[0]), Independent(Normal(v.T, w.T), 1))",
    "TransformedDistribution(Normal(r, a), [TanhTransform(), AffineTransform(1., 2.)])",
    "TransformedDistribution(Normal(v, w), [AffineTransform(r, a, event_dim=1), "
    "StickBreakingTransform()])",
    "TransformedDistribution(Uniform(0. * a, 1 + 0. * a), [SigmoidTransform().inv])",
]

PAIRS = [
    "LowRankMultivariateNormal(v, w[..., None], w) | LowRankMultivariateNormal(w, v[..., None], w)",
    "LowRankMultivariateNormal(v, w.unsqueeze(-1), w) | MultivariateNormal(v, m)",
    "MultivariateNormal(v, m) | LowRankMultivariateNormal(v, w.unsqueeze(-1), w)",
    "Wishart(torch.tensor(4.0), m) | Wishart(torch.tensor(5.0), 2 * m)",
    "Normal(r, a) | Normal(0., 1.)",
    "Bernoulli(s) | Bernoulli(logits=r)",
    "Beta(a, b) | Beta(b, a)",
    "Binomial(4, s) | Binomial(4, 0.5 * s)",
    "Categorical(w) | Categorical(logits=v)",
    "Categorical(torch.tensor([0., 0.5, 0.5])) | Categorical(torch.tensor([0.5, 0., 0.5]))",
    "Cauchy(r, a) | Cauchy(0 * r, b)",
    "ContinuousBernoulli(s) | ContinuousBernoulli(0.5 + 0 * s)",
    "Dirichlet(w) | Dirichlet(1 + w)",
    "Exponential(a) | Exponential(b)",
    "Gamma(a, b) | Gamma(b, a)",
    "Gumbel(r, a) | Gumbel(-r, b)",
    "Geometric(s) | Geometric(0.5 + 0 * s)",
    "HalfNormal(a) | HalfNormal(b)",
    "Laplace(r, a) | Laplace(-r, b)",
    "LogNormal(r, a) | LogNormal(-r, b)",
    "MultivariateNormal(v, m) | MultivariateNormal(0 * v, 2 * m)",
    "OneHotCategorical(w) | OneHotCategorical(1 + w)",
    "Pareto(a, b) | Pareto(0.1 * a, a)",
    "Poisson(a) | Poisson(b)",
    "Uniform(-a, b) | Uniform(-4., 4.)",
    "Independent(Normal(v, w), 1) | Independent(Normal(0 * v, 1.), 1)",
    "Bernoulli(s) | Poisson(a)",
    "Beta(a, b) | Gamma(a, b)",
    "Beta(a, b) | Normal(r, a)",
    "Beta(a, b) | Uniform(-1., 2.)",
    "Exponential(a) | Gamma(a, b)",
    "Exponential(a) | Gumbel(r, b)",
    "Exponential(a) | Normal(r, b)",
    "Exponential(a) | Uniform(0., 1.)",
    "Gamma(a, b) | Exponential(a)",
    "Gamma(a, b) | Gumbel(r, b)",
    "Gamma(a, b) | Normal(r, b)",
    "Gumbel(r, a) | Normal(r, b)",
    "Laplace(r, a) | Normal(-r, b)",
    "Normal(r, a) | Gumbel(-r, b)",
    "Normal(r, a) | Laplace(-r, b)",
    "Pareto(a, 3 * b) | Exponential(a)",
    "Pareto(a, 3 * b) | Gamma(a, b)",
    "Pareto(a, 3 * b) | Normal(r, b)",
    "Uniform(0.1 * s, s) | Beta(a, b)",
    "Uniform(s, 1 + b) | Exponential(a)",
    "Uniform(s, 1 + b) | Gamma(a, b)",
    "Uniform(s, 1 + b) | Gumbel(r, b)",
    "Uniform(s, 1 + b) | Normal(r, b)",
    "Uniform(s, 1 + b) | Pareto(0.1 * a, b)",
]

ERRORS = [
    "Normal(r, -a)",
    "Normal(r, a).log_prob('x')",
    "Normal(r, a).log_prob(torch.ones(2))",
    "Normal('x', a)",
    "Uniform(a, a)",
    "Bernoulli(torch.tensor(1.5))",
    "Bernoulli()",
    "Bernoulli(s, r)",
    "Bernoulli(s).log_prob(torch.tensor(0.5))",
    "Categorical(torch.tensor(0.5))",
    "Categorical(torch.tensor([-1., 2.]))",
    "Categorical(w).log_prob(torch.tensor([0, 7]))",
    "Dirichlet(torch.tensor(1.))",
    "Dirichlet(w).log_prob(torch.ones(3))",
    "Gamma(a, 0.)",
    "Geometric(torch.tensor([0.5, 0.]))",
    "Binomial(-1, s)",
    "Multinomial(torch.tensor(3), w)",
    "MultivariateNormal(v)",
    "MultivariateNormal(torch.tensor(1.), m)",
    "MultivariateNormal(v, -m)",
    "MultivariateNormal(v, scale_tril=m)",
    "Independent(Normal(r, a), 2)",
    "MixtureSameFamily(Normal(r, a), Normal(r, a))",
    "MixtureSameFamily(Categorical(w), Normal(torch.zeros(4, 2), torch.ones(4, 2)))",
    "TransformedDistribution(Normal(r, a), 3)",
    "kl_divergence(Normal(r, a), Cauchy(r, a))",
    "Cauchy(r, a).enumerate_support()",
    "Poisson(a).entropy()",
    "VonMises(r, a).rsample()",
    "AffineTransform(0., 1., cache_size=2)",
]

PROPERTIES = ("mean", "variance", "stddev", "mode")


def scope(torch):
    """The names that the texts use, drawn anew."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import importlib

        space = dict(vars(importlib.import_module(torch.__name__ + ".distributions")), torch=torch)
    tensor = torch.tensor
    leaves = {
        "a": tensor([0.5, 1.5, 4.0]),
        "b": tensor([2.0, 0.8, 1.2]),
        "r": tensor([-1.0, 0.3, 2.0]),
        "s": tensor([0.2, 0.55, 0.9]),
        "v": tensor([[0.2, -0.5, 1.0], [1.5, 0.0, -2.0]]),
        "w": tensor([[0.6, 1.4, 2.5], [3.0, 0.7, 1.1]]),
        "m": tensor([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]]),
    }
    for leaf in leaves.values():
        leaf.requires_grad_()
    return {**space, **leaves}, leaves


def listed(value):
    return [list(value.shape), [float(x) for x in value.detach().reshape(-1)]]


def attempt(function):
    """What the function gives, or the class of the error it raises."""
    try:
        return listed(function())
    except (NotImplementedError, AttributeError, RuntimeError) as error:
        return type(error).__name__


def slopes(torch, leaves, value):
    """The gradients of the sum of `value`, by the leaves it depends on."""
    if not value.requires_grad:
        return {}
    found = torch.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True,
                                retain_graph=True)  # fmt: skip
    return {k: listed(g) for k, g in zip(leaves, found) if g is not None}


def describe(torch, text):
    """Samples, densities, moments and gradients of one distribution."""
    names, leaves = scope(torch)
    p = eval(text, names)
    record = {"repr": repr(p), "batch": list(p.batch_shape), "event": list(p.event_shape),
              "rsample": p.has_rsample, "support": repr(type(p.support).__name__)}  # fmt: skip
    torch.manual_seed(3)
    sample = p.sample((2,))
    record["sample"] = listed(sample)
    if p.has_rsample:
        torch.manual_seed(3)
        moved = p.rsample((2,))
        record["moved"] = listed(moved), slopes(torch, leaves, (moved * moved).sum())
    value = sample.detach()
    log_prob = p.log_prob(value)
    record["log_prob"] = listed(log_prob), slopes(torch, leaves, log_prob)
    record["entropy"] = attempt(p.entropy)
    record["cdf"] = attempt(lambda: p.cdf(value))
    record["icdf"] = attempt(lambda: p.icdf(torch.tensor([0.1, 0.5, 0.8])))
    for name in PROPERTIES:
        record[name] = attempt(lambda name=name: getattr(p, name))
    record["values"] = attempt(p.enumerate_support)
    wider = p.expand((4, *p.batch_shape))
    record["expanded"] = [repr(wider), list(wider.batch_shape), list(wider.event_shape)]
    torch.manual_seed(3)
    record["wider"] = attempt(wider.sample), attempt(lambda: wider.log_prob(value[0]))
    return record


def divergence(torch, text):
    """The divergence of a pair, with gradients."""
    names, leaves = scope(torch)
    p, q = (eval(part, names) for part in text.split("|"))
    value = names["kl_divergence"](p, q)
    return listed(value), slopes(torch, leaves, value)


def failure(torch, text):
    """The class of the error and its message."""
    names, _ = scope(torch)
    try:
        eval(text, names)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return None


if __name__ == "__main__":
    import torch

    records = {text: describe(torch, text) for text in DISTRIBUTIONS}
    records |= {text: divergence(torch, text) for text in PAIRS}
    records |= {text: failure(torch, text) for text in ERRORS}
    RECORDS.write_text(json.dumps(records, separators=(",", ":")))
