"""Floats of compiled functions: reckoned with, and made tensors and distributions, as plain ones.

While a call is recorded they are tensors of a kind, and nothing may take them for tensors.
"""

import math
import warnings

import pytest
import wengert as torch
import wengert.distributions as D
import wengert.nn.functional as F

VALUES = (0.1, 0.3, 0.7, 0.9, 0.3)


def told(value):
    if isinstance(value, torch.Tensor):
        flags = value._is_view(), value.is_leaf, value.requires_grad, value.stride()
        return str(value.dtype), flags, value.tolist()
    if isinstance(value, tuple | list):
        return [told(v) for v in value]
    return type(value).__name__, value


def outcome(function, *arguments):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return told(function(*arguments))
        except (ValueError, TypeError, RuntimeError) as error:
            return type(error).__name__, str(error)


def compare(function, values=VALUES):
    """Both give the same at each of the values; the compiled function comes back."""
    compiled = torch.compile(function)
    for value in values:
        want = outcome(function, torch.tensor([1.0, -2.0]), value)
        assert outcome(compiled, torch.tensor([1.0, -2.0]), value) == want, value
    return compiled


ARITHMETIC = {
    "products": lambda x, s: (s * 0.1, 0.1 * s, s * 3, -s * 0.7 + 0.1),
    "quotients": lambda x, s: (s / 0.3, 0.3 / s, 1 / s, s / 7, s // 0.3, s % 0.3),
    "sums": lambda x, s: (s + 0.1, 0.1 - s, s - 1e-9, s + 1e30),
    "beyond float32": lambda x, s: (s * 1e39, s + 1e39, s / 1e39, s * 1e-50, 1e300 * s),
    "beside tensors": lambda x, s: (x.double() * (s * 0.1), x * (s * 1e38), x + 0.3 / s),
    "running sums": lambda x, s: [s * 0.99**k for k in range(4)],
    "compared": lambda x, s: (s * 0.1 < 0.03, x * 2),
}


@pytest.mark.parametrize("case", ARITHMETIC)
def test_numbers_are_reckoned_with_as_python_does(case):
    assert compare(ARITHMETIC[case]).explain().count("body at each call") == 0


def gathered(x, s):
    total, returns = 0, []
    for reward in (s, s * 2, 0.5, s):
        total = reward + 0.95 * total
        returns.insert(0, total)
    return torch.tensor(returns)


def written(x, s):
    made = torch.tensor([s, 1.0])
    kept = made[:1]
    made.add_(1)
    return made, kept, s


DATA = {
    "single": lambda x, s: x * torch.tensor(s),
    "rows": lambda x, s: torch.tensor([s, 1, True, s * 2, 0.5]),
    "matrices": lambda x, s: torch.tensor([[s, 1], (2, s * 3)]),
    "dtypes": lambda x, s: [torch.tensor([s, 1 / 3], dtype=d) for d in (
        torch.float64, torch.float16, torch.bfloat16)],
    "wide ones beside others": lambda x, s: torch.tensor(s, dtype=torch.float64) * torch.tensor(2.),
    "shared": lambda x, s: (torch.as_tensor(s), torch.asarray([s]), torch.scalar_tensor(s)),
    "of a tensor's dtype": lambda x, s: (x.new_tensor(s), x.double().new_tensor([s]), x.new([s])),
    "legacy": lambda x, s: (torch.Tensor([s, 2]), torch.FloatTensor([[s], [2]])),
    "filled": lambda x, s: (torch.full((), s, dtype=torch.float64) * torch.tensor(1.0),
                            x.new_full((), s, dtype=torch.float64) > 0.2,
                            torch.full_like(x.sum().double(), s) * x),
    "too large": lambda x, s: torch.tensor([s * 1e300, -s * 1e39, math.inf, -0.0]),
    "returns": gathered,
    "written": written,
}  # fmt: skip


@pytest.mark.parametrize("case", DATA)
def test_tensors_of_numbers_are_data(case):
    compiled = compare(DATA[case])
    assert compiled.explain().count("trace of") == 1 and "replayed 4 times" in compiled.explain()


ASKED = {
    "whole": lambda x, s: torch.tensor([s * 10], dtype=torch.long),
    "complex": lambda x, s: torch.tensor([s, 1j]),
    "beside tensors": lambda x, s: torch.tensor([s, torch.tensor(2.0)]),
    "ragged": lambda x, s: torch.tensor([[s], [1, 2]]),
    "long": lambda x, s: torch.tensor([s] * 100),
    "leaves": lambda x, s: torch.tensor(s, requires_grad=True) * 3,
    "empty": lambda x, s: (torch.tensor([]), torch.tensor([[], []]), x * s),
}


@pytest.mark.parametrize("case", ASKED)
def test_tensors_of_other_numbers(case):
    compare(ASKED[case])


def test_gradients_of_tensors_made_of_numbers():
    def fitted(x, s):
        scale = torch.tensor([s, 2 * s], requires_grad=True)
        (scale * x).pow(2).sum().backward()
        return scale.grad, scale.detach()

    compare(fitted)


DISTRIBUTIONS = {
    "normal": lambda x, s: D.Normal(s, 1 + s).log_prob(x),
    "normal of tensors": lambda x, s: (D.Normal(x, s).log_prob(x), D.Normal(s, x.abs()).rsample()),
    "drawn": lambda x, s: (D.Normal(s, 1 + s).sample((3,)), D.Uniform(0.0, s).sample((2,)),
                           D.Exponential(s).rsample((2,)), D.Bernoulli(s).sample((4,))),
    "divergence": lambda x, s: D.kl_divergence(D.Normal(0.0, s), D.Normal(s, 1.0)),
    "independent": lambda x, s: D.Independent(D.Laplace(x, s), 1).log_prob(x),
    "transformed": lambda x, s: D.TransformedDistribution(
        D.Normal(0.0, s), [D.AffineTransform(s, 2.0)]).log_prob(x),
    "chances": lambda x, s: (D.Bernoulli(logits=s).entropy(), D.Geometric(s).mean),
    "expanded": lambda x, s: D.Normal(0.0, s).expand((2,)).sample(),
    "refused": lambda x, s: D.Normal(x, -s),
    "no tensor": lambda x, s: D.Normal(x, 1.0).log_prob(s),
    "loss": lambda x, s: F.gaussian_nll_loss(x, -x, s),
    "slope": lambda x, s: torch.gradient(x, spacing=s),
    "bins": lambda x, s: torch.histc(x, 3, -s, 1.0),
    "ranks": lambda x, s: torch.linalg.matrix_rank(x.outer(x) + torch.eye(2), atol=s),
}  # fmt: skip


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_numbers_are_no_tensors_for_the_library(case):
    function = DISTRIBUTIONS[case]
    compiled = torch.compile(function)
    for value in VALUES:
        want = outcome(function, torch.tensor([1.0, -2.0]), value)
        got = outcome(compiled, torch.tensor([1.0, -2.0]), value)
        assert rounded(got) == rounded(want), value


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return [rounded(v) for v in value] if isinstance(value, tuple | list) else value
