"""Backward once more from results whose backward ran inside: it raises where eager's does, and
leaves that are reached before have got their gradients then."""

import pytest
import wengert as torch
from custom_functions import Twice
from test_backward_stopped import attempt, close, leaves, left


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2


def sums(a, b, c, d):
    return (a + b - c).sum() + d.mean()


def late(a, b, c, d):
    return (a * b).exp().sum() + (c * 2).sum() + d.sum()


def early(a, b, c, d):
    loss = a.sum() + d[1:].sum()
    return loss + (b * c).tanh().sum()


def branching(a, b, c, d):
    y = a * b
    if y.sum() > 100:
        y = y * 2
    return (y + c).sum() + d.reshape(3, 1).sum()


def custom(a, b, c, d):
    return Cube.apply(a * b).sum() + Twice.apply(c).sum() + d.sum()


def dropped(a, b, c, d):
    return torch.nn.functional.dropout(a * b, 0.5).sum() + (c - d).sum()


BODIES = [sums, late, early, branching, custom, dropped]


def by_backward(body):
    def step(*tensors):
        loss = body(*tensors)
        loss.backward()
        return loss

    return step


def by_grad(body):
    def step(*tensors):
        loss = body(*tensors)
        return loss, *torch.autograd.grad(loss, tensors)

    return step


def looped(body):
    """Results before the loss."""

    def step(*tensors):
        y = tensors[0] * tensors[1] + tensors[2]
        loss = body(*tensors) + y.sum()
        loss.backward()
        return loss, y, y[1:], y.view(-1, 1)

    return step


def first(results):
    return results[0] if isinstance(results, tuple) else results


MORE = {
    "backward": lambda y, tensors: y.backward(),
    "retained": lambda y, tensors: y.backward(retain_graph=True),
    "recorded": lambda y, tensors: y.backward(create_graph=True),
    "behind": lambda y, tensors: (y * 2 + (tensors[0] * tensors[3]).sum()).backward(),
    "some": lambda y, tensors: y.backward(inputs=[tensors[3]]),
    "asked": lambda y, tensors: torch.autograd.grad(y, tensors[2:]),
}


@pytest.mark.parametrize("more", MORE.values(), ids=MORE)
@pytest.mark.parametrize("inside", [by_backward, by_grad, looped])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph")
def test_once_more(body, inside, more):
    def run(wrap):
        tensors, found = leaves(), []
        captured = leaves()
        given = wrap(inside(body))
        kept = wrap(lambda: inside(body)(*captured))
        for k in range(5):
            for step, behind in ((lambda: given(*tensors), tensors), (kept, captured)):
                y = first(step())
                for _ in range(2):
                    found.append((attempt(lambda y=y, b=behind: more(y, b)), left(behind)))
                    if k > 2:
                        with torch.no_grad():
                            behind[0].mul_(0.9)
                for t in behind:
                    t.grad = None
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("which", range(4))
def test_other_results(which):
    def run(wrap):
        tensors, found = leaves(), []
        step = wrap(looped(late))
        for _ in range(4):
            result = step(*tensors)[which]
            for _ in range(2):
                found.append((attempt(result.sum().backward), left(tensors)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


@pytest.mark.parametrize("wrapped", [(0, 1), (1,), (0,)])
def test_results_of_an_earlier_step(wrapped):
    """A state that is carried on: leaves wait for what is behind it, which raises."""

    def run(wrap):
        (a, b, c, _), found = leaves(), []

        def step(x, h):
            h = (h * a + b).tanh()
            loss = (h * c * x).sum() + a.sum()
            loss.backward()
            return h, loss

        def other(h):
            return (h * a).exp().sum() + b.sum()

        step = wrap(step) if 0 in wrapped else step
        other = wrap(other) if 1 in wrapped else other
        for k in range(10):
            if k % 2 == 0:
                h, _ = step(torch.ones(3), torch.zeros(3))
            elif k % 4 == 1:
                found.append(attempt(lambda h=h: step(torch.ones(3), h)))
            else:
                found.append(attempt(lambda h=h: other(h * 1).backward()))
            found.append(left((a, b, c)))
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_sizes_that_vary():
    def run(wrap):
        w, found = torch.ones(1, requires_grad=True), []
        step = wrap(by_backward(lambda x, y: (x + w).sum() + (x * 2)[1:].sum() + (x * y).sum()))
        for size in (3, 4, 5, 6, 7):
            x, y = torch.arange(1.0, size + 1).requires_grad_(), torch.ones(size)
            loss = step(x, y)
            found.append((attempt(loss.backward), left((x, w))))
        return found

    assert close(run(torch.compile), run(lambda f: f))


def test_hooks_run_where_backward_comes():
    def run(wrap):
        tensors, found = leaves(), []
        step = wrap(by_backward(late))
        for k in range(5):
            loss = step(*tensors)
            handles = [t.register_hook(lambda g, k=k: found.append((k, g.tolist())))
                       for k, t in enumerate(tensors)]  # fmt: skip
            loss.register_hook(lambda g: found.append(g.tolist()))
            found.append((attempt(loss.backward), left(tensors)))
            for handle in handles:
                handle.remove()
        return found

    assert close(run(torch.compile), run(lambda f: f))
