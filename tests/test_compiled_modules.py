"""`compile(module)` is a module around the original, named as torch names it."""

import copy
import io
import pickle

import pytest
import wengert as torch
from wengert import nn


@pytest.fixture
def pair():
    original = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    return original, torch.compile(original)


def test_names_begin_with_that_of_the_original(pair):
    original, compiled = pair
    state = ["_orig_mod." + name for name in original.state_dict()]
    assert list(compiled.state_dict()) == state
    parameters = dict(compiled.named_parameters())
    assert [f"_orig_mod.{n}" for n, _ in original.named_parameters()] == list(parameters)
    modules = [name for name, _ in compiled.named_modules()]
    assert modules == ["", "_orig_mod", "_orig_mod.0", "_orig_mod.1"]
    assert [n for n, _ in compiled.named_children()] == ["_orig_mod"]
    assert compiled.get_submodule("_orig_mod.0") is original[0]
    assert repr(compiled).startswith("OptimizedModule(\n  (_orig_mod): Sequential(\n    (0)")


def test_inside_another_module():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.compile(nn.Linear(2, 2))

        def forward(self, x):
            return self.inner(x)

    outer = Outer()
    assert list(outer.state_dict()) == ["inner._orig_mod.weight", "inner._orig_mod.bias"]
    step, x = torch.compile(outer), torch.ones(1, 2)
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(step(x), outer.inner._orig_mod(x))
            outer.inner.weight.add_(1)


def test_state_is_loaded_by_the_same_names(pair):
    original, compiled = pair
    assert str(compiled.load_state_dict(compiled.state_dict())) == "<All keys matched successfully>"
    with pytest.raises(RuntimeError, match="loading state_dict for OptimizedModule"):
        compiled.load_state_dict(original.state_dict())


def test_attributes_and_modes_are_those_of_the_original(pair):
    original, compiled = pair
    compiled.scale = 3
    assert original.scale == 3 and "scale" in dir(compiled) and not hasattr(compiled, "other")
    compiled.eval()
    assert not original[1].training and not original.training and not compiled.training
    compiled.train()
    assert original[1].training and compiled.training
    seen = []
    compiled.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Sequential", "OptimizedModule"]


def test_copies_are_compiled_modules_of_copies(pair):
    original, compiled = pair
    through = io.BytesIO()
    torch.save(compiled, through)
    through.seek(0)
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled)),
                 torch.load(through, weights_only=False)):  # fmt: skip
        assert isinstance(twin, torch._dynamo.eval_frame.OptimizedModule)
        assert twin._orig_mod is not original
        compiled.eval(), twin.eval()
        assert torch.equal(twin(torch.ones(1, 2)), compiled(torch.ones(1, 2)))


def test_hooks_are_those_of_the_original(pair):
    _, compiled = pair
    handle = compiled.register_forward_hook(lambda module, args, out: out * 0 + 7)
    for _ in range(3):
        assert compiled(torch.ones(2, 2)).tolist() == [[7, 7], [7, 7]]
    handle.remove()
    assert compiled(torch.ones(2, 2)).abs().max() < 1
