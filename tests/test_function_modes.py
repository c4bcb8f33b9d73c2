"""`torch.overrides.TorchFunctionMode`: what modes see and decide, as torch 2.13 records it."""

import threading

import pytest
import wengert as torch
import wengert.nn.functional as F
from wengert.overrides import BaseTorchFunctionMode, TorchFunctionMode, resolve_name


class Log(TorchFunctionMode):
    def __init__(self, tag="", seen=None):
        super().__init__()
        self.tag, self.seen = tag, [] if seen is None else seen

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(self.tag + resolve_name(func))
        return func(*args, **(kwargs or {}))


class Subtract(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.add or func is torch.add:
            return torch.sub(*args)
        if func is torch.zeros:
            return torch.ones(*args)
        return NotImplemented if func is torch.sin else func(*args, **(kwargs or {}))


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


CALLS = [
    (lambda x: x + 1, "Tensor.add"), (lambda x: 1 - x, "Tensor.__rsub__"),
    (lambda x: x.exp(), "Tensor.exp"), (lambda x: torch.add(x, 1), "add"),
    (lambda x: torch.cat([x, x]), "cat"), (lambda x: x.view(3, 1), "Tensor.view"),
    (lambda x: x.shape, "Tensor.shape.__get__"), (lambda x: torch.zeros(2), "zeros"),
    (lambda x: torch.rand(2), "rand"), (lambda x: torch.tensor([1.0]), "tensor"),
    (lambda x: torch.arange(3), "arange"), (lambda x: torch.zeros_like(x), "zeros_like"),
    (lambda x: x.detach().add_(1), "Tensor.detach Tensor.add_"),
    (lambda x: x[0], "Tensor.__getitem__"), (lambda x: len(x), "Tensor.__len__"),
    (lambda x: float(x[0]), "Tensor.__getitem__ Tensor.__float__"),
    (lambda x: x @ x, "Tensor.matmul"), (lambda x: x == x, "Tensor.__eq__"),
    (lambda x: F.relu(x), "nn.functional.relu"), (lambda x: x.to(torch.float64), "Tensor.to"),
    (lambda x: F.mse_loss(x, x), "nn.functional.mse_loss"),
    (lambda x: torch.nn.functional.linear(x, x[None]), "Tensor.__getitem__ nn.functional.linear"),
    (lambda x: x.sum().backward(), "Tensor.sum Tensor.backward"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "names"), CALLS, ids=[names for _, names in CALLS])
def test_modes_see_what_is_called(x, call, names):
    with Log() as mode:
        call(x)
    assert mode.seen == [f"torch.{name}" for name in names.split()]
    before = len(mode.seen)
    call(x)
    assert len(mode.seen) == before


def test_modes_decide_and_compare_functions(x):
    with Subtract():
        assert (x + 1).tolist() == torch.add(x, 1).tolist() == x.add(1).tolist() == [0, 1, 2]
        assert (x * 2).tolist() == [2, 4, 6] and torch.zeros(1).item() == 1
        with pytest.raises(TypeError, match="Multiple dispatch failed") as raised:
            torch.sin(x)
        assert type(raised.value).__name__ == "TypeError"
    assert (x + 1).tolist() == [2, 3, 4] and torch.zeros(1).item() == 0


def test_what_the_inner_mode_calls_is_asked_of_the_outer_one(x):
    seen = []
    with Log("outer ", seen), Log("inner ", seen):
        torch.mul(x, 2)
        x.mul(3)
    names = ["torch.mul", "torch.Tensor.mul"]
    assert seen == [f"{tag} {name}" for name in names for tag in ("inner", "outer")]


def test_modes_stand_before_classes(x):
    seen = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append("class " + func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    tensor = x.detach().as_subclass(Asked)
    seen.clear()
    with Log("mode ", seen):
        assert type(tensor + 1) is Asked and type(torch.sin(tensor)) is Asked
    assert seen == ["mode torch.Tensor.add", "class add", "mode torch.sin", "class sin"]


def test_errors_leave_the_mode(x):
    class Refusing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise ValueError(func.__name__)

    plain = vars(torch.Tensor).get("exp")
    with pytest.raises(ValueError, match="exp"), Refusing():
        x.exp()
    assert vars(torch.Tensor).get("exp") is plain and torch.allclose(x.exp().log(), x)


def test_other_threads_are_not_asked(x):
    results = []
    with Log() as mode:
        thread = threading.Thread(target=lambda: results.append(x.detach() * 2))
        thread.start()
        thread.join()
    assert results[0].tolist() == [2, 4, 6] and mode.seen == []


def test_compiled_functions_run_in_python_within_a_mode(x):
    function = torch.compile(lambda x: (x * 2).sum())
    assert function(x).item() == function(x).item() == 12
    with Log() as mode:
        assert function(x).item() == 12
    assert mode.seen == ["torch.Tensor.mul", "torch.Tensor.sum", "torch.Tensor.item"]
    inside = torch.compile(lambda x: within(Subtract(), lambda: x + 1))
    assert [inside(x).tolist() for _ in range(3)] == [[0, 1, 2]] * 3


def within(mode, function):
    with mode:
        return function()


def test_base_mode_changes_nothing_and_gradients_flow(x):
    with BaseTorchFunctionMode():
        (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]
