"""Arguments that share memory, compiled: results are those of eager calls in every order."""

import itertools

import pytest
import wengert as torch

SIZE = 6
OUTSIDE = torch.ones(SIZE)


def read(x, y):
    return x + 2 * y


def write(x, y):
    x.add_(1)
    return y * 2


def capture(x, y):
    return x * 2 + y + OUTSIDE


def same():
    tensor = torch.arange(float(SIZE))
    return tensor, tensor


def apart():
    return torch.arange(float(SIZE)), 3 * torch.arange(float(SIZE))


def overlapping():
    tensor = torch.arange(SIZE + 1.0)
    return tensor[:SIZE], tensor[1:]


def base_and_view():
    tensor = torch.arange(float(SIZE))
    return tensor, tensor[:]


def outside():
    return OUTSIDE, torch.arange(float(SIZE))


@pytest.mark.parametrize("function", [read, write, capture])
@pytest.mark.parametrize(
    "calls", list(itertools.permutations([same, apart, overlapping, base_and_view, outside], 2))
)
def test_sharing_selects_the_trace(function, calls):
    if function is write and outside in calls:
        pytest.skip("writes into the tensor that other cases read")
    compiled = torch.compile(function)
    for arguments in (*calls, *calls):
        for _ in range(2):
            assert compiled(*arguments()).tolist() == function(*arguments()).tolist()


def test_windows_of_one_tensor_are_compiled():
    text = torch.arange(40.0)
    compiled = torch.compile(read)
    for start in range(8):
        x, y = text[start : start + 8], text[start + 1 : start + 9]
        assert compiled(x, y).tolist() == read(x, y).tolist()
    assert "eagerly" not in compiled.explain() and "replayed 7 times" in compiled.explain()


def test_gradients_of_shared_arguments():
    leaf = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    compiled = torch.compile(lambda x, y: (x * y).sum())
    for _ in range(3):
        for x, y, slope in ((leaf, leaf, [2.0, 4, 6]), (leaf[:2], leaf[1:], [2.0, 4, 2]),
                            (leaf, leaf.detach(), [1.0, 2, 3])):  # fmt: skip
            assert torch.autograd.grad(compiled(x, y), leaf)[0].tolist() == slope
