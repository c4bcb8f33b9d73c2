"""Module: registration, state, modes, conversion, hooks, text, copies."""

import copy
import pickle

import pytest
import wengert as torch
from wengert import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.parts = nn.ModuleList([self.first, nn.BatchNorm1d(2)])
        self.register_buffer("kept", torch.arange(2.0))
        self.register_buffer("dropped", torch.ones(1), persistent=False)
        self.plain = 3

    def forward(self, x):
        return self.parts[1](self.first(x))


def test_members_once_with_dotted_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "first.weight", "first.bias", "parts.1.weight", "parts.1.bias"]  # fmt: skip
    assert [n for n, _ in net.named_modules()] == ["", "first", "parts", "parts.1"]
    names = [n for n, _ in net.named_modules(remove_duplicate=False)]
    assert names == ["", "first", "parts", "parts.0", "parts.1"]
    assert "dropped" not in net.state_dict() and "dropped" in dict(net.named_buffers())


@pytest.mark.parametrize("action, error, text", [
    (lambda m: setattr(m, "first", 3), TypeError,
     "cannot assign 'int' as child module 'first' (torch.nn.Module or None expected)"),
    (lambda m: setattr(m, "kept", 3), TypeError,
     "cannot assign 'int' as buffer 'kept' (torch.nn.Buffer, torch.Tensor or None expected)"),
    (lambda m: setattr(m.first, "weight", torch.ones(1)), TypeError,
     "cannot assign 'torch.FloatTensor' as parameter 'weight'"),
    (lambda m: m.register_buffer("plain", None), KeyError, "attribute 'plain' already exists"),
    (lambda m: m.register_buffer("a.b", None), KeyError, "contain"),
    (lambda m: m.register_parameter("q", torch.ones(1)), TypeError,
     "cannot assign 'torch.FloatTensor' object to parameter 'q'"),
    (lambda m: m.add_module("q", 3), TypeError, "int is not a Module subclass"),
    (lambda m: m.get_submodule("parts.7"), AttributeError, "ModuleList has no attribute `7`"),
    (lambda m: m.get_parameter("kept"), AttributeError, "`kept` is not an nn.Parameter"),
    (lambda m: m.train(3), ValueError, "training mode is expected to be boolean"),
    (lambda m: m.to(torch.int32), TypeError, "only accepts floating point or complex dtypes"),
    (lambda m: m.cuda(), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda m: m.missing, AttributeError, "'Net' object has no attribute 'missing'"),
    (lambda m: nn.Module(x=3), TypeError, "got an unexpected keyword argument 'x'"),
    (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
])  # fmt: skip
def test_misuse_raises_torchs_errors(action, error, text):
    with pytest.raises(error) as caught:
        action(Net())
    assert text in str(caught.value)


def test_load_state_dict_reports_what_does_not_fit():
    net = Net()
    with pytest.raises(RuntimeError) as caught:
        net.first.load_state_dict({"weight": torch.ones(3, 2), "extra": torch.ones(1)})
    assert str(caught.value) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". \n\t'
        'Unexpected key(s) in state_dict: "extra". \n\tsize mismatch for weight: copying a param '
        "with shape torch.Size([3, 2]) from checkpoint, the shape in current model is "
        "torch.Size([2, 2])."
    )
    keys = net.load_state_dict({}, strict=False)
    assert "first.weight" in keys.missing_keys and not keys.unexpected_keys
    assert repr(net.load_state_dict(net.state_dict())) == "<All keys matched successfully>"


def test_load_state_dict_copies_in_place_or_assigns():
    a, b = Net(), Net()
    before = a.first.weight
    a.load_state_dict(b.state_dict())
    assert a.first.weight is before and torch.equal(before, b.first.weight)
    a.load_state_dict(b.state_dict(), assign=True)
    assert a.first.weight is not before
    assert isinstance(a.first.weight, nn.Parameter) and a.first.weight.requires_grad


def test_state_dict_hooks_and_extra_state():
    class Stateful(nn.Linear):
        def get_extra_state(self):
            return {"count": 7}

        def set_extra_state(self, state):
            self.loaded = state["count"]

    layer = Stateful(1, 1)
    layer.register_state_dict_post_hook(lambda m, s, prefix, meta: s.update(hooked=torch.ones(1)))
    state = layer.state_dict()
    assert state["_extra_state"] == {"count": 7} and "hooked" in state
    state.pop("hooked")
    layer.load_state_dict(state)
    assert layer.loaded == 7


def test_conversion_keeps_the_parameter_objects():
    net = Net()
    weight = net.first.weight
    net.double()
    assert net.first.weight is weight and weight.dtype is torch.float64
    assert net.kept.dtype is torch.float64 and net.parts[1].num_batches_tracked.dtype is torch.int64
    assert net.half().first.weight.dtype is torch.float16
    assert net.to("cpu", torch.float32).first.weight.dtype is torch.float32


def test_copies_and_pickles_are_independent():
    net = Net()
    for made in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert torch.equal(made.first.weight, net.first.weight)
        assert made.first is made.parts[0]
        with torch.no_grad():
            made.first.weight.add_(1)
        assert not torch.equal(made.first.weight, net.first.weight)


def test_forward_hooks_may_replace_and_are_removed():
    layer = nn.Identity()
    handles = [
        layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
        layer.register_forward_hook(lambda m, args, out: out * 10),
        layer.register_forward_hook(lambda m, args, kw, out: out + 1, with_kwargs=True,
                                    prepend=True),
    ]  # fmt: skip
    assert layer(torch.tensor(2.0)).item() == 40
    for handle in handles:
        handle.remove()
    assert layer(torch.tensor(2.0)).item() == 2


def test_always_called_hooks_run_when_forward_fails():
    seen = []
    layer = nn.Linear(2, 1)
    layer.register_forward_hook(lambda *args: seen.append("called"), always_call=True)
    with pytest.raises(RuntimeError):
        layer(torch.ones(1, 3))
    assert seen == ["called"]


def test_full_backward_hooks_see_and_change_gradients():
    layer = nn.Linear(2, 2)
    seen = []
    layer.register_full_backward_hook(
        lambda m, grad_in, grad_out: (
            seen.append((grad_in[0].shape, grad_out[0].shape)) or (grad_in[0] * 10,)
        )
    )
    layer.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 2,))
    x = torch.ones(3, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [((3, 2), (3, 2))]
    assert torch.allclose(x.grad, 20 * layer.weight.sum(0).expand(3, 2))
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks"):
        layer.register_backward_hook(lambda *args: None)


def test_zero_grad_and_requires_grad():
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.abs().sum() == 0
    layer.zero_grad()
    assert layer.weight.grad is None
    assert not layer.requires_grad_(False).weight.requires_grad


def test_repr_nests_and_counts_repeats():
    class Shown(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(2))

        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Shown()) == (
        "Shown(\n  a=1\n  b=2\n  (layers): ModuleList(\n    (0-1): 2 x Linear(in_features=1, "
        "out_features=1, bias=True)\n  )\n)"
    )


def test_parameters_of_other_tensor_classes_count():
    class Special(torch.Tensor):
        pass

    special = torch.ones(2).as_subclass(Special) if hasattr(torch.Tensor, "as_subclass") else (
        torch.Tensor._make_subclass(Special, torch.ones(2)))  # fmt: skip
    parameter = nn.Parameter(special)
    assert isinstance(parameter, nn.Parameter) and isinstance(parameter, Special)
    assert repr(nn.Parameter(torch.ones(1))).startswith("Parameter containing:\ntensor(")


def test_legacy_classes_go_by_dtype():
    assert isinstance(torch.ones(1), torch.FloatTensor)
    assert not isinstance(torch.ones(1), torch.LongTensor)
    assert torch.LongTensor([1, 2]).dtype is torch.int64
    assert torch.FloatTensor(2, 3).shape == (2, 3)
