"""`torch.library`: custom ops in eager, under autograd and in compiled functions."""

from collections.abc import Sequence

import numpy as np
import pytest
import wengert as torch
from wengert import Tensor

calls = []


@torch.library.custom_op("tests::sin", mutates_args=())
def sin(x: Tensor, scale: float = 1.0) -> Tensor:
    calls.append(scale)
    return torch.from_numpy(np.sin(x.numpy()) * scale).to(x.dtype)


def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.scale = inputs[1]


def pull(ctx, grad):
    (x,) = ctx.saved_tensors
    return grad * x.cos() * ctx.scale, None


sin.register_autograd(pull, setup_context=keep)
sin.register_fake(lambda x, scale=1.0: torch.empty_like(x))


@torch.library.custom_op("tests::weighted", mutates_args=())
def weighted(
    xs: Sequence[Tensor], weights: Sequence[float], *, power: int
) -> tuple[Tensor, Tensor]:
    return sum(w * x**power for w, x in zip(weights, xs)), xs[0] + 1


def keep_weights(ctx, inputs, keyword_only_inputs, output):
    ctx.xs, ctx.weights, ctx.power = *inputs, keyword_only_inputs["power"]


def pull_weights(ctx, grad, other):
    n = ctx.power
    grads = [grad * w * n * x ** (n - 1) for w, x in zip(ctx.weights, ctx.xs)]
    return [grads[0] + other, *grads[1:]], None


torch.library.register_autograd("tests::weighted", pull_weights, setup_context=keep_weights)


def test_eager_and_autograd():
    x = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
    y = sin(x, 2.0)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_tests_sin_defaultBackward"
    y.sum().backward()
    np.testing.assert_allclose(y.detach().numpy(), 2 * np.sin([0.5, 1, 2]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([0.5, 1, 2]), rtol=1e-6)
    for same in (torch.ops.tests.sin, torch.ops.tests.sin.default):
        assert same(x, scale=2.0).equal(y)
    with torch.no_grad():
        assert sin(x).grad_fn is None
    double = x.detach().double().requires_grad_()
    assert torch.autograd.gradcheck(sin, (double,))


def test_lists_and_keywords():
    xs = [torch.tensor([2.0], dtype=torch.float64, requires_grad=True) for _ in range(2)]
    total, plus = weighted(xs, [1.0, 3.0], power=2)
    (total + plus).backward()
    assert total.item() == 16 and plus.item() == 3
    assert [x.grad.item() for x in xs] == [5.0, 12.0]


@pytest.mark.parametrize("fullgraph", [False, True])
@pytest.mark.parametrize("size", [3, 400])
def test_compiled_calls_run_it_each_time(fullgraph, size):
    def body(x, scale):
        return (sin(x * 2, scale) + 1).sum()

    f = torch.compile(body, fullgraph=fullgraph)
    calls.clear()
    for k in range(4):
        x = torch.linspace(0, k + 1, size * size).reshape(size, size).requires_grad_()
        again = x.detach().clone().requires_grad_()
        got, expected = f(x, float(k)), body(again, float(k))
        got.backward(), expected.backward()
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(x.grad, again.grad)
    assert calls == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert "custom op tests::sin runs in Python (" in f.explain() and "[R131]" in f.explain()


def test_a_full_graph_may_not_hide_other_breaks_behind_it():
    f = torch.compile(lambda x: sin(x) * abs(x.sum().item()), fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="item"):
        f(torch.ones(3))


def test_ops_that_write():
    @torch.library.custom_op("tests::fill", mutates_args=("x",))
    def fill(x: Tensor, value: float) -> None:
        x.numpy()[...] = value

    x = torch.zeros(2)
    assert fill(x, 3.0) is None and x.tolist() == [3.0, 3.0] and x._version == 1
    f = torch.compile(lambda x, v: (fill(x, v), x * 2)[1])
    assert [f(x, v).tolist() for v in (1.0, 2.0, 5.0)] == [[2.0, 2.0], [4.0, 4.0], [10.0, 10.0]]
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional"):
        fill.register_autograd(pull)
    y = torch.ones(2, requires_grad=True)
    z = y * x
    fill(x, 0.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_errors():
    @torch.library.custom_op("tests::same", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x.view(-1)

    @torch.library.custom_op("tests::rough", mutates_args=())
    def rough(x: Tensor) -> Tensor:
        return x * 2

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
        same(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"Trying to backward through tests.rough.default but "
                       "no autograd formula was registered"):  # fmt: skip
        rough(x).sum().backward()
    with pytest.raises(RuntimeError, match="Expected a value of type 'Tensor' for argument 'x' but "
                       "instead found type 'int'"):  # fmt: skip
        sin(3)
    with pytest.raises(RuntimeError, match="is missing value for argument 'x'"):
        sin()
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'foo' for operator"):
        sin(x, foo=1)
    with pytest.raises(AttributeError, match="'_OpNamespace' 'tests' object has no attribute"):
        torch.ops.tests.nothing  # noqa: B018
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.custom_op("plain", mutates_args=())(lambda x: x)


def of_all(x: Tensor, y: Tensor | None, z: Sequence[int], w: int, b: bool = True,
           s: str = "a", *, k: float) -> tuple[Tensor, Tensor]: ...  # fmt: skip


def nothing(x: Tensor) -> None: ...


def test_schemas_are_those_of_torch():
    infer = torch.library.infer_schema
    assert infer(of_all, mutates_args=("x",)) == (
        "(Tensor(a0!) x, Tensor? y, SymInt[] z, SymInt w, bool b=True, str s=\"a\", *, float k) -> "
        "(Tensor, Tensor)")  # fmt: skip
    assert infer(nothing, mutates_args=("x",)) == "(Tensor(a0!) x) -> ()"
    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        infer(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="were not found in the custom op's signature"):
        infer(nothing, mutates_args=("q",))


def test_define_and_impl():
    torch.library.define("tests::twice", "(Tensor x, int n=2) -> Tensor")
    with pytest.raises(NotImplementedError, match="Could not run 'tests::twice'"):
        torch.ops.tests.twice(torch.ones(2))
    torch.library.impl("tests::twice", "cpu", lambda x, n: x * n)
    assert torch.ops.tests.twice(torch.ones(2)).tolist() == [2.0, 2.0]
    library = torch.library.Library("tests", "FRAGMENT")
    library.define("thrice(Tensor x) -> Tensor")
    library.impl("thrice", lambda x: x * 3, "CPU")
    assert torch.ops.tests.thrice(torch.ones(2)).tolist() == [3.0, 3.0]


def test_opcheck():
    x = torch.ones(3, requires_grad=True)
    assert set(torch.library.opcheck(sin, (x,)).values()) == {"SUCCESS"}

    @torch.library.custom_op("tests::liar", mutates_args=())
    def liar(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    liar.register_fake(lambda x: x[:1])
    found = torch.library.opcheck(liar, (torch.ones(3),), raise_exception=False)
    assert "is not defined as mutable but was mutated" in str(found["test_schema"])
    assert "the fake implementation" in str(found["test_faketensor"])
    with pytest.raises(torch.library.OpCheckError, match="no autograd formula"):
        torch.library.opcheck(liar, (x,), test_utils="test_autograd_registration")


def test_numpy_without_grad_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(x)
