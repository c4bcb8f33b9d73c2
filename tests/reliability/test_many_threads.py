"""Eight threads at once: eager autograd, compiled functions, grad mode, and the first call."""

import gc
import sys
import threading
import time
import types

import pytest
import wengert as torch
from wengert import nn

THREADS = 8


def together(work):
    """Runs `work(number)` on eight threads that start at one moment; raises what one raised."""
    barrier, failures, results = threading.Barrier(THREADS), [], [None] * THREADS

    def run(number):
        try:
            barrier.wait()
            results[number] = work(number)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(k,)) for k in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failures:
        raise failures[0]
    return results


@pytest.fixture
def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))


def gradients(net, x, run):
    """Gradients by parameters that all threads share: asked for, not accumulated."""
    loss = run(x).square().sum()
    return [g.tolist() for g in torch.autograd.grad(loss, list(net.parameters()))]


@pytest.mark.parametrize("compiled", [False, True])
def test_shared_parameters(net, compiled):
    run = torch.compile(lambda x: net(x)) if compiled else net
    inputs = [torch.full((5, 16), 0.1 * k) for k in range(THREADS)]
    expected = [gradients(net, x, run) for x in inputs]
    if compiled:
        expected = [gradients(net, x, run) for x in inputs]  # replayed, as the threads will

    def work(number):
        return [gradients(net, inputs[number], run) for _ in range(20)]

    for number, found in enumerate(together(work)):
        assert found == [expected[number]] * 20


def test_eager_and_compiled_at_once(net):
    run = torch.compile(lambda x: net(x))
    x = torch.ones(3, 16)
    eager, replayed = net(x), [run(x) for _ in range(2)][-1]

    def work(number):
        for _ in range(30):
            if number % 2:
                assert torch.equal(net(x), eager)
            else:
                assert torch.equal(run(x), replayed)

    together(work)


def test_grad_mode_belongs_to_a_thread():
    torch.set_grad_enabled(True)
    inside = threading.Barrier(THREADS)

    def work(number):
        assert torch.is_grad_enabled()  # a new thread starts with it on
        x = torch.ones(3, requires_grad=True)
        with torch.set_grad_enabled(bool(number % 2)):
            inside.wait()  # all threads are in their block now
            assert (x * 2).requires_grad == bool(number % 2)
            inside.wait()
        assert (x * 2).requires_grad

    with torch.no_grad():
        together(work)
        assert not torch.is_grad_enabled()


def test_first_calls_compile_once(monkeypatch, tmp_path, compiles):
    """Eight first calls: one trace, each text through LLVM once, eight right answers."""
    monkeypatch.setenv("WENGERT_CACHE_DIR", str(tmp_path / "empty"))
    factor = 1.0 + id(compiles) % 1000 / 1024
    run = torch.compile(lambda x: (x.exp() * factor).sum(1))
    x = torch.linspace(0, 1, 35).view(5, 7)
    expected = (x.exp() * factor).sum(1)
    for found in together(lambda number: run(x)):
        assert torch.allclose(found, expected)
    assert sum(len(traces) for traces in run.traces.values()) == 1
    assert len(compiles) == len(set(compiles))


def test_each_thread_records_for_itself():
    """While one thread records, others run eagerly undisturbed."""
    results = together(
        lambda number: torch.compile(lambda x: x * number + 1)(torch.ones(2)).tolist()
    )
    assert results == [[k + 1.0] * 2 for k in range(THREADS)]


def test_modules_that_another_thread_loads_meanwhile():
    """Making the items of a dict may run the collector, and so let another thread add some."""
    stop = threading.Event()

    def load():
        while not stop.is_set():
            for k in range(50):
                sys.modules[f"made_{k}"] = types.ModuleType("made")
            for k in range(50):
                del sys.modules[f"made_{k}"]

    class Noisy:
        def __init__(self):
            self.cycle = self

        def __del__(self):
            time.sleep(1e-5)

    often, interval = gc.get_threshold(), sys.getswitchinterval()
    thread = threading.Thread(target=load)
    thread.start()
    try:
        sys.setswitchinterval(1e-6)
        gc.set_threshold(20)
        for _ in range(300):
            [Noisy() for _ in range(3)]
            torch.compile(lambda x: x)
    finally:
        gc.set_threshold(*often)
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
