"""Bad input raises torch's exception with its key phrase, and nothing is modified."""

import pytest
import wengert as torch

ONES = torch.ones(3)
FAR = torch.tensor([0, 7])


@pytest.mark.parametrize(
    ("call", "error", "phrase"),
    [
        (lambda: torch.tensor("a"), TypeError, "invalid data type 'str'"),
        (lambda: torch.tensor(["a"]), ValueError, "too many dimensions 'str'"),
        (lambda: torch.tensor(2**63), ValueError, "Overflow when unpacking long long"),
        (
            lambda: torch.full((2,), float("nan"), dtype=torch.int64),
            RuntimeError,
            "without overflow",
        ),
        (lambda: torch.zeros(2.5), TypeError, "must be"),
        (lambda: torch.zeros(2, -3), RuntimeError, "non-negative. Got"),
        (lambda: torch.ones(2, -3), RuntimeError, "negative dimension -3"),
        (lambda: torch.eye(2, -1), RuntimeError, "m must be greater or equal to 0, got -1"),
        (lambda: torch.eye(-2), RuntimeError, "n must be greater or equal to 0, got -2"),
        (lambda: torch.randperm(-1), RuntimeError, "negative dimension -1"),
        (lambda: torch.arange(0, 1, 0), RuntimeError, "step must be nonzero"),
        (lambda: torch.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
        (lambda: torch.cat([]), ValueError, r"torch.cat\(\): expected a non-empty list"),
        (lambda: ONES.repeat(), TypeError, "missing 1 required positional"),
        (lambda: ONES + object(), TypeError, "unsupported operand"),
        (lambda: ONES.to("cuda"), (RuntimeError, AssertionError), "CUDA|cuda"),
        (lambda: torch.device("nowhere"), RuntimeError, "device"),
        (lambda: torch.Generator("cuda"), RuntimeError, "Cannot get CUDA generator"),
    ],
)
def test_what_is_refused(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call()


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda x: x.add_(torch.ones(2, 3)), RuntimeError),
        (lambda x: x.copy_(torch.ones(2)), RuntimeError),
        (lambda x: x.__setitem__(FAR, 5.0), IndexError),
        (lambda x: x.__setitem__(slice(0, 2), torch.ones(3)), RuntimeError),
        (lambda x: x.index_put_((FAR,), torch.tensor([5.0, 6.0])), IndexError),
        (lambda x: x.index_add_(0, FAR, torch.tensor([5.0, 6.0])), IndexError),
        (lambda x: x.index_fill_(0, FAR, 5.0), IndexError),
        (lambda x: x.scatter_(0, FAR, torch.tensor([5.0, 6.0])), RuntimeError),
        (lambda x: x.uniform_(3, 1), RuntimeError),
        (lambda x: x.normal_(0, -1), RuntimeError),
        (lambda x: x.clamp_(), RuntimeError),
        (lambda x: x.fill_(torch.ones(2)), RuntimeError),
    ],
)
def test_nothing_is_modified_when_a_write_raises(write, error):
    x = torch.arange(3.0)
    with pytest.raises(error):
        write(x)
    assert x.tolist() == [0.0, 1.0, 2.0]
    assert x._version == 0
