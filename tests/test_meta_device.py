"""The device "meta": tensors with a shape, a dtype and strides, but without values."""

import copy

import numpy as np
import pytest
import wengert as torch
from wengert import nn


def meta(*shape, **options):
    return torch.empty(*shape, device="meta", **options)


def test_what_they_are():
    x = meta(2, 3)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3))"
    assert str(meta(2, dtype=torch.float64, requires_grad=True)) == (
        "tensor(..., device='meta', size=(2,), dtype=torch.float64, requires_grad=True)"
    )
    assert x.device == torch.device("meta") and x.is_meta and not x.is_cpu
    assert (x.stride(), x.T.stride(), x.numel(), x.data_ptr()) == ((3, 1), (1, 3), 6, 0)
    assert not torch.ones(1).is_meta and isinstance(x, torch.Tensor)


@pytest.mark.parametrize("make", [
    lambda **w: torch.ones(2, 3, **w), lambda **w: torch.full((2, 3), 4.0, **w),
    lambda **w: torch.rand(2, 3, **w), lambda **w: torch.randint(5, (2, 3), **w),
    lambda **w: torch.arange(3, **w), lambda **w: torch.linspace(0, 1, 5, **w),
    lambda **w: torch.eye(3, **w), lambda **w: torch.tensor([1, 2], **w),
    lambda **w: torch.zeros_like(torch.ones(2, 3).T, **w), lambda **w: torch.randperm(4, **w),
])  # fmt: skip
def test_functions_that_make_tensors(make):
    torch.manual_seed(3)
    made = make(device="meta")
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))  # nothing was drawn for it
    plain = make()
    assert made.is_meta and not plain.is_meta
    facts = [(t.shape, t.dtype, t.stride()) for t in (made, plain, plain.to("meta"))]
    assert facts[0] == facts[1] == facts[2]


def test_functions_of_them():
    x = meta(2, 3, requires_grad=True)
    y = (x @ x.T).relu()
    assert repr(y) == "tensor(..., device='meta', size=(2, 2), grad_fn=<ReluBackward0>)"
    values, indices = x.max(0)
    assert values.is_meta and indices.dtype is torch.int64 and indices.is_meta
    assert [part.shape for part in x.split(1)] == [(1, 3), (1, 3)]
    assert (x + 1).is_meta and (x + torch.tensor(1.0)).is_meta and x[0].shape == (3,)
    assert x.new_zeros(2).is_meta and torch.arange(3, device=x.device).is_meta
    assert not torch.zeros_like(x, device="cpu").is_meta
    y.sum().backward()
    assert x.grad.shape == (2, 3)


def test_writes_are_left_out():
    x = meta(2)
    assert x.uniform_() is x and x.copy_(torch.ones(2)) is x and x.add_(1) is x
    x[0] = 5.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        meta(2, requires_grad=True).zero_()


@pytest.mark.parametrize("function, error, words", [
    (lambda x: x.item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
    (lambda x: bool(x.sum()), RuntimeError, "cannot be called on meta tensors"),
    (lambda x: x.tolist(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda x: x.cpu(), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda x: x.to("cpu"), NotImplementedError, "Cannot copy out of meta tensor; no data!"),
    (lambda x: torch.ones(2).copy_(x), NotImplementedError, "Cannot copy out of meta tensor"),
    (lambda x: x.numpy(), TypeError, "can't convert meta device type tensor to numpy"),
    (lambda x: np.asarray(x), TypeError, "can't convert meta device type tensor to numpy"),
    (lambda x: x.nonzero(), NotImplementedError, "depends on values"),
    (lambda x: x[x > 0], NotImplementedError, "depends on values"),
    (lambda x: x + torch.ones(2), RuntimeError, "cpu is not on the expected device meta!"),
    (lambda x: torch.ones(2) + x, RuntimeError, "meta is not on the expected device cpu!"),
])  # fmt: skip
def test_what_needs_values_raises(function, error, words):
    with pytest.raises(error, match=words):
        function(meta(2))


def test_blocks_and_the_default():
    with torch.device("meta"):
        assert torch.ones(2).is_meta and nn.Linear(1, 1).weight.is_meta
        assert torch.get_default_device() == torch.device("meta")
        assert not torch.ones(1, device="cpu").is_meta
        with torch.device("cpu"):
            assert not torch.ones(1).is_meta
    assert not torch.ones(1).is_meta
    torch.set_default_device("meta")
    try:
        assert torch.ones(1).is_meta
    finally:
        torch.set_default_device(None)
    assert not torch.ones(1).is_meta and str(torch.get_default_device()) == "cpu"


@pytest.mark.parametrize("layer, shape", [
    (lambda **w: nn.Linear(4, 5, **w), (2, 4)), (lambda **w: nn.Conv2d(1, 2, 3, **w), (1, 1, 5, 5)),
    (lambda **w: nn.LSTM(2, 3, **w), (4, 2)), (lambda **w: nn.GRUCell(2, 3, **w), (4, 2)),
    (lambda **w: nn.BatchNorm1d(3, **w), (2, 3)), (lambda **w: nn.LayerNorm(3, **w), (2, 3)),
    (lambda **w: nn.TransformerEncoderLayer(4, 2, 8, **w), (3, 1, 4)),
])  # fmt: skip
def test_layers(layer, shape):
    def first(out):
        return (out[0] if isinstance(out, tuple) else out).shape

    made, plain = layer(device="meta"), layer()
    assert all(t.is_meta for t in (*made.parameters(), *made.buffers()))
    assert all(isinstance(p, nn.Parameter) for p in made.parameters())
    assert first(made(meta(*shape))) == first(plain(torch.ones(shape)))
    assert copy.deepcopy(made).state_dict().keys() == plain.state_dict().keys()


def test_modules_get_values():
    with pytest.raises(NotImplementedError, match=r"Please use .*to_empty"):
        nn.Linear(2, 2, device="meta").to("cpu")
    assert nn.Linear(2, 2).to("meta").weight.is_meta
    filled = nn.Linear(2, 2, device="meta").to_empty(device="cpu")
    assert type(filled.weight) is nn.Parameter and filled.weight.requires_grad
    nn.init.ones_(filled.weight)
    assert filled.weight.sum() == 4
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    source = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model.load_state_dict(source.state_dict(), assign=True)
    assert not any(t.is_meta for t in model.state_dict().values())
    assert torch.equal(model(torch.ones(2, 2)), source(torch.ones(2, 2)))


def test_compiled_functions_take_them():
    f = torch.compile(lambda x: (x * 2).sum(0))
    for _ in range(3):
        assert f(meta(2, 3)).is_meta and f(meta(2, 3)).shape == (3,)
        assert f(torch.ones(2, 3)).tolist() == [4, 4, 4]
