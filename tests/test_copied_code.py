"""Names that are not public, but that layers, losses and optimizers copied from torch import."""

import pytest
import wengert as torch
from wengert import nn
from wengert.autograd.function import FunctionMeta, InplaceFunction
from wengert.autograd.variable import Variable
from wengert.nn import _reduction
from wengert.nn.modules.module import _addindent
from wengert.nn.modules.transformer import (
    _generate_square_subsequent_mask,
    _get_activation_fn,
    _get_clones,
    _get_seq_len,
)
from wengert.nn.modules.utils import (
    _list_with_default,
    _ntuple,
    _pair,
    _quadruple,
    _reverse_repeat_tuple,
    _single,
    _triple,
)
from wengert.optim.optimizer import (
    Optimizer,
    ParamsT,
    _default_to_fused_or_foreach,
    _use_grad_for_differentiable,
)


def test_tuples_of_numbers():
    assert (_single(3), _pair(3), _triple(3), _quadruple(3)) == ((3,), (3,) * 2, (3,) * 3, (3,) * 4)
    assert _pair([1, 2]) == (1, 2) and _ntuple(5)("ab") == ("a", "b")
    assert _pair.__name__ == "_pair" and _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert _list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        _list_with_default([1, 2], [3])


def test_helpers_of_transformers():
    clones = _get_clones(nn.Linear(2, 3), 2)
    assert isinstance(clones, nn.ModuleList) and clones[0].weight is not clones[1].weight
    assert _get_activation_fn("gelu")(torch.zeros(1)).item() == 0
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not tanh"):
        _get_activation_fn("tanh")
    inf = float("inf")
    assert _generate_square_subsequent_mask(2).tolist() == [[0, -inf], [0, 0]]
    assert [_get_seq_len(torch.zeros(*s), True) for s in ((4, 5), (3, 4, 5))] == [4, 4]


def test_words_of_losses():
    assert [_reduction.get_enum(w) for w in ("none", "mean", "sum")] == [0, 1, 2]
    assert _reduction.legacy_get_string(False, None, False) == "sum"
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert _reduction.legacy_get_enum(None, False) == 0
    with pytest.raises(ValueError, match="median is not a valid value for reduction"):
        _reduction.get_enum("median")


def test_functions_of_old_programs():
    class Binarize(InplaceFunction):
        @staticmethod
        def forward(ctx, x, inplace=False):
            ctx.inplace = inplace
            return x.sign()

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    out = Binarize.apply(x)
    out.sum().backward()
    assert out.tolist() == [-1, 1] and x.grad.tolist() == [1, 1]
    assert isinstance(Binarize, FunctionMeta) and out.grad_fn.name() == "BinarizeBackward"


def test_variables_are_tensors():
    data = torch.ones(2)
    made = Variable(data, requires_grad=True)
    assert isinstance(data, Variable) and isinstance(made, Variable) and type(made) is torch.Tensor
    assert not isinstance(3, Variable) and Variable is torch.autograd.Variable
    assert made is not data and made.requires_grad and made.data_ptr() == data.data_ptr()
    assert Variable(made * 2).grad_fn is None and Variable().tolist() == []
    assert repr(Variable).endswith(".autograd.variable.Variable'>")
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        Variable(data, volatile=True)


def test_copied_optimizers():
    class Descent(Optimizer):
        def __init__(self, params: ParamsT, lr=0.5):
            super().__init__(params, {"lr": lr, "differentiable": False})

        @_use_grad_for_differentiable
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])

    parameter = nn.Parameter(torch.ones(2))
    optimizer = Descent([parameter])
    (parameter**2).sum().backward()
    optimizer.step()
    assert parameter.tolist() == [0, 0]
    assert _default_to_fused_or_foreach([parameter], False) == (False, False)


def test_initialisers_draw_the_same():
    torch.manual_seed(0)
    first = nn.init._no_grad_normal_(torch.empty(3), 0.0, 1.0)
    torch.manual_seed(0)
    assert torch.equal(first, torch.randn(3))
    assert nn.init._no_grad_fill_(torch.empty(2), 3.0).tolist() == [3, 3]


def test_batch_norms_are_converted():
    model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm1d(3)))
    weight = model[1].weight
    made = nn.SyncBatchNorm.convert_sync_batchnorm(model.eval())
    assert made is model and made[1].weight is weight and not made[1].training
    assert [type(m).__name__ for m in made.modules()].count("SyncBatchNorm") == 2
    assert repr(made[1]).startswith("SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True")


def test_other_names():
    tensors = [torch.arange(4.0).view(2, 2), torch.ones(3)]
    flat = torch._utils._flatten_dense_tensors(tensors)
    assert flat.tolist() == [0, 1, 2, 3, 1, 1, 1]
    parts = torch._utils._unflatten_dense_tensors(flat, tensors)
    assert [tuple(p.shape) for p in parts] == [(2, 2), (3,)]
    assert [len(g) for g in torch._utils._take_tensors([*tensors, torch.ones(9)], 28)] == [2, 1]
    assert _addindent("a\nb", 2) == "a\n  b"
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.freeze(nn.ReLU) is nn.ReLU
    assert isinstance(type("M", (torch.jit.ScriptModule,), {})(), nn.Module)
    assert torch.utils.model_zoo.load_url is torch.hub.load_state_dict_from_url
    with torch.cuda.stream(None), torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert torch.backends.cuda.math_sdp_enabled()
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        torch.cuda.nvtx.range_push("step")


def test_settings_of_the_scaler():
    scaler = torch.amp.GradScaler("cpu", growth_factor=3.0)
    scaler.set_growth_interval(7)
    scaler.set_backoff_factor(0.25)
    scaler.set_growth_factor(scaler.get_growth_factor() + 1)
    assert scaler.state_dict() == {"scale": 65536.0, "growth_factor": 4.0, "backoff_factor": 0.25,
                                   "growth_interval": 7, "_growth_tracker": 0}  # fmt: skip
    assert scaler.get_growth_interval() == 7 and scaler.get_backoff_factor() == 0.25
