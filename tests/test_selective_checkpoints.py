"""Selective checkpoints: torch 2.13's answers."""

import functools

import pytest
import wengert as torch
from wengert import nn
from wengert.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

MM = torch.ops.aten.mm.default


def function(x, y):
    return torch.sigmoid(torch.matmul(torch.matmul(x, y), y)) * y


@pytest.fixture
def pair():
    torch.manual_seed(0)
    return torch.rand(4, 4, requires_grad=True), torch.rand(4, 4, requires_grad=True)


def chosen(policy, *args, body=function):
    context = functools.partial(create_selective_checkpoint_contexts, policy)
    return checkpoint(body, *args, use_reentrant=False, context_fn=context)


def test_the_policy_is_asked_once_and_gradients_agree(pair):
    seen = []

    def policy(ctx, op, *args, **kwargs):
        if op == MM:
            shapes = [tuple(a.shape) for a in args]
            seen.append((ctx.is_recompute, str(op), shapes, tuple(ctx.op_output.shape)))
        return CheckpointPolicy.MUST_SAVE if op == MM else CheckpointPolicy.PREFER_RECOMPUTE

    found = torch.autograd.grad(chosen(policy, *pair).sum(), pair)
    expected = torch.autograd.grad(function(*pair).sum(), pair)
    assert all(map(torch.equal, found, expected))
    assert seen == [(False, "aten.mm.default", [(4, 4), (4, 4)], (4, 4))] * 2


@pytest.mark.parametrize(("policy", "products"), [([MM], 2), ([], 4), (lambda *_, **__: True, 2)])
def test_what_is_saved_is_not_computed_again(pair, policy, products):
    """Forward two products; backward three more of its own, seen under another name's node."""
    from wengert.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as whole:
        function(*pair).sum().backward()
    with FlopCounterMode(display=False) as counter:
        chosen(policy, *pair).sum().backward()
    product = 2 * 4 * 4 * 4
    more = (counter.get_total_flops() - whole.get_total_flops()) // product
    assert more == products - 2


def test_a_second_backward_is_refused(pair):
    out = chosen([MM], *pair)
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward()


def test_what_was_kept_may_not_be_written(pair):
    def body(x, y):
        product = x @ y
        result = product.sin()
        with torch.no_grad():
            product.data.mul_(1)
            product.mul_(2)
        return result

    for allowed in (False, True):
        context = functools.partial(create_selective_checkpoint_contexts, [MM], allowed)
        out = checkpoint(body, *pair, use_reentrant=False, context_fn=context)
        if allowed:
            out.sum().backward()
        else:
            with pytest.raises(RuntimeError, match="has been mutated"):
                out.sum().backward()


def test_dropout_and_layers_agree(pair):
    model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 2))
    grads = []
    for run in (functools.partial(chosen, [torch.ops.aten.addmm.default], body=model), model):
        torch.manual_seed(1)
        grads.append(torch.autograd.grad(run(pair[0]).sum(), model[0].weight)[0])
    assert torch.equal(*grads)


def test_compiled_functions_may_hold_them(pair):
    compiled = torch.compile(lambda x, y: chosen([MM], x, y).sum())
    for _ in range(3):
        found = torch.autograd.grad(compiled(*pair), pair)
    expected = torch.autograd.grad(function(*pair).sum(), pair)
    assert all(map(torch.allclose, found, expected))


def test_bad_policies():
    with pytest.raises(ValueError, match="Please update the OpOverloadPacket"):
        create_selective_checkpoint_contexts([torch.ops.aten.mm])
    with pytest.raises(TypeError, match="must be either a function or a list of ops"):
        create_selective_checkpoint_contexts(3)


@pytest.mark.parametrize(("early", "ends"), [(True, 1), (False, 2)])
def test_early_stop_is_what_it_was_when_made(pair, early, ends):
    calls = []

    def body(x):
        y = x.sin().cos()
        calls.append("end")
        return y.sum() * 2

    with set_checkpoint_early_stop(early):
        out = checkpoint(body, pair[0], use_reentrant=False)
    out.backward()
    assert len(calls) == ends
