"""Results of a compiled call that others are computed from: their hooks, kept gradients and what
`autograd.grad` gives have all that arrives there, from outside the call and from inside."""

import pytest
import wengert as torch
from alike import differences, facts, outcome
from custom_functions import Square


def features(x, w):
    a = x * w
    return a, a.sin()


def three(x, w):
    a = x.exp()
    b = a * w
    return b.tanh(), a, b


def apart(x, w):
    return x * 2, w * 3


def cut(x, w):
    a = x * w
    return a, a.detach() * w + x


def branch(x, w):
    a = x * w
    b = a.sin()
    if a.sum() > -1e9:
        return a, b, b * a
    return a, b


def custom(x, w):
    a = Square.apply(x * w)
    return a, Square.apply(a)


def written(x, w):
    a = x * w
    a.mul_(2)
    b = a + 1
    b[0] = 5
    return a, b


BODIES = (features, three, apart, cut, branch, custom, written)


def loss_of(results):
    return sum((r * (k + 2)).sum() for k, r in enumerate(results))


def hooks(results, leaves, log):
    for k, r in enumerate(results):
        r.register_hook(lambda g, k=k: log.append((k, g.clone())))
    leaves[0].register_hook(lambda g: log.append(("x", g.clone())))
    loss_of(results).backward()


def hooks_that_change(results, leaves, log):
    results[0].register_hook(lambda g: g * 3)
    loss_of(results[1:]).backward()


def a_hook_removed(results, leaves, log):
    handle = results[0].register_hook(lambda g: log.append(g.clone()))
    loss_of(results).backward(retain_graph=True)
    handle.remove()
    results[-1].register_hook(lambda g: log.append(g.clone()))
    loss_of(results).backward(retain_graph=True)
    loss_of(results).backward()
    log.append(outcome(lambda: loss_of(results).backward()))


def retained(results, leaves, log):
    for r in results:
        r.retain_grad()
    loss_of(results[1:]).backward()
    log.extend(r.grad for r in results)


def asked_for(results, leaves, log):
    for inputs in ([results[0]], [results[1], *leaves], [*results]):
        log.append(torch.autograd.grad(loss_of(results[1:]), inputs, retain_graph=True,
                                       allow_unused=True))  # fmt: skip
    log.append(torch.autograd.grad(results[-1].sum(), results[0], allow_unused=True))
    log.append(outcome(lambda: loss_of(results).backward()))


def targets(results, leaves, log):
    loss_of(results[1:]).backward(inputs=[results[0]], retain_graph=True)
    log.append(results[0].grad)
    loss_of(results).backward(inputs=[results[1], leaves[1]])
    log.append(results[1].grad)


def twice(results, leaves, log):
    (g,) = torch.autograd.grad((loss_of(results[1:]) ** 2).sum(), results[0], create_graph=True,
                               allow_unused=True)  # fmt: skip
    if g is not None and g.requires_grad:
        g.sum().backward()


def written_between(results, leaves, log):
    with torch.no_grad():
        leaves[1].add_(1)
    log.append(outcome(lambda: torch.autograd.grad(loss_of(results[1:]), results[0],
                                                   allow_unused=True)))  # fmt: skip


LOOKS = (hooks, hooks_that_change, a_hook_removed, retained, asked_for, targets, twice,
         written_between)  # fmt: skip


def seen(body, look, k, packed):
    x = ((torch.arange(8.0).view(2, 4) * (k + 2)) % 7 / 4 - 0.6).requires_grad_()
    w = (torch.arange(8.0).view(2, 4) / 8 + k).requires_grad_()
    log = []
    if packed:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            results = body(x, w)
    else:
        results = body(x, w)
    raised = outcome(lambda: look(results, [x, w], log))
    found = facts([x.grad, w.grad, log, raised])
    for fact in found.values():  # gradients are row-major here
        if isinstance(fact, dict):
            fact["layout"], fact["memory"], fact["is"] = fact["layout"][0], None, None
            fact["view"] = fact["base"] = fact["version"] = None
    return found


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("look", LOOKS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_looks_at_results(body, look, packed):
    compiled = torch.compile(body)
    for k in range(4):
        want, got = seen(body, look, k, packed), seen(compiled, look, k, packed)
        assert differences(want, got) == [], k
