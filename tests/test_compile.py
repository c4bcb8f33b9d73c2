"""compile(fn) gives what fn gives: values, gradients, effects; eager is the oracle."""

import math
import weakref

import pytest
import wengert as torch


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")


def same(a, b):
    assert a.dtype is b.dtype
    assert torch.allclose(a, b, rtol=1e-5, atol=1e-6), (a, b)


def test_values_aliasing_and_gradients():
    def f(x, w, b):
        h = torch.tanh(x @ w.t() + b)
        return (h * h).mean(), h.t(), x

    compiled = torch.compile(f)
    w = torch.randn(16, 8, requires_grad=True)
    b = torch.zeros(16, requires_grad=True)
    for _ in range(3):
        x = torch.randn(4, 8)
        grads = []
        for function in (f, compiled):
            loss, h, same_x = function(x, w, b)
            assert same_x is x
            assert h.stride() == (1, 16)
            w.grad = b.grad = None
            (loss + h.sum()).backward()
            grads.append((loss.detach(), w.grad, b.grad))
        for one, two in zip(*grads):
            same(one, two)
    assert "CompiledFunctionBackward" in repr(loss)


def test_a_whole_training_step_is_replayed():
    def make():
        torch.manual_seed(0)
        w = torch.randn(16, 8, requires_grad=True)

        def step(x):
            loss = torch.tanh(x @ w.t()).pow(2).mean()
            w.grad = None
            loss.backward()
            with torch.no_grad():
                w.sub_(0.1 * w.grad)
            return loss

        return w, step

    (w1, eager), (w2, plain) = make(), make()
    compiled = torch.compile(plain)
    for _ in range(5):
        x = torch.randn(4, 8)
        same(eager(x).detach(), compiled(x).detach())
        same(w1.detach(), w2.detach())
        same(w1.grad, w2.grad)
    assert w1._version == w2._version
    assert "replayed 4 times" in compiled.explain()
    with pytest.raises(RuntimeError, match="second time"):
        compiled(x).backward()


def test_loops_on_values_take_as_many_rounds_as_eager():
    def f(x):
        y = x * 2
        rounds = 0
        while y.data.norm() < 1000:
            y = y * 2
            rounds += 1
        return (y * 3 if y.sum() > 0 else y), rounds

    compiled = torch.compile(f)
    inputs = [[1.0, 2, 3], [4.0, 5, 6], [1.0, 2, 3], [-1.0, -2, -3], [100.0, 1, 1], [4.0, 5, 6]]
    for values in inputs:
        results = []
        for function in (f, compiled):
            x = torch.tensor(values, requires_grad=True)
            y, rounds = function(x)
            y.sum().backward()
            results.append((y.tolist(), rounds, x.grad.tolist()))
        assert results[0] == results[1]


def test_changed_globals_and_closures_take_effect():
    scale = 2.0

    def f(x):
        return x * scale

    compiled = torch.compile(f)
    x = torch.ones(3)
    assert compiled(x).tolist() == [2, 2, 2]
    scale = 3.0
    assert compiled(x).tolist() == [3, 3, 3]
    assert compiled(x).tolist() == [3, 3, 3]


def test_in_place_effects_on_arguments():
    def f(x, y):
        x.add_(y)
        x[0] = 7
        return x.sum()

    compiled = torch.compile(f)
    for _ in range(3):
        a, b = torch.ones(3), torch.ones(3)
        same(f(a, torch.ones(3)), compiled(b, torch.ones(3)))
        assert a.tolist() == b.tolist()
        assert a._version == b._version


def test_values_that_escape_run_eagerly_and_say_so():
    def f(x):
        return x * math.sqrt(x.sum().item())

    compiled = torch.compile(f)
    for k in range(3):
        x = torch.ones(2) * k
        assert compiled(x).tolist() == f(x).tolist()
    assert "item()" in compiled.explain()
    assert "test_compile.py" in compiled.explain()


def test_double_backward_through_compiled_code():
    compiled = torch.compile(lambda x: (x**3).sum())
    for _ in range(2):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        (third,) = torch.autograd.grad(second.sum(), x)
        assert first.tolist() == [3, 12]
        assert second.tolist() == [6, 12]
        assert third.tolist() == [6, 6]


def test_state_kept_by_the_body_is_not_frozen():
    kept = []

    def f(x):
        if not kept:
            kept.append(torch.zeros(3))
        kept[0].add_(x)
        return kept[0] * 1

    compiled = torch.compile(f)
    for k in range(1, 5):
        assert compiled(torch.ones(3)).tolist() == [k, k, k]


def test_dumps_name_the_users_lines():
    compiled = torch.compile(lambda x: (x * x).sum())
    compiled(torch.ones(3, requires_grad=True))
    assert "mul" in compiled.dump("trace")
    assert "test_compile.py" in compiled.dump("trace")
    assert "^mul" in compiled.dump("backward")


def gradients_agree(f):
    compiled = torch.compile(f)
    for _ in range(3):
        grads = []
        for function in (f, compiled):
            x = torch.tensor([0.1, 0.2], requires_grad=True)
            function(x, torch.tensor([3.0, 4.0])).backward()
            grads.append(x.grad)
        same(*grads)


def test_backward_sees_inputs_as_they_were_before_a_write():
    def f(x, y):
        result = (x * (y * 1)).tanh()
        with torch.no_grad():
            y.mul_(0.5)
        return result.sum()

    gradients_agree(f)


def test_an_earlier_segment_keeps_what_a_later_one_writes():
    def f(x, y):
        result = (x * (y * 1)).tanh()
        result = result * 2 if result.sum() > 0 else result
        with torch.no_grad():
            y.mul_(0.5)
        return result.sum()

    gradients_agree(f)


def test_a_gradient_that_someone_keeps_is_not_overwritten():
    weight = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x: torch.Tensor) -> torch.Tensor:
        weight.grad = None
        loss = (weight * x).sum()
        loss.backward()
        return loss

    kept = []
    for k in range(5):
        step(torch.full((3,), float(k)))
        kept.append(weight.grad)
    assert [g.tolist() for g in kept] == [[float(k)] * 3 for k in range(5)]


def test_recording_keeps_no_intermediate_values_alive():
    gone = []

    @torch.compile
    def chain(x):
        for _ in range(20):
            x = torch.sin(x) + 1
            weakref.finalize(x, gone.append, len(gone))
        return x, len(gone)

    _, dropped = chain(torch.randn(4))
    assert dropped >= 18
