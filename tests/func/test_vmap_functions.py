"""Custom Functions inside vmap: their own rule, a derived one, or torch's refusal."""

import numpy as np
import pytest
import wengert as torch
from wengert.autograd import Function
from wengert.func import grad, jacrev, vmap


class Power(Function):
    """Its gradient is twice the true one, to be told apart from it."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, n):
        return x**n

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.n = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * grad * ctx.n * x ** (ctx.n - 1), None


class Scaled(Function):
    """x * w of two tensors, one of which may be the same for all examples."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return x * w, x + w

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, grad, _):
        x, w = ctx.saved_tensors
        return grad * w, grad * x


SEEN = []


class Sorted(Function):
    """NumPy's sort: its vmap sorts the whole batch."""

    @staticmethod
    def forward(x, dim):
        order = np.argsort(x.detach().numpy(), axis=dim)
        back = np.argsort(order, axis=dim)
        taken = np.take_along_axis(x.detach().numpy(), order, dim)
        return torch.tensor(taken), torch.tensor(back)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])
        ctx.dim = inputs[1]

    @staticmethod
    def backward(ctx, grad, _):
        (back,) = ctx.saved_tensors
        return torch.gather(grad, ctx.dim, back), None

    @staticmethod
    def vmap(info, in_dims, x, dim):
        SEEN.append((info.batch_size, info.randomness, in_dims, tuple(x.shape)))
        return Sorted.apply(x.movedim(in_dims[0], 0), dim + 1), (0, 0)


def test_history_of_the_batch_goes_through_a_derived_rule():
    x = torch.ones(2, 3, requires_grad=True)
    out = vmap(lambda row: Power.apply(row, 3))(x)
    assert out.grad_fn.name() == "VmappedPowerBackward"
    out.sum().backward()
    assert x.grad.tolist() == [[6, 6, 6]] * 2
    x.grad = None
    vmap(grad(lambda row: Power.apply(row, 3).sum()))(x).sum().backward()
    assert x.grad.tolist() == [[12, 12, 12]] * 2


def test_gradients_of_what_all_examples_share_are_sums():
    x, w = torch.arange(6.0).view(2, 3).requires_grad_(), torch.ones(3, requires_grad=True)
    product, total = vmap(Scaled.apply, in_dims=(0, None))(x, w)
    assert not total.requires_grad
    product.sum().backward()
    assert w.grad.tolist() == [3, 5, 7] and x.grad.tolist() == [[1, 1, 1]] * 2


def test_a_functions_own_vmap_runs_on_the_whole_batch():
    x = torch.tensor([[3.0, 1, 2], [0, 5, 4]], requires_grad=True)
    weights = torch.arange(3.0)
    SEEN.clear()
    out = vmap(lambda row: Sorted.apply(row, 0)[0])(x)
    assert SEEN == [(2, "error", (0, None), (2, 3))]
    assert out.tolist() == [[1, 2, 3], [0, 4, 5]]
    (out * weights).sum().backward()
    assert x.grad.tolist() == [[2, 0, 1], [0, 2, 1]]
    inside = vmap(grad(lambda row: (Sorted.apply(row, 0)[0] * weights).sum()))(x.detach())
    assert inside.tolist() == [[2, 0, 1], [0, 2, 1]]
    twice = vmap(vmap(lambda row: Sorted.apply(row, 0)[0]))(x.detach().expand(2, 2, 3))
    assert torch.equal(twice[1], out)
    assert jacrev(lambda row: Sorted.apply(row, 0)[0])(torch.tensor([2.0, 1])).tolist() == [
        [0, 1], [1, 0]]  # fmt: skip


def plain(**more):
    body = {
        "forward": staticmethod(lambda x: x * 2),
        "setup_context": staticmethod(lambda ctx, inputs, output: None),
        "backward": staticmethod(lambda ctx, grad: grad * 2),
    }
    return type("Plain", (Function,), {**body, **more})


def test_functions_without_a_rule_are_refused_in_torchs_words():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="You tried to vmap over Plain, but it does not have"):
        vmap(plain().apply)(x)
    both = plain(generate_vmap_rule=True, vmap=staticmethod(lambda info, dims, x: (x * 2, 0)))
    with pytest.raises(RuntimeError, match="has both generate_vmap_rule=True and an overridden"):
        vmap(both.apply)(x)
    old = plain(setup_context=Function.setup_context, forward=staticmethod(lambda ctx, x: x * 2))
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        vmap(old.apply)(x)
    short = plain(vmap=staticmethod(lambda info, dims, x: x * 2))
    with pytest.raises(RuntimeError, match="Expected the vmap staticmethod to have two returns"):
        vmap(short.apply)(x)


def test_gradients_that_are_batched_need_no_rule():
    assert jacrev(plain().apply)(torch.ones(2)).tolist() == [[2, 0], [0, 2]]
