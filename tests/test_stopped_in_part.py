"""A hook writes what a compiled call was given, and raises: what backward did not come to can still
be gone through, also where values went through `saved_tensors_hooks`."""

import contextlib
import itertools

import pytest
import wengert as torch
from portions import half
from test_backward_stopped import attempt, chain, close, leaves, left, products, two, views


def three(a, b, c, d):
    h = torch.tanh(a * b)
    k = torch.exp(c * h)
    return (k * d).sum(), (h.sigmoid() * c).sum()


def mixed(a, b, c, d):
    with torch.no_grad():
        s = a * 3
    y = (a * b).reshape(3, 1) @ (c + 1).reshape(1, 3)
    return (y.sum(0) * d).sum(), (y[1] * s).softmax(0).sum() + b.cumsum(0).prod()


def write(tensor, how):
    """Returns a function that writes to a tensor."""
    array = tensor.detach().numpy() if how == "an array from before" else None

    def written():
        if how == "an array":
            tensor.detach().numpy()[:] *= 1.5
        elif array is not None:
            array[:] *= 1.5
        else:
            (tensor.data if how == "data" else tensor).mul_(1.5)

    return written


def around(kind, log):
    if kind == "no hooks":
        return contextlib.nullcontext()
    if kind == "save_on_cpu":
        return torch.autograd.graph.save_on_cpu()
    return torch.autograd.graph.saved_tensors_hooks(
        lambda t: (log.append(("pack", tuple(t.shape))), t.detach().clone())[1],
        lambda t: (log.append(("unpack", tuple(t.shape))), t)[1],
    )


def stopped(function, hooked, target, how, kind):
    """Backward from the first result, which a hook stops; then from the last, and again."""
    tensors, log, raising = leaves(), [], []
    writes = write(tensors[target], how)

    def hook(leaf):
        log.append("hook")
        if raising:
            with torch.no_grad():
                writes()
            raise ValueError("no more")

    for k, tensor in enumerate(tensors):
        if k == hooked:
            tensor.register_post_accumulate_grad_hook(hook)
        elif kind != "save_on_cpu":
            tensor.register_hook(lambda grad, k=k: log.append(("leaf", k)))
    for _ in range(3):
        with around(kind, log):
            results = function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        for position in (0, -1, 0, -1):
            raising[:] = [1] * (position == 0)
            log.append((attempt(results[position].backward), left(tensors)))
            raising.clear()
        for tensor in tensors:
            tensor.grad = None
    return log


HOW = ["in place", "data", "an array", "an array from before"]


@pytest.mark.parametrize("kind", ["no hooks", "hooks", "save_on_cpu"])
@pytest.mark.parametrize("hooked", range(4))
@pytest.mark.parametrize("body", [two, three, chain, products, mixed, views])
def test_what_was_not_come_to(body, hooked, kind, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    for target, how in half(itertools.product(range(4), HOW), hooked + len(kind)):
        expected = stopped(body, hooked, target, how, kind)
        found = stopped(torch.compile(body), hooked, target, how, kind)
        assert close(found, expected), (target, how)


def test_optimizers_that_step_in_hooks_go_the_quick_way(monkeypatch):
    """They write a parameter when backward has come to all that is made of it. It is copied where
    gradients are made of it that go on: not for the first layer, whose hooks come last."""
    from wengert.in_part import Part

    copied, copies = [], Part.copies

    def noted(*args):
        found = copies(*args)
        copied.extend(array.shape for array in found.values())
        return found

    monkeypatch.setattr(Part, "copies", noted)
    monkeypatch.setattr(Part, "by_ops", None)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    for parameter in model.parameters():
        optimizer = torch.optim.SGD([parameter], lr=0.1)
        parameter.register_post_accumulate_grad_hook(lambda _, opt=optimizer: opt.step())
    loss = torch.compile(lambda x: (model(x) ** 2).mean())
    for _ in range(3):
        loss(torch.randn(5, 4)).backward()
    assert copied.count((1, 4)) == 2 and (4, 4) not in copied
