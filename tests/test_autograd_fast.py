"""The short way through eager execution agrees with the general one."""

import warnings

import numpy as np
import pytest
import wengert as torch
from wengert.ir.ops.operators import OPERATORS
from wengert.ir.value import FUNCTIONS, Value
from wengert.tracer.fast import is_fast
from wengert.tracer.tensor import Tensor

UNARY = sorted(f.name for f in FUNCTIONS.values()
               if f.method and is_fast(getattr(f.call, "op", None))
               and len(f.call.op.inputs) == 1)  # fmt: skip
BINARY = sorted(name for name, op in OPERATORS.items() if len(op.inputs) == 2)


def facts(tensor):
    """Everything a user can see of a result."""
    node = tensor.grad_fn
    saved = [] if node is None else [n for n in dir(node) if n.startswith("_saved_")]
    return (
        tensor.dtype, tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf,
        None if node is None else (
            type(node), len(node.next_functions), [e[1] for e in node.next_functions], saved,
            [m.shape for m in node._input_metadata], node.place[0].co_filename),
        tensor._array.tobytes(),
    )  # fmt: skip


def outcome(kind, name, x, *others):
    """What a method of Tensor (the short way) or Value (the general one) gives, or its error."""
    try:
        result = getattr(kind, name)(x, *others)
        return facts(result), gradients(result, x)
    except Exception as error:
        return type(error), str(error)


def gradients(result, *leaves):
    if not result.requires_grad:
        return None
    seed = torch.ones_like(result) * 0.5
    grads = torch.autograd.grad(result, leaves, seed, allow_unused=True)
    return [None if g is None else g._array.tobytes() for g in grads]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_unary_methods(name, dtype):
    op = next(f.call.op for f in FUNCTIONS.values() if f.name == name and f.method)
    low, high = op.domain or (-2.0, 2.0)
    values = np.linspace(low + 0.1, high - 0.1, 6).astype(dtype).reshape(2, 3)
    for array in (values, values[0, 0].reshape(()), values[:0]):
        for needs in (False, True):
            x = torch.from_numpy(np.array(array)).requires_grad_(needs)
            assert outcome(Tensor, name, x) == outcome(Value, name, x)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    "shapes", [((3,), (3,)), ((2, 3), (3,)), ((), (2,)), ((), ()), ((0,), (1,))]
)
def test_operators_on_tensors(name, shapes):
    for needs in ((False, False), (True, False), (False, True), (True, True)):
        x, y = (torch.rand(s) + 0.5 for s in shapes)
        x.requires_grad_(needs[0])
        y.requires_grad_(needs[1])
        short, general = getattr(Tensor, name)(x, y), getattr(Value, name)(x, y)
        assert facts(short) == facts(general)
        assert gradients(short, *(t for t in (x, y) if t.requires_grad)) == gradients(
            general, *(t for t in (x, y) if t.requires_grad)
        )


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("number", [2.5, 3, -1, True, 10**400, float("inf"), 1j])
def test_operators_on_numbers(name, number):
    for needs in (False, True):
        x = (torch.rand(3) + 0.5).requires_grad_(needs)
        assert outcome(Tensor, name, x, number) == outcome(Value, name, x, number)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("name", ["__add__", "__mul__", "__lt__"])
def test_other_dtypes_take_the_general_way(name, dtype):
    kinds = {"float16": torch.float16, "bfloat16": torch.bfloat16, "int64": torch.int64,
             "bool": torch.bool, "complex64": torch.complex64}  # fmt: skip
    x = torch.ones(3).to(kinds[dtype])
    if dtype == "complex64" and name == "__lt__":
        with pytest.raises(RuntimeError):
            x < x  # noqa: B015
        return
    assert facts(getattr(Tensor, name)(x, x)) == facts(getattr(Value, name)(x, x))


def test_overflow_is_silent_even_where_warnings_are_errors():
    x = torch.full((2,), 3e38)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert (x + x).tolist() == [float("inf")] * 2
        assert (x / 0).tolist() == [float("inf")] * 2
        assert x.clone().add_(x).tolist() == [float("inf")] * 2
        assert x.clone().mul_(2.0).tolist() == [float("inf")] * 2
        assert (x - 1e30).log().isnan().any().item() is False
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        x + x
        x.clone().add_(x)
        np.full(2, np.float32(3e38)) * np.float32(10)
    assert len(seen) == 1, "NumPy's own warnings stay the user's"


def test_history_marks_survive():
    x = torch.ones(2, requires_grad=True)
    y = x.detach() * 2 + 1
    with pytest.raises(RuntimeError, match=r"cut by detach\(\) at .*test_autograd_fast.py"):
        y.sum().backward()
    with torch.no_grad():
        z = x * 2
    with pytest.raises(RuntimeError, match=r"cut by no_grad\(\) at .*test_autograd_fast.py"):
        (z + 1).sum().backward()


def test_writes_count_and_say_where():
    x = torch.ones(3)
    y = torch.ones(3, requires_grad=True) * x
    x.add_(1)
    assert x._version == 1
    with pytest.raises(RuntimeError, match=r"changed at .*test_autograd_fast.py:\d+"):
        y.sum().backward()
    for write in (lambda t: t.mul_(2), lambda t: t.sub_(t, alpha=0.5), lambda t: t.zero_(),
                  lambda t: t.div_(2.0)):  # fmt: skip
        before = x._version
        write(x)
        assert x._version == before + 1


def test_writing_raises_before_it_changes():
    x = torch.ones(2)
    for wrong in (torch.ones(3), torch.ones(3, 2), "a", None, torch.ones(2, dtype=torch.complex64)):
        with pytest.raises((RuntimeError, TypeError)):
            x.add_(wrong)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.ones(1).expand(3).add_(1)
    assert x.tolist() == [1, 1] and x._version == 0


def test_large_gradients_are_taken_not_copied():
    weight = torch.ones(64, 64, requires_grad=True)
    made = []
    product = torch.ones(64, 64) @ weight
    product.grad_fn.register_hook(lambda inputs, outputs: made.append(id(inputs[1]._array)))
    product.sum().backward()
    assert weight.grad.is_contiguous()
    kept = weight.grad
    (torch.ones(64, 64) @ weight).sum().backward()
    assert weight.grad is kept and kept[0, 0].item() == 128


def test_a_user_held_gradient_is_never_aliased():
    x = torch.ones(3, requires_grad=True)
    seed = torch.ones(3)
    (x + 0).backward(seed)
    x.grad.add_(5)
    assert seed.tolist() == [1, 1, 1]
    kept = []
    y = torch.ones(3, requires_grad=True)
    z = y * 2
    z.register_hook(kept.append)
    (z + 0).backward(seed)
    y.grad.mul_(100)
    assert kept[0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("make", [
    lambda: torch.tensor([300.0]).half() * 300,
    lambda: torch.full((1,), 70000.0, dtype=torch.float16),
    lambda: torch.tensor([70000.0], dtype=torch.float16),
    lambda: torch.ones(1).half() * 1e308,
    lambda: torch.compile(lambda x: x * np.float64(1e308))(torch.ones(1)),
    lambda: torch.compile(lambda x, k: x * k)(torch.ones(1).half(), 1e308),
])  # fmt: skip
def test_halves_overflow_in_silence(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make().tolist() == [float("inf")]
