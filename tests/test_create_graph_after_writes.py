"""Arguments are written between a compiled forward and a backward with create_graph=True.

Eager's gradients, and theirs, are made of the values that forward kept: as they were, but for those
that are the arguments themselves.
"""

import pytest
import wengert as torch
import wengert.nn.functional as F
from test_results_written_later import alike


def branching(x, w, b):
    y = torch.tanh(x @ w + b)
    if y.sum() > 1000:
        return y
    return torch.softmax(y @ w, 1)


def several(x, w, b):
    y = torch.tanh(F.linear(x, w, b))
    return y @ w, F.gelu(y * 2) @ w, y


BODIES = {
    "layers": lambda x, w, b: F.linear(torch.tanh(F.linear(x, w, b)), w),
    "bias": lambda x, w, b: torch.tanh(torch.addmm(b, x, w)),
    "argument alone": lambda x, w, b: (w * 2).exp(),
    "gelu": lambda x, w, b: F.gelu(F.linear(x, w, b)) @ w,
    "softmax": lambda x, w, b: torch.softmax(x @ w, 1).pow(2),
    "norm": lambda x, w, b: F.layer_norm(x @ w, (2,), b, b),
    "largest": lambda x, w, b: (x @ w).max(1)[0] * b,
    "sorted": lambda x, w, b: (x @ w).sort(1)[0] ** 3,
    "dropped": lambda x, w, b: F.dropout(x @ w, 0.25) @ w,
    "inverse": lambda x, w, b: torch.linalg.inv(x @ w) @ b,
    "views": lambda x, w, b: (x.t() @ w[:, :1]).sigmoid() * w[1:],
    "in place": lambda x, w, b: (x @ w).mul_(b).tanh_() @ w,
    "pointwise": lambda x, w, b: (x * w + b).sin(),
    "branching": branching,
    "several": several,
}


def counted(tensor):
    with torch.no_grad():
        tensor.mul_(1.5)


def by_numpy(tensor):
    array = tensor.detach().numpy()
    array *= 2


def none(x, w, b):
    pass


WRITES = {
    "none": none,
    "data of x": lambda x, w, b: x.data.mul_(2),
    "data of w": lambda x, w, b: w.data.mul_(2),
    "data of b": lambda x, w, b: b.data.mul_(2),
    "part": lambda x, w, b: w.data[0].mul_(2),
    "counted w": lambda x, w, b: counted(w),
    "counted b": lambda x, w, b: counted(b),
    "numpy w": lambda x, w, b: by_numpy(w),
    "numpy b": lambda x, w, b: by_numpy(b),
    "replaced w": lambda x, w, b: setattr(w, "data", torch.ones(2, 2).double()),
    "replaced b": lambda x, w, b: setattr(b, "data", torch.ones(2).double()),
}


def plainly(loss, arguments, write):
    write(*arguments)
    return torch.autograd.grad(loss, arguments, allow_unused=True)


def doubled(loss, arguments, write):
    write(*arguments)
    first = torch.autograd.grad(loss, arguments, create_graph=True, allow_unused=True)
    penalty = sum((g * g).sum() for g in first if g is not None)
    return *first, *torch.autograd.grad(penalty, arguments, allow_unused=True)


def in_between(loss, arguments, write):
    first = torch.autograd.grad(loss, arguments, create_graph=True, allow_unused=True)
    write(*arguments)
    penalty = sum((g * g).sum() for g in first if g is not None)
    second = torch.autograd.grad(penalty, arguments, create_graph=True, allow_unused=True)
    third = torch.autograd.grad(sum(g.sum() for g in second if g is not None), arguments,
                                allow_unused=True)  # fmt: skip
    return *first, *second, *third


def outcomes(call, write, way):
    """Gradients of four calls; where one raises, its words. Two graphs are alive at once."""
    found, alive = [], None
    for k in range(4):
        x = torch.tensor([[0.3, 0.5], [0.7, 0.2 + k]]).double().requires_grad_()
        w = torch.tensor([[1.0, 2.0], [0.5, -0.4]]).double().requires_grad_()
        b = torch.tensor([0.1, 0.2]).double().requires_grad_()
        torch.manual_seed(k)
        results = call(x, w, b)
        alive, results = results, results if isinstance(results, tuple) else (results,)
        loss = sum((r * r).sum() for r in results)
        try:
            found += [None if g is None else g.detach() for g in way(loss, (x, w, b), write)]
        except RuntimeError as error:
            found.append(str(error).partition(":")[0])
    return found, alive


@pytest.mark.parametrize("way", [plainly, doubled, in_between])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_gradients_of_gradients_after_writes(body, way):
    tried = [*WRITES.items()] if way is doubled else [*WRITES.items()][1::3]
    for name, write in tried:
        want, _ = outcomes(body, write, way)
        got, _ = outcomes(torch.compile(body), write, way)
        assert len(want) == len(got), (name, want, got)
        for a, b in zip(want, got):
            same = alike(a, b) or (isinstance(a, torch.Tensor) and torch.allclose(
                a, b, rtol=1e-3, atol=1e-4, equal_nan=True))  # fmt: skip
            assert same, (name, want, got)
