"""Random graphs, parts of them compiled, that come again and again: gradients stay the engine's."""

import random

import numpy as np
import pytest
import wengert as torch
from wengert.tracer import engine

F = torch.nn.functional
STEPS = [
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a + b.sin(),
    lambda a, b: (a @ b.t()) @ b * 0.1,
    lambda a, b: torch.tanh(a) - b,
    lambda a, b: torch.cat([a, b], 0)[: a.shape[0]],
    lambda a, b: F.softmax(a, -1) + b * 2.0,
    lambda a, b: F.layer_norm(a, (a.shape[-1],)) * b,
    lambda a, b: torch.where(a > 0, a, b),
    lambda a, b: a.t().contiguous().t() + b,
    lambda a, b: a.sum(0, keepdim=True) + b,
    lambda a, b: F.relu(a) + b.mean(),
]
ACTS = ["plain"] * 4 + [
    "before",
    "layout",
    "hook",
    "leaf hook",
    "add up",
    "retain",
    "frozen",
    "root",
]


def part(rng):
    """A function of two tensors to two: a few steps on what is there by then."""
    steps = [(rng.choice(STEPS), rng.random(), rng.random()) for _ in range(rng.randint(2, 7))]

    def function(a, b):
        values = [a, b]
        for step, first, second in steps:
            values.append(step(values[int(first * len(values))], values[int(second * len(values))]))
        return values[-1], values[len(values) // 2]

    return function


def train(parts, leaves, act):
    """One step: forward through the parts, backward, as `act` says; what it shows."""
    seen, handle = [], None
    a, b = leaves
    if act != "add up":
        a.grad = b.grad = None
    if act == "before":
        a = a * 2.0
    elif act == "layout":
        b = (b.t() + 0.0).t()
    for function in parts:
        a, b = function(a, b)
    if act == "hook" and a.requires_grad:
        a.register_hook(lambda g: seen.append(g.sum().item()) or g * 2.0)
    elif act == "leaf hook":
        handle = leaves[0].register_hook(lambda g: None if g is None else g * 3.0)
    elif act == "frozen":
        leaves[1].requires_grad_(False)
    out = a if act == "root" else a.sum() + (b * b).mean()
    if out.requires_grad:
        seed = torch.ones_like(out) if out.dim() else None
        if act == "retain":
            out.backward(seed, retain_graph=True)
        out.backward(seed)
    if handle is not None:
        handle.remove()
    leaves[1].requires_grad_()
    return [a.detach().numpy().copy(), *seen,
            *(0.0 if x.grad is None else x.grad.numpy().copy() for x in leaves)]  # fmt: skip


def history(parts, rng, seed):
    shape = rng.choice([1, 3, 5]), rng.choice([2, 4])
    values = np.random.default_rng(seed).normal(size=(2, *shape))
    leaves = [torch.tensor(v).requires_grad_() for v in values]
    acts = ["plain"] * 4 + [rng.choice(ACTS) for _ in range(8)]
    return acts, [train(parts, leaves, act) for act in acts]


@pytest.mark.parametrize("seed", range(24))
def test_gradients_are_the_engines(seed, monkeypatch):
    rng = random.Random(seed)
    parts = [part(rng) for _ in range(rng.randint(1, 4))]
    compiled = [torch.compile(p) if rng.random() < 0.5 else p for p in parts]
    state = rng.getstate()
    _, eager = history(parts, rng, seed)
    rng.setstate(state)
    _, mixed = history(compiled, rng, seed)
    rng.setstate(state)
    monkeypatch.setattr(engine.Run, "is_plain", lambda self: False)
    acts, expected = history(parts, rng, seed)
    for act, a, b, c in zip(acts, expected, eager, mixed):
        assert len(a) == len(b) == len(c), act
        for x, y, z in zip(a, b, c):
            np.testing.assert_array_equal(x, y, err_msg=act)
            np.testing.assert_allclose(x, z, rtol=1e-9, atol=1e-12, err_msg=act)
