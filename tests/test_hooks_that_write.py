"""A hook of a leaf writes in the middle of a backward: what ops read that come later is what it
wrote, or an error, behind compiled calls as in eager."""

import itertools

import pytest
import wengert as torch
from portions import half
from test_backward_stopped import attempt, chain, close, leaves, left, products, sums, two
from test_stopped_in_part import HOW, mixed, three, write


def written(function, writer, target, how, result, retain):
    tensors, log = leaves(), []
    writes = write(tensors[target], how)

    def hook(leaf):
        log.append(("wrote", left(tensors)))
        with torch.no_grad():
            writes()

    tensors[writer].register_post_accumulate_grad_hook(hook)
    for k, tensor in enumerate(tensors):
        tensor.register_hook(lambda grad, k=k: log.append(("leaf", k)))
    for _ in range(3):
        results = function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        chosen = results[result % len(results)]
        log.append((attempt(lambda: chosen.backward(retain_graph=retain)), left(tensors)))  # noqa: B023
        for tensor in tensors:
            tensor.grad = None
    return log


@pytest.mark.parametrize("retain", [False, True], ids=["freed", "retained"])
@pytest.mark.parametrize("result", range(2))
@pytest.mark.parametrize("body", [two, three, chain, products, mixed, sums])
def test_what_hooks_wrote_is_read(body, result, retain, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    cases = itertools.product(range(4), range(4), HOW)
    for writer, target, how in half(cases, result + retain):
        call = (writer, target, how, result, retain)
        assert close(written(torch.compile(body), *call), written(body, *call)), call


def test_behind_another_call():
    """The gradient that is handed on is made of what was written, too."""

    def run(wrap):
        (a, b, c, d), log = leaves(), []
        first, second = wrap(lambda a, b: (a * b).tanh()), wrap(lambda y, c, d: (y * c).exp() + d)

        def hook(leaf):
            with torch.no_grad():
                c.data.mul_(2.0)

        d.register_post_accumulate_grad_hook(hook)
        for _ in range(4):
            log.append((attempt(second(first(a, b), c, d).sum().backward), left((a, b, c, d))))
        return log

    assert close(run(torch.compile), run(lambda f: f))


def test_gradients_that_were_asked_for():
    def run(wrap):
        (a, b, c, d), log = leaves(), []

        def hook(grad):
            with torch.no_grad():
                b.data.mul_(2.0)

        c.register_hook(hook)
        for _ in range(4):
            y = wrap(chain)(a, b, c, d)
            log.append([g.tolist() for g in torch.autograd.grad(y, (c, a, d))])
        return log

    assert close(run(torch.compile), run(lambda f: f))


def written_again(function, target, how, stopped, retain):
    """Each leaf's hook writes; in every second backward, that of one raises."""
    tensors, log, raising = leaves(), [], []
    writes = write(tensors[target], how)

    def hook(leaf, k):
        log.append((k, left(tensors)))
        with torch.no_grad():
            writes()
        if raising and k == stopped:
            raise ValueError("no more")

    for k, tensor in enumerate(tensors):
        tensor.register_post_accumulate_grad_hook(lambda leaf, k=k: hook(leaf, k))
    for _ in range(3):
        results = function(*tensors)
        results = results if isinstance(results, tuple) else (results,)
        for position in (0, -1, 0, -1):
            raising[:] = [1] * (not position)
            call = results[position].backward
            log.append((attempt(lambda: call(retain_graph=retain)), left(tensors)))  # noqa: B023
        for tensor in tensors:
            tensor.grad = None
            tensor.data.clamp_(-2.0, 2.0)
    return log


@pytest.mark.parametrize("retain", [False, True], ids=["freed", "retained"])
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("body", [two, three, chain, products, mixed, sums])
def test_what_hooks_write_behind_one_that_stopped(body, how, retain, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    for target, stopped in half(itertools.product(range(4), range(4)), HOW.index(how) + retain):
        call = (target, how, stopped, retain)
        assert close(written_again(torch.compile(body), *call), written_again(body, *call)), call


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("turned", [False, True], ids=["read later first", "read before first"])
def test_a_hook_writes_two(how, turned):
    """What is still to be read, and what was read: ops run again on both as they were."""

    def run(function, target):
        tensors, log = leaves(), []
        writes = [write(tensors[target], how), write(tensors[2], how)]
        if turned:
            writes.reverse()

        def hook(leaf):
            with torch.no_grad():
                for written in writes:
                    written()

        tensors[2].register_post_accumulate_grad_hook(hook)
        for _ in range(3):
            result = function(*tensors)
            log.append((attempt(result.backward), left(tensors)))
        return log

    def body(a, b, c, d):
        return ((a * b) * c).sum() + d.sum()

    for target in (0, 1):
        assert close(run(torch.compile(body), target), run(body, target)), target


@pytest.mark.parametrize("how", HOW)
def test_one_hook_after_another_writes(how, monkeypatch):
    """The first writes what was read already, the second what is read later."""
    monkeypatch.setenv("WENGERT_STRICT", "1")

    def run(function, first, then, writers):
        tensors, log = leaves(), []
        for target, writer in zip((first, then), writers):
            writes = write(tensors[target], how)
            tensors[writer].register_post_accumulate_grad_hook(
                torch.no_grad()(lambda _, writes=writes: writes())
            )
        for _ in range(3):
            log.append((attempt(function(*tensors).backward), left(tensors)))
        return log

    def body(a, b, c, d):
        return ((((a * b).tanh()) * c).exp() * d).sum()

    for first, then, *writers in itertools.product((2, 3), (0, 1), (2, 3), (2, 3)):
        call = (first, then, writers)
        assert close(run(torch.compile(body), *call), run(body, *call)), call


@pytest.mark.parametrize("retain", [False, True], ids=["freed", "retained"])
@pytest.mark.parametrize("how", [*HOW, "in place, the same"])
def test_results_that_ops_read_again(how, retain, monkeypatch):
    """Results that the caller holds are what eager's nodes keep."""
    monkeypatch.setenv("WENGERT_STRICT", "1")

    def body(a, b, c, d):
        y = (a * b).exp()
        z = (y * c).sigmoid()
        return y, z, (z * d).sum()

    def run(function, target, writer, earlier):
        tensors, log, held = leaves(), [], []

        def hook(leaf):
            with torch.no_grad():
                held[0].mul_(1.0) if how == "in place, the same" else write(held[0].detach(), how)()

        tensors[writer].register_post_accumulate_grad_hook(hook)
        for _ in range(3):
            *results, loss = function(*tensors)
            held[:] = [results[target]]
            if earlier:
                held[0].data.mul_(2.0)
            log += [(attempt(lambda: loss.backward(retain_graph=retain)), left(tensors))  # noqa: B023
                    for _ in range(2)]  # fmt: skip
            for tensor in tensors:
                tensor.grad = None
        return log

    for call in itertools.product(range(2), range(4), (False, True)):
        assert close(run(torch.compile(body), *call), run(body, *call)), call
