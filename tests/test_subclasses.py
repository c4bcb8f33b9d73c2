"""Classes that inherit from Tensor, and their `__torch_function__`: torch 2.13's answers."""

import copy
import threading

import pytest
import wengert as torch
import wengert.nn.functional as F

SEEN = []


class Log(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SEEN.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


class Kept(torch.Tensor):
    pass


class Nearer(Kept):
    pass


class Other(torch.Tensor):
    pass


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0]).as_subclass(Log)


@pytest.fixture
def plain():
    return torch.tensor([4.0, 5.0, 6.0])


CALLS = [
    (lambda x, p: x + 1, "add"), (lambda x, p: 1 + x, "add"), (lambda x, p: p + x, "add"),
    (lambda x, p: p - x, "sub"), (lambda x, p: 1 - x, "__rsub__"), (lambda x, p: 2 / x, "__rdiv__"),
    (lambda x, p: p / x, "div"), (lambda x, p: x**2, "pow"), (lambda x, p: x % 2, "remainder"),
    (lambda x, p: p @ x, "matmul"), (lambda x, p: -x, "neg"), (lambda x, p: abs(x), "abs"),
    (lambda x, p: x < 2, "lt"), (lambda x, p: p == x, "__eq__"),
    (lambda x, p: x[1:], "__getitem__"),
    (lambda x, p: x.__iadd__(1), "add_"), (lambda x, p: torch.add(p, x), "add"),
    (lambda x, p: p.add(x), "add"), (lambda x, p: torch.cat([p, x]), "cat"),
    (lambda x, p: F.relu(x), "relu"), (lambda x, p: F.softmax(x, dim=0), "softmax"),
    (lambda x, p: x.sum(), "sum"), (lambda x, p: x.view(3, 1), "view"),
    (lambda x, p: x.T, "__get__"),
    (lambda x, p: x.to(torch.float64), "to"), (lambda x, p: x.clone(), "clone"),
    (lambda x, p: x.detach(), "detach"), (lambda x, p: torch.zeros_like(x), "zeros_like"),
    (lambda x, p: torch.randn_like(x), "randn_like"), (lambda x, p: F.mse_loss(x, p), "mse_loss"),
    (lambda x, p: torch.einsum("i,i->", x, p), "einsum"),
    (lambda x, p: torch.full_like(input=x, fill_value=2.0), "full_like"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name"), CALLS)
@pytest.mark.filterwarnings("ignore:The use of")
def test_functions_methods_and_operators_ask(x, plain, call, name):
    expected = call(torch.tensor([1.0, 2.0, 3.0]), plain.clone()) if "rand" not in name else None
    SEEN.clear()
    result = call(x, plain)
    assert [name] == SEEN and type(result) is Log
    if expected is not None:
        assert torch.equal(result.as_subclass(torch.Tensor), expected)


def test_results_that_are_no_tensors(x):
    assert type(x.shape) is torch.Size and len(x) == 3 and x.tolist() == [1, 2, 3]
    assert float(x[0]) == 1 and bool(x[0] > 0) and 1.0 in x and f"{x[0]}" == "1.0"
    assert hash(x) == id(x) and {x: 1}[x] == 1
    found = x.max(0)
    assert type(found).__name__ == "max" and type(found.values) is Log
    assert [type(part) for part in x.split(1)] == [Log] * 3 == [type(part) for part in x]
    assert repr(x) == "Log([1., 2., 3.])"


def test_history(x):
    x.requires_grad_()
    y = x * 2
    assert repr(y) == "Log([2., 4., 6.], grad_fn=<AliasBackward0>)"
    assert y.grad_fn.next_functions[0][0].name() == "MulBackward0"
    SEEN.clear()
    (y * torch.ones(3)).sum().backward()
    assert SEEN == ["mul", "sum", "backward"]  # nobody is asked of derivatives
    assert type(x.grad) is torch.Tensor and x.grad.tolist() == [2, 2, 2]
    source = torch.ones(2, requires_grad=True)
    source.as_subclass(Kept).mul(3).sum().backward()
    assert source.grad.tolist() == [3, 3]


def test_classes_meet():
    kept, nearer = Kept([1.0, 2.0]), Nearer([3.0, 4.0])
    assert type(kept + nearer) is type(nearer + kept) is Nearer
    assert type(torch.stack([kept, nearer])) is Nearer
    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for \+: 'Kept' and 'Other'"
    ):
        kept + Other([1.0, 1.0])
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'wengert.add'"):
        torch.add(kept, Other([1.0, 1.0]))


def test_attributes_travel():
    class Owned(torch.Tensor):
        def __new__(cls, data, owner=None):
            made = torch.as_tensor(data).as_subclass(cls)
            made.owner = owner
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            owners = [a.owner for a in args if hasattr(a, "owner")]
            result = super().__torch_function__(func, types, args, kwargs)
            if isinstance(result, Owned):
                result.owner = owners[0] if owners else None
            return result

    mine = Owned([1.0, 2.0], owner="me")
    assert (mine * 2).mean().owner == "me" == F.gelu(mine + mine).owner
    with torch._C.DisableTorchFunctionSubclass():
        assert type(mine * 2) is torch.Tensor


def test_methods_of_a_class_come_first():
    class Mine(torch.Tensor):
        def __add__(self, other):
            return super().__add__(other) * 10

        def relu(self):
            return "mine"

    one = torch.ones(2).as_subclass(Mine)
    assert (one + 1).tolist() == [20, 20] and type(one + 1) is Mine
    assert one.relu() == "mine" and type(torch.relu(one)) is Mine


def test_handlers_are_found_by_function():
    handled = {torch.mean: lambda d: 0.4, torch.Tensor.add: lambda a, b: "method",
               torch.cat: lambda parts: "cat"}  # fmt: skip

    class Handled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return handled[func](*args) if func in handled else NotImplemented

    one = torch.ones(2).as_subclass(Handled)
    assert torch.mean(one) == 0.4 and one + 1 == "method" and torch.cat([one, one]) == "cat"
    with pytest.raises(TypeError, match="unsupported operand"):
        one * 2
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        one.sum()


def test_parameters_are_never_asked():
    class Special(torch.nn.Parameter):
        pass

    one = Special(torch.ones(2))
    assert type(one + 1) is torch.Tensor and isinstance(one, torch.nn.Parameter)
    has = torch.overrides.has_torch_function
    assert has((Kept([1.0]),)) and not has((one, torch.ones(1)))
    kept = torch.nn.Parameter(Kept([1.0, 2.0]))
    assert type(kept) is Kept and isinstance(kept, torch.nn.Parameter)
    assert repr(kept) == "Parameter(Kept([1., 2.], requires_grad=True))"


def test_layers_and_optimizers_take_them():
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)
    out = layer(torch.ones(4, 3).as_subclass(Kept))
    assert type(out) is Kept
    out.pow(2).mean().backward()
    assert type(layer.weight.grad) is torch.Tensor
    layer.weight = torch.nn.Parameter(layer.weight.detach().as_subclass(Kept))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach().clone()
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not torch.equal(before, layer.weight.detach())
    assert type(copy.deepcopy(Kept([1.0]))) is Kept


def test_compiled_functions_run_in_python_for_them(x):
    compiled = torch.compile(lambda x: (x * 2).relu())
    assert compiled(torch.ones(3)).tolist() == [2, 2, 2]
    for _ in range(3):
        SEEN.clear()
        assert type(compiled(x)) is Log and SEEN == ["mul", "relu"]
    assert "__torch_function__" in str(compiled.explain())


def test_threads_are_asked_apart(x):
    kinds = []
    with torch._C.DisableTorchFunction():
        thread = threading.Thread(target=lambda: kinds.append(type(x + 1)))
        thread.start()
        thread.join()
        assert kinds == [Log] and type(x + 1) is torch.Tensor
