"""softmax and its kin, norms, closeness, functions applied to elements."""

import math

import numpy as np
import pytest
import wengert as torch


def test_softmax_is_stable():
    x = torch.tensor([1000.0, 0.0, -1000.0], requires_grad=True)
    assert x.softmax(0).tolist() == [1.0, 0.0, 0.0]
    assert x.log_softmax(0).tolist() == [0.0, -1000.0, -2000.0]
    assert x.logsumexp(0).item() == 1000.0
    assert torch.tensor([-math.inf, -math.inf]).logsumexp(0) == -math.inf
    assert type(x.softmax(0).grad_fn).__name__ == "SoftmaxBackward0"
    assert torch.ones(2, 0).logsumexp(1).tolist() == [-math.inf] * 2
    with pytest.raises(NotImplementedError, match="'Long'"):
        torch.tensor([1, 2]).softmax(0)


@pytest.mark.parametrize("p", [2, 1, 0, 3, 0.5, math.inf, -math.inf, -1])
def test_vector_norms(p):
    x = np.array([[3.0, -4.0, 1.0], [1.0, 2.0, 2.0]])
    found = torch.tensor(x, requires_grad=True).norm(p, dim=1)
    assert np.allclose(found.detach().numpy(), np.linalg.norm(x, p, axis=1))
    assert type(found.grad_fn).__name__ == "LinalgVectorNormBackward0"


def test_norms_of_zero_have_finite_gradients():
    for p in (1, 1.5, 2, 3):
        x = torch.zeros(3, requires_grad=True)
        x.norm(p).backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0]
    assert torch.ones(2, 2).norm("nuc").item() == pytest.approx(2.0)
    assert torch.dist(torch.ones(3), torch.zeros(3)).item() == pytest.approx(math.sqrt(3))
    assert torch.ones(2, 4).renorm(2, 0, 1.0).norm(dim=1).tolist() == pytest.approx([1.0, 1.0])


def test_closeness():
    a, nan = torch.tensor([1.0, 2.0]), torch.tensor([math.nan])
    assert torch.equal(a, a.clone()) and not torch.equal(a, a[:1]) and not torch.equal(nan, nan)
    assert torch.allclose(a, a + 1e-9) and not torch.allclose(a, a + 1)
    assert torch.isclose(nan, nan, equal_nan=True).item()
    with pytest.raises(RuntimeError, match="Float did not match Long"):
        torch.isclose(a, torch.tensor([1, 2]))


def test_functions_of_elements():
    x = torch.arange(3.0)
    assert x.apply_(lambda v: v * v).tolist() == [0.0, 1.0, 4.0]
    assert x.map_(torch.ones(1), lambda a, b: a - b).tolist() == [-1.0, 0.0, 3.0]
    assert x.map2_(x, x, lambda a, b, c: a + b + c).tolist() == [-3.0, 0.0, 9.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(1, requires_grad=True).apply_(abs)


def test_the_gradient_of_log_softmax_takes_the_exponentials_it_has():
    inf, nan = math.inf, math.nan
    rows = [[1.0, 2.0, 3.0], [-inf, 0.0, -200.0], [-inf] * 3, [inf, 0.0, 1.0], [nan, 1.0, 2.0],
            [3e38, -3e38, 3e38], [-0.0, 0.0, 1e-40]]  # fmt: skip
    x = torch.tensor(rows, requires_grad=True)
    weights = torch.tensor([[1.0, -2.0, 0.5]])

    def gradient(x):
        return torch.autograd.grad((x.log_softmax(1) * weights).sum(), x)[0]

    compiled = torch.compile(gradient)
    expected = gradient(x)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), expected, rtol=1e-6, atol=0, equal_nan=True)
    assert compiled.dump("forward").count("= exp ") == 1
