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
