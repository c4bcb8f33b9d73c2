"""`torch.masked`: what a mask hides takes no part."""

import numpy as np
import pytest
import wengert as torch

ROWS = [[1.0, 5.0, 2.0, 8.0], [4.0, 3.0, 7.0, 6.0]]
MASK = [[True, False, True, True], [False, True, True, False]]


@pytest.fixture
def x():
    return torch.tensor(ROWS, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def mask():
    return torch.tensor(MASK)


REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min,
              "median": lambda v: np.sort(v)[(len(v) - 1) // 2], "norm": np.linalg.norm,
              "var": lambda v: np.var(v, ddof=1), "std": lambda v: np.std(v, ddof=1),
              "logsumexp": lambda v: np.log(np.exp(v).sum())}  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_of_what_is_seen(name, x, mask):
    kept = [np.array(row)[flags] for row, flags in zip(ROWS, np.array(MASK))]
    expected = [REDUCTIONS[name](row) for row in kept]
    function = getattr(torch.masked, name)
    found = function(x, dim=1, mask=mask)
    np.testing.assert_allclose(found.detach().numpy(), expected)
    assert function(x, dim=1, keepdim=True, mask=mask).shape == (2, 1)
    found.sum().backward()
    assert (x.grad[~mask] == 0).all() and (x.grad[mask] != 0).any()


def test_places_are_those_of_the_whole_row(x, mask):
    assert torch.masked.argmax(x.detach(), 1, mask=mask).tolist() == [3.0, 2.0]
    assert torch.masked.argmin(x.detach(), 1, mask=mask).tolist() == [0.0, 1.0]


def test_normalizations_give_what_is_hidden_no_part(x, mask):
    shares = torch.masked.softmax(x, 1, mask=mask)
    assert shares[~mask].tolist() == [0.0] * 3
    torch.testing.assert_close(shares.sum(1), torch.ones(2, dtype=torch.float64))
    assert torch.masked.log_softmax(x, 1, mask=mask)[0, 1] == -torch.inf
    small = torch.masked.softmin(x, 1, mask=mask)
    assert small[0].argmax() == 0 and small[0, 1] == 0
    assert torch.masked.cumsum(x, 1, mask=mask)[0].tolist() == [1.0, 1.0, 3.0, 11.0]
    assert torch.masked.cumprod(x, 1, mask=mask)[0].tolist() == [1.0, 1.0, 2.0, 16.0]
    unit = torch.masked.normalize(x, 2.0, 1, mask=mask)
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(2, dtype=torch.float64))


def test_integers_are_hidden_by_the_ends_of_their_range():
    x = torch.tensor([[3, 1], [2, 5]], dtype=torch.int8)
    mask = torch.tensor([True, False])
    assert torch.masked.amax(x, 1, mask=mask).tolist() == [3, 2]
    assert torch.masked.amin(x, mask=torch.tensor([False, True])).item() == 1
    total = torch.masked.sum(x, mask=mask)
    assert total.item() == 5 and total.dtype is torch.int64
    assert torch.masked.amax(x, 0, mask=torch.zeros(2).bool()).tolist() == [-128, -128]
    with pytest.raises(ValueError, match=r"mean\(\): Could not infer output dtype"):
        torch.masked.mean(x, mask=mask)
    with pytest.raises(IndexError, match="expected broadcastable mask"):
        torch.masked.sum(x, mask=torch.ones(1, 2, 2).bool())


def test_sums_of_two_sides_have_a_mask_each():
    a, b = torch.tensor([0.0, 0.0]), torch.tensor([0.0, 0.0])
    hidden = torch.tensor([True, False])
    found = torch.masked.logaddexp(a, b, input_mask=hidden, other_mask=~hidden)
    assert found.tolist() == [0.0, 0.0]
