"""Names where programs that were written for torch import them from."""

import io
from collections import OrderedDict
from typing import Dict, List, Optional, Tuple, Union  # noqa: UP035

import pytest
import wengert as torch
from custom_functions import Twice
from wengert import nn
from wengert.nn import functional as F
from wengert.utils.checkpoint import (
    check_backward_validity,
    detach_variable,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_device_states,
)


def test_lazy_layers_lie_beside_the_plain_ones():
    from wengert.nn.modules.batchnorm import LazyBatchNorm2d
    from wengert.nn.modules.conv import LazyConv2d, LazyConvTranspose1d
    from wengert.nn.modules.instancenorm import LazyInstanceNorm1d
    from wengert.nn.modules.linear import LazyLinear

    found = (LazyBatchNorm2d, LazyConv2d, LazyConvTranspose1d, LazyInstanceNorm1d, LazyLinear)
    assert all(getattr(nn, kind.__name__) is kind for kind in found)


def test_names_for_annotations():
    from wengert._tensor import Tensor
    from wengert.nn.common_types import _size_2_t, _size_any_t

    def forward(x: Tensor, size: _size_2_t, other: _size_any_t = 1) -> Tensor:
        return x

    assert forward(torch.ones(1), 2).item() == 1 and Tensor is torch.Tensor is F.Tensor


def test_versions_compare_as_versions():
    from wengert.torch_version import TorchVersion, __version__

    assert __version__ >= "2.4" and __version__ > (2, 9) and __version__ == "2.13.0"
    assert TorchVersion("1.9.1") < "1.10" <= TorchVersion("1.10.0") != "1.10.1"
    assert str(TorchVersion("2.1+cpu")) == "2.1+cpu"


def test_options_of_printing_in_a_block():
    with torch._tensor_str.printoptions(precision=1):
        assert str(torch.tensor([1.25, 2.5])) == "tensor([1.2, 2.5])"
        assert torch._tensor_str.PRINT_OPTS.precision == 1
    assert str(torch.tensor([1.25, 2.5])) == "tensor([1.2500, 2.5000])"


def test_helpers_of_checkpoints():
    x = torch.ones(2, requires_grad=True)
    found, number = detach_variable((x * 2, 5))
    assert found.is_leaf and found.requires_grad and number == 5
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        detach_variable([x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity([torch.ones(1)])
    check_backward_validity([x])
    set_device_states(*get_device_states(x))
    with set_checkpoint_debug_enabled(True):
        torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, torch.ones(2).cos())


def test_anomaly_mode_says_whether_it_looks_for_nan():
    assert torch.is_anomaly_check_nan_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()


def test_writes_that_are_not_counted():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    with torch.autograd._unsafe_preserve_version_counter(y), torch.no_grad():
        y.mul_(2)
    assert y._version == 0
    y.sum().backward()  # of what is there now
    assert torch.equal(x.grad, y.detach())
    with torch.autograd.set_multithreading_enabled(False):
        assert torch.is_grad_enabled()


def test_nodes_of_functions_have_torchs_class():
    node = Twice.apply(torch.ones(1, requires_grad=True)).grad_fn
    assert isinstance(node, torch.autograd.function.BackwardCFunction)
    assert type(node).__mro__[1].__name__ == "BackwardCFunction"


class Scripted(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) * 2


@pytest.mark.parametrize("make", [torch.jit.script, lambda m: torch.jit.trace(m, torch.ones(1, 2))])
def test_scripted_modules_are_saved_and_loaded(make, tmp_path):
    module, x = Scripted(), torch.ones(1, 2)
    made = make(module)
    made.save(tmp_path / "model.pt")
    through = io.BytesIO()
    torch.jit.save(made, through)
    through.seek(0)
    for twin in (torch.jit.load(tmp_path / "model.pt"), torch.jit.load(through, "cpu")):
        assert torch.equal(twin(x), module(x)) and twin.layer is not module.layer
    assert list(made.state_dict()) == ["layer.weight", "layer.bias"]


def test_forks_and_classes_of_torchscript():
    assert torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 2)).item() == 3
    asked = torch.jit.isinstance
    assert asked([1, 2], List[int]) and not asked([1, "a"], List[int])  # noqa: UP006
    assert asked({"a": 1}, Dict[str, int]) and not asked({1: 1}, Dict[str, int])  # noqa: UP006
    assert asked((1, "a"), Tuple[int, str]) and not asked((1,), Tuple[int, str])  # noqa: UP006
    assert asked(None, Optional[int]) and asked(1, Union[int, str])  # noqa: UP007, UP045
    assert asked(OrderedDict(), dict) and torch.jit.Attribute(3, int).value == 3


def test_collating_functions_by_their_own_names():
    from wengert.utils.data._utils.collate import collate_float_fn, collate_tensor_fn

    assert collate_tensor_fn([torch.ones(2)] * 3).shape == (3, 2)
    assert collate_float_fn([1.0]).dtype is torch.float64
    assert not F.has_torch_function((torch.ones(1),)) and torch.utils.deterministic is not None
