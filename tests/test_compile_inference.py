"""Inference tensors outside of inference mode: compiled functions refuse what eager refuses."""

import pytest
import wengert as torch

WEIGHT = torch.ones(3, requires_grad=True)
HELD = [torch.ones(3)]


def training(x):
    loss = (x * WEIGHT).sum()
    loss.backward()
    WEIGHT.grad = None
    return loss.detach()


def branching(x):
    if x.sum() > 0:
        return x + WEIGHT
    return x * WEIGHT


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x * w

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return None, g * x


BODIES = {
    "saved": lambda x: (x * WEIGHT).sum(),
    "not saved": lambda x: (x + WEIGHT).sum(),
    "a view is saved": lambda x: x.view(1, 3) @ WEIGHT.view(3, 1),
    "what is made of it is saved": lambda x: ((x + 1) * WEIGHT).sum(),
    "without history": lambda x: x * 2,
    "saved by a step": training,
    "in a branch": branching,
    "by a custom Function": lambda x: Scaled.apply(x, WEIGHT),
    "from outside": lambda x: (HELD[0] * WEIGHT).sum() + x.sum(),
    "an array in a list": lambda x: torch.stack([x, x]) @ WEIGHT,
}


def inference(value=1.0):
    with torch.inference_mode():
        return torch.full((3,), value)


def outcome(fn, x):
    HELD[0] = x
    try:
        return fn(x).tolist()
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("first", ["plain", "inference"])
@pytest.mark.parametrize("name", BODIES)
def test_what_eager_refuses_is_refused(name, first):
    body, fn = BODIES[name], torch.compile(BODIES[name])
    kinds = {"plain": lambda: torch.full((3,), 1.0), "inference": inference}
    order = ["plain"] * 4 + ["inference"] * 3 + ["plain"] * 3 + ["inference"]
    for kind in [first, first, *order]:
        assert outcome(fn, kinds[kind]()) == outcome(body, kinds[kind]()), kind


def test_branches_that_save_and_that_do_not():
    fn = torch.compile(branching)
    for value in (1.0, -1.0, 1.0, -1.0, 1.0, -1.0):
        for make in (lambda v: torch.full((3,), v), inference):
            assert outcome(fn, make(value)) == outcome(branching, make(value))


def test_calls_that_raise_leave_the_others_compiled():
    fn = torch.compile(BODIES["saved"])
    for _ in range(3):
        fn(torch.ones(3))
    for _ in range(80):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved"):
            fn(inference())
    assert fn(torch.ones(3)).grad_fn.name() == "CompiledFunctionBackward"
    assert "trace of" in fn.explain() and "eagerly" not in fn.explain()


LAYER = torch.nn.Linear(3, 3)


def in_part(x):
    y = x * 2
    with torch.inference_mode():
        z = y + 1
        return y, z, z[1:], z.t(), x[:2], y[0], LAYER(z).detach()


def out_of_it(x):
    with torch.inference_mode(False):
        y = x.clone() * 2
    return y, y[:1], x * 3


def kept_apart(x):
    with torch.inference_mode():
        hidden = LAYER(x)
    if bool(hidden.sum() > 0):
        return hidden.clone(), hidden, hidden.view(-1)
    return [hidden.exp()]


MADE_INSIDE = {
    "decorated": torch.inference_mode()(lambda x: LAYER(x)),
    "of sequences": torch.inference_mode()(lambda x: LAYER(x.expand(2, 3, 3))),
    "views": torch.inference_mode()(lambda x: (LAYER(x)[:1], x[1:], x.t() * 2)),
    "one memory": torch.inference_mode()(lambda x: (lambda y: (y, y[1:], y.view(-1)))(x * 2)),
    "in part": in_part,
    "out of it": out_of_it,
    "kept apart": kept_apart,
    "numbers": torch.inference_mode()(lambda x: {"loss": LAYER(x).sum().item(), "y": LAYER(x)}),
    "no_grad": torch.no_grad()(lambda x: LAYER(x)),
}


def facts(result):
    parts = [*result.values()] if isinstance(result, dict) else (
        [result] if isinstance(result, torch.Tensor) else [*result])  # fmt: skip
    # numbers are of float32, and their sums may be rounded otherwise
    return [torch.tensor(p) if isinstance(p, float) else (
        p.detach().clone(), p.is_inference(), p._is_view(), p.requires_grad, p.stride(),
        p._base is not None and p._base.is_inference()) for p in parts]  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", MADE_INSIDE)
def test_made_inside(name, grad):
    body = MADE_INSIDE[name]
    compiled = torch.compile(body)
    for k in range(6):
        x = torch.arange(9.0).view(3, 3) - 2 * k
        with torch.inference_mode(k == 5):
            x.requires_grad_(grad and k < 5)
            want, got = facts(body(x)), facts(compiled(x))
        for a, b in zip(want, got, strict=True):
            torch.testing.assert_close(b, a)
    if name != "out of it":
        assert not compiled.refusals and any(
            t.hits for ts in compiled.traces.values() for t in ts)  # fmt: skip
