"""Results of a compiled call that show parts of tensors, or are turned, and others computed from
them: hooks, kept gradients and `autograd.grad` have what arrives from inside the call, too."""

import pytest
import wengert as torch
from alike import differences, outcome
from portions import half
from test_results_on_the_way import LOOKS, Square, loss_of, seen


def sliced(x, w):
    a = (x * w)[1:]
    return a, a.sin()


def turned(x, w):
    a = (x * w).t()
    return a, (a * a).t()


def turned_in_memory(x, w):
    a = x.t() * w.t()
    return a, a.sin().sum()


def chunks(x, w):
    p, q = (x * w).chunk(2, 1)
    return p, q, p.sin() * 2 + q


def unbound(x, w):
    p, q = (x * w).unbind(0)
    return q, p.sin(), p


def reshaped(x, w):
    b = x * w
    a = b.reshape(-1)
    return a, b, a.sin()


def expanded(x, w):
    a = (x * w).sum(1, keepdim=True).expand(2, 4)
    return a, a.sin()


def views_of_views(x, w):
    b = x * w
    a = b[1:]
    c = a[:, 1:]
    return a, c, c.exp(), b[:1]


def a_view_of_a_view(x, w):
    a = (x * w)[1:]
    return a[:, 1:], a


def with_base(x, w):
    b = x * w
    a = b[:, 1:]
    return a.sin(), a, b.exp(), b


def of_arguments(x, w):
    a, c = x[1:], w.t()
    d = c[1:]
    return a, d, a.sin() * w, c


def of_the_argument(x, w):
    a = x.t()
    return a, x, a * 2


def twice(x, w):
    a = (x * w)[1:]
    return a, a.sin(), a


def written(x, w):
    b = x * w
    a = b[1:]
    a.mul_(2)
    return a, a.sin()


def written_base(x, w):
    b = x * w
    a = b[1:]
    s = a.sin()
    b.mul_(3)
    return a, s, b


def written_with_base(x, w):
    b = x * w
    a = b[1:]
    a.mul_(2)
    return a, b


def written_unseen(x, w):
    b = x * w
    a = b[1:]
    a.mul_(2)
    return b, a.sin()


def written_twice(x, w):
    b = x * w
    a = b[1:]
    c = a[:, :2]
    c.mul_(2)
    d = c[:, 1:]
    return c, d, c.sin(), a.exp(), b, d.sum()


def custom(x, w):
    a = Square.apply(x * w)[1:]
    return a, Square.apply(a)


def branch(x, w):
    a = (x * w)[1:]
    b = a.sin()
    if a.sum() > -1e9:
        return a, b, b * a
    return a, b


def column_behind_branch(x, w):
    a = (x * w)[:, 1:3]
    b = a.t().sin()
    if a.sum() > -1e9:
        c = b * a.t()
        if c.sum() > -1e9:
            return a, b, c.exp() * a.t()
    return a, b


BODIES = (sliced, turned, turned_in_memory, chunks, unbound, reshaped, expanded, views_of_views,
          a_view_of_a_view, with_base, of_arguments, of_the_argument, twice, written, written_base,
          written_with_base, written_unseen, written_twice, custom, branch,
          column_behind_branch)  # fmt: skip


def note(results, log):
    for k, r in enumerate(results):
        r.register_hook(lambda g, k=k: log.append((k, None if g is None else g.clone())))


def written_after(results, leaves, log):
    note(results[:1], log)
    log.append(outcome(lambda: results[0].mul_(2) and None))
    log.append([r.detach().clone() for r in results])
    log.append([(r._version, r._base is None) for r in results])
    note(results[-1:], log)
    log.append(outcome(lambda: loss_of(results).backward()))


def kept_and_written(results, leaves, log):
    results[0].retain_grad()
    log.append(outcome(lambda: loss_of(results[1:]).backward(retain_graph=True)))
    log.append(outcome(lambda: results[0].add_(1) and None))
    log.append(outcome(lambda: loss_of(results).backward()))
    log.append([r.grad for r in results if r.retains_grad])


def base_written(results, leaves, log):
    base = results[0]._base
    if base is not None and not base.is_leaf:
        note(results[:1], log)
        log.append(outcome(lambda: base.add_(1) and None))
        note(results[:1], log)
        log.append(outcome(lambda: loss_of(results).backward()))


def written_unnoticed(results, leaves, log):
    results[0].data.mul_(2)
    log.append([r.detach().clone() for r in results])
    log.append(outcome(lambda: loss_of(results).backward()))


def penalty(results, leaves, log):
    found = torch.autograd.grad(loss_of(results[1:]), [results[0], *leaves], create_graph=True,
                                allow_unused=True)  # fmt: skip
    note(results[:1], log)
    found = [g for g in found if g is not None and g.requires_grad]
    if found:
        sum((g**2).sum() for g in found).backward()


WRITES = (written_after, kept_and_written, base_written, written_unnoticed, penalty)


@pytest.mark.parametrize("packed", [False, True], ids=["", "packed"])
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_looks_at_parts(body, packed):
    for look in half((*LOOKS, *WRITES), BODIES.index(body) + packed):
        compiled = torch.compile(body)
        for k in range(4):
            want, got = seen(body, look, k, packed), seen(compiled, look, k, packed)
            assert differences(want, got) == [], (look.__name__, k)


def test_ordinary_parts_have_no_results_of_their_own():
    """Where nothing is computed of them, they are looked at from what is computed."""

    def parts(x, w):
        b = x * w
        return b, b[1:], b.t(), w.sum()

    compiled = torch.compile(parts)
    x, w = torch.rand(2, 4, requires_grad=True), torch.rand(2, 4, requires_grad=True)
    for _ in range(4):
        results = compiled(x, w)
        names = [r.grad_fn.name() for r in results]
        assert names[1:3] == ["SliceBackward0", "TBackward0"]


def test_retain_grad_of_a_view_whose_base_was_written():
    x = torch.rand(2, 4, requires_grad=True)
    b = x * 2
    a = b[1:]
    b.mul_(3)
    a.retain_grad()
    a.sum().backward()
    assert a.grad.tolist() == [[1.0] * 4] and x.grad.tolist() == [[0.0] * 4, [6.0] * 4]
