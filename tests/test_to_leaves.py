"""Backward from a compiled function's result straight to leaves means what the engine means."""

import gc
import inspect
import sys
import weakref

import numpy as np
import pytest
import wengert as torch
from wengert.runtime import watch
from wengert.tracer import backward as backward_module
from wengert.tracer.readers import readers


def leaf(*shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).normal(size=shape)).requires_grad_()


@pytest.fixture
def engine_runs(monkeypatch):
    """How often the engine was started."""
    runs, start = [], backward_module.start
    monkeypatch.setattr(backward_module, "start", lambda *a: (runs.append(a), start(*a))[1])
    return runs


def scaled(x, w):
    return (x * w).tanh() * x


def compiled(function, *inputs):
    """Compiled, and called often enough that the next call is native, and its backward."""
    made = torch.compile(function)
    made(*inputs)
    for _ in range(3):
        results = made(*inputs)
        for y in results if isinstance(results, tuple) else (results,):
            if all(x.is_leaf for x in inputs):
                y.backward(torch.ones_like(y), retain_graph=True)
    for x in inputs:
        if x.is_leaf:
            x.grad = None
    return made


def compare(function, inputs, act):
    """What `act(result, inputs)` leaves in `.grad`, by eager and by compiled code."""
    found = []
    for run in (function, compiled(function, *inputs)):
        for x in inputs:
            x.grad = None
        outcome = act(run(*inputs), inputs)
        found.append((outcome, [None if x.grad is None else x.grad.clone() for x in inputs]))
    (eager, eager_grads), (ours, our_grads) = found
    assert eager == ours
    for a, b in zip(eager_grads, our_grads):
        assert (a is None) == (b is None)
        assert a is None or (torch.allclose(a, b, rtol=1e-12) and a.stride() == b.stride())


def twice(y, _):
    y.backward(torch.ones_like(y), retain_graph=True)
    y.backward(torch.full_like(y, 2))


@pytest.mark.parametrize("act", [lambda y, _: y.backward(torch.ones_like(y)), twice])
def test_gradients_are_those_of_eager(act, engine_runs):
    inputs = [leaf(3, 4), leaf(4, seed=1)]
    compare(scaled, inputs, act)
    eager_runs = 2 if act is twice else 1
    assert len(engine_runs) == eager_runs  # none for the compiled function


def test_a_scalar_needs_no_gradient_given(engine_runs):
    compare(lambda x: x.exp().sum(), [leaf(5)], lambda y, _: y.backward())
    compare(lambda x: x.bfloat16().float().sum().bfloat16(), [leaf(1)], lambda y, _: y.backward())
    assert len(engine_runs) == 2


def error_of(act):
    try:
        act()
    except Exception as error:
        return type(error), str(error).split(";")[0].split(" The first")[0]


@pytest.mark.parametrize("act", [
    lambda y, _: error_of(lambda: y.backward(torch.ones(7))),
    lambda y, _: error_of(y.backward),
    lambda y, _: error_of(lambda: y.backward("one")),
    lambda y, _: (y.backward(torch.ones_like(y)), error_of(lambda: y.backward(torch.ones_like(y)))),
], ids=["shape", "no scalar", "class", "freed"])  # fmt: skip
def test_errors_are_those_of_eager(act):
    compare(scaled, [leaf(3, 4), leaf(4, seed=1)], act)


def test_gradients_of_another_layout_or_dtype_are_taken():
    inputs = [leaf(3, 4), leaf(4, seed=1)]
    compare(scaled, inputs, lambda y, _: y.backward(torch.arange(12.0).reshape(4, 3).t().double()))
    compare(scaled, inputs, lambda y, _: y.backward(torch.arange(12.0).reshape(3, 4)))


def test_one_of_two_results():
    def both(x, w):
        return x * w, w.exp()

    inputs = [leaf(4), leaf(4, seed=1)]
    for k in range(2):
        compare(both, inputs, lambda ys, _, k=k: ys[k].backward(torch.ones(4).double()))
    compare(both, inputs, lambda ys, _: [y.backward(torch.ones(4).double()) for y in ys])


def test_leaves_laid_out_otherwise_get_gradients_like_themselves():
    x = leaf(3, 4).detach().t().requires_grad_()
    compare(lambda x: x * x.sin(), [x], lambda y, _: y.backward(torch.ones_like(y)))


def with_hook(kind):
    def act(y, inputs):
        seen = []
        x = inputs[0]
        if kind == "leaf":
            handle = x.register_hook(lambda g: (seen.append(g.sum().item()), g * 2)[1])
        elif kind == "after":
            handle = x.register_post_accumulate_grad_hook(
                lambda t: seen.append(t.grad.sum().item())
            )
        elif kind == "result":
            handle = y.register_hook(lambda g: (seen.append(g.sum().item()), g * 3)[1])
        else:
            handle = y.grad_fn.register_hook(lambda gi, go: seen.append(len(go)))
        y.backward(torch.ones_like(y))
        handle.remove()
        return [round(s, 9) for s in seen]

    return act


@pytest.mark.parametrize("kind", ["leaf", "after", "result", "node"])
def test_hooks_run(kind):
    compare(scaled, [leaf(3, 4), leaf(4, seed=1)], with_hook(kind))


def test_writes_are_noticed():
    def written_input(y, inputs):
        with torch.no_grad():
            inputs[1].mul_(1.0)
        return error_of(lambda: y.backward(torch.ones_like(y)))[0]

    def written_result(y, _):
        y.detach().mul_(2)
        return error_of(lambda: y.backward(torch.ones_like(y)))[0]

    compare(scaled, [leaf(3, 4), leaf(4, seed=1)], written_input)
    compare(lambda x: x.exp(), [leaf(4)], written_result)


def test_a_leaf_that_stopped_to_need_gradients_gets_none():
    def act(y, inputs):
        inputs[1].requires_grad_(False)
        y.backward(torch.ones_like(y))
        inputs[1].requires_grad_()

    compare(scaled, [leaf(3, 4), leaf(4, seed=1)], act)


def test_each_backward_makes_memory_of_its_own(engine_runs):
    x = leaf(4)
    double = compiled(lambda x: (x * x).sum(), x)
    double(x).backward()
    first, x.grad = x.grad, None
    double(x).backward()
    assert first is not x.grad and not np.shares_memory(first.numpy(), x.grad.numpy())
    assert (first == 2 * x).all() and not engine_runs


def test_history_before_the_function_goes_on():
    def act(y, inputs):
        y.backward(torch.ones_like(y))

    a = leaf(4)
    function = compiled(scaled, a * 2, a)
    for run in (scaled, function):
        a.grad = None
        run(a * 2, a).backward(torch.ones(4).double())
        if run is scaled:
            expected = a.grad.clone()
    assert torch.allclose(a.grad, expected)


def test_writes_to_what_this_gradient_does_not_need():
    def both(x, w):
        return x * x, w * 3.0

    def act(results, inputs):
        with torch.no_grad():
            inputs[0].mul_(2.0)  # which the second result has nothing to do with
        results[1].backward(torch.ones(4).double())
        return error_of(lambda: results[0].backward(torch.ones(4).double()))[0]

    compare(both, [leaf(4), leaf(4, seed=1)], act)


def test_numpy_may_write_to_memory_that_it_holds(engine_runs):
    """Eager keeps the exponential and sees the new x; compiled code would read x again."""

    def gradient(run, hold):
        memory = np.arange(1.0, 5.0)
        x = torch.from_numpy(memory).requires_grad_()
        if not hold:
            del memory
        for _ in range(4):
            x.grad = None
            y = run(x)
            if hold:
                memory += 1
            y.backward(torch.ones(4).double())
        return x.grad.tolist()

    def function(x):
        return (x * x).exp().tanh() * x

    for hold in (True, False):
        del engine_runs[:]
        expected = gradient(function, hold)
        assert gradient(torch.compile(function), hold) == pytest.approx(expected, rel=1e-12)
        assert len(engine_runs) < 8 or hold  # at once where nobody else holds the memory


def test_a_recording_holds_nothing_of_its_call():
    function = torch.compile(lambda x: (x * 2).exp().sum())
    x = leaf(10)
    gone = [weakref.ref(x), weakref.ref(x._array)]
    gc.disable()
    try:
        function(x)
        del x
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


@pytest.mark.skipif(bool(watch.trouble()), reason="calls are not bound here")
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_native_code_goes_to_leaves_and_adds(kind, monkeypatch):
    """With a graph that is kept, with one that is not, to what is there and to what is not."""
    x, w = (torch.tensor(np.arange(1, 5, dtype=kind), requires_grad=True) for _ in range(2))
    function = compiled(lambda x, w: (x * w).tanh().sum(), x, w)
    out = function(x, w)
    way = out.grad_fn.split.to_leaves[0]
    assert inspect.isbuiltin(way.serve)
    monkeypatch.setattr(way, "native", None)  # no other way to compute
    monkeypatch.setattr(way, "executor", None)
    out.backward(retain_graph=True)
    gradient = x.grad.clone()
    before = x.grad
    for times in (2, 3):
        out.backward(retain_graph=True)
        assert x.grad is before and x.grad._version == times - 1
        assert torch.allclose(x.grad, gradient * times)
    assert x.grad.storage_.written[0] is sys._getframe().f_code
    node = out.grad_fn
    out.backward()
    assert node.saved is None and node.inputs is None and node.came == {0}
    with pytest.raises(RuntimeError, match="second time"):
        out.backward()
    other = function(x, w)
    other.backward(torch.tensor(kind(2.0)))
    assert torch.allclose(x.grad, gradient * 6)


def test_readers_are_told_of_sums_and_forgotten():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function = compiled(lambda x: (x * x).tanh().sum(), x)
    count = len(readers)
    function(x).backward()
    assert len(readers) == count
    of_grad = compiled(lambda g, w: (g * w).tanh().sum(), x.grad, x)
    x.grad = None
    function(x).backward()
    late = of_grad(x.grad, x.detach().requires_grad_())
    was = x.grad.clone()
    function(x).backward()  # adds to what `late` will read again
    assert torch.allclose(x.grad, was * 2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        late.backward()


def test_sums_leave_no_references():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    function = compiled(lambda x: (x * x).tanh().sum(), x)
    function(x).backward()

    def count():
        gc.collect()
        grad = x.grad
        things = (x, grad, grad._array, grad.storage_, None, True, 0, x._leaf, tuple)
        return [sys.getrefcount(t) for t in things], len(gc.get_objects())

    before = count()
    for _ in range(1000):
        function(x).backward()
    after = count()
    assert all(abs(a - b) < 20 for a, b in zip(before[0], after[0])), (before, after)
    assert abs(before[1] - after[1]) < 50
