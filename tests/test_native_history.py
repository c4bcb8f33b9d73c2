"""Compiled calls whose graph node, place and history native code makes (runtime/history.ll)."""

import gc
import inspect
import sys
import threading
import weakref

import numpy as np
import pytest
import wengert as torch
from native_calls import check_references, settled, without_digests
from wengert import nn
from wengert.runtime import watch
from wengert.stances import serve_modules

native = pytest.mark.skipif(bool(watch.trouble()), reason="calls are not bound here")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


@native
def test_the_whole_call_is_native():
    function = torch.compile(lambda x, y, z=None: (x * y).tanh().sum() if z is None else x + z)
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    settled(function, x, y)
    assert inspect.isbuiltin(function.hot[0])
    before = function.newest().hits
    for _ in range(5):
        function(x, y)
    assert function.newest().hits == before + 5
    z = leaf(3.0, 4.0)
    settled(function, x, y, z=z)
    assert inspect.isbuiltin(function.hot[0])
    other = "".join(["z"])  # equal to the name and not the same object
    assert function(x, y, **{other: z}).tolist() == [4.0, 6.0]
    assert inspect.isbuiltin(function.hot[0])


@native
def test_the_node_is_as_python_makes_it():
    function = torch.compile(lambda x, y: ((x * y).tanh(), x.detach() * 2))
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    first, plain = settled(function, x, y)
    node = first.grad_fn
    assert [known.accumulator for known in node.unmade] == [None, None]
    assert node.edges and not node.unmade
    fresh = type(node)(node.split, list(node.inputs), list(node.saved))
    for slot in (s for cls in type(node).__mro__ for s in getattr(cls, "__slots__", ())):
        ours, theirs = getattr(node, slot, None), getattr(fresh, slot, None)
        if slot in ("saved", "inputs", "versions"):
            assert [*map(id, ours)] == [*map(id, theirs)], slot
        elif slot not in ("__weakref__", "sequence", "place", "reference", "held"):
            assert ours == theirs, slot
    assert node.sequence < fresh.sequence
    assert first.requires_grad and not first.is_leaf and first.grad_fn is node
    assert not plain.requires_grad and plain.grad_fn is None
    assert [id(end.variable) for end, _ in node.next_functions] == [id(x), id(y)]


@native
@without_digests
def test_results_that_backward_reads_are_held():
    function = torch.compile(lambda x: (x * 2, x.tanh(), x.exp()[0]))
    x = leaf(0.5, 1.0)
    settled(function, x)
    _, tanh, power = function(x)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
    function(x)
    sys.setprofile(None)
    assert not called  # no Python is asked
    node, base = tanh.grad_fn, power._base
    held = node.results_held()
    assert [*held] == [1, 2] and node.reference() is node
    for k, result in ((1, tanh), (2, base)):
        array, storage, version = held[k]
        assert array is result._array and storage is result.storage_ and storage.root is array
        assert version == 0 and storage.written is None
    tanh.add_(1.0)
    with pytest.raises(RuntimeError, match="which is output 0 of Tanh, is at version 1"):
        tanh.sum().backward()
    power.backward()
    assert x.grad[0] == pytest.approx(np.exp(0.5))


def test_errors_name_the_line_of_the_call():
    function = torch.compile(lambda x, y: (x * y).sum())
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    settled(function, x, y)
    out = function(x, y)  # this line
    line = sys._getframe().f_lineno - 1
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match=rf"{__file__}:{line}"):
        out.backward()


@pytest.mark.parametrize("way", ["list", "keyword", "module", "branch"])
def test_places_are_the_users_whatever_is_between(way):
    x = leaf(1.0, 2.0)
    module = nn.Linear(2, 2)
    calls = {
        "list": (torch.compile(lambda xs: xs[0] * 2), ([x],), {}),
        "keyword": (torch.compile(lambda x=None: x * 2), (), {"x": x}),
        "module": (torch.compile(module), (x,), {}),
        "branch": (torch.compile(lambda x: x * 2 if x.sum() > 0 else x), (x,), {}),
    }
    function, args, kwargs = calls[way]
    place = settled(function, *args, **kwargs).grad_fn.place
    assert place[0] is settled.__code__
    out = function(*args, **kwargs)
    assert out.grad_fn.place[0] is sys._getframe().f_code


def test_accumulators_are_one_object_as_long_as_a_graph_lives():
    function = torch.compile(lambda x: x * 2)
    x = leaf(1.0)
    one, two = settled(function, x), function(x)
    ends = [t.grad_fn.next_functions[0][0] for t in (one, two, x * 3)]
    assert ends[0] is ends[1] is ends[2] and ends[0].variable is x
    gone = weakref.ref(ends[0])
    del one, two, ends
    gc.collect()
    assert gone() is None
    assert function(x).grad_fn.next_functions[0][0].variable is x


def test_arguments_with_history_and_views_of_them():
    function = torch.compile(lambda x, y: (x * y).sum())
    base = torch.arange(6.0, requires_grad=True)
    for k in range(6):
        inner = base * 2
        view = inner[:3]
        if k % 2:
            with torch.no_grad():
                inner.detach().mul_(1.0)
        function(view, inner[3:]).backward()
    expected = torch.arange(6.0).roll(3) * 4 * 6
    assert torch.equal(base.grad, expected)


def test_modes_of_the_thread_are_looked_at():
    function = torch.compile(lambda x: x * 2)
    x = leaf(1.0)
    assert settled(function, x).requires_grad
    with torch.no_grad():
        assert not settled(function, x).requires_grad
    assert function(x).requires_grad
    with torch.inference_mode():
        assert function(x).is_inference()
    found = []

    def other():
        found.append(function(x).requires_grad)
        with torch.no_grad():
            found.append(function(x).requires_grad)
        found.append(function(x).requires_grad)

    with torch.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        found.append(function(x).requires_grad)
    assert found == [True, False, True, False]


def test_memory_that_numpy_holds_is_noticed():
    """Backward computes forward again: of what the input was, whoever wrote to it since."""
    function = torch.compile(lambda x, w: (x * w).tanh().sum())
    array = np.array([0.5, 1.0], np.float32)
    w = leaf(1.0, 2.0)
    x = torch.from_numpy(array)
    assert settled(function, x, w).grad_fn.split.rereads
    out = function(x, w)
    array[:] = 100.0
    out.backward()
    value = torch.tensor([0.5, 1.0])
    eager = w.detach().requires_grad_()
    lazy = (value * eager).tanh()
    (kept,) = torch.autograd.grad(lazy.sum(), eager)
    # eager, too, sees what was written to `x`, which it saved, and not to the tanh
    assert torch.allclose(w.grad, kept / value * 100.0)


@native
def test_places_are_shared_as_long_as_they_are_the_same():
    function, x = torch.compile(lambda x: x * x), leaf(1.0, 2.0)
    settled(function, x)

    def elsewhere():
        return function(x)

    for _ in range(3):
        first, second, third = function(x), function(x), elsewhere()
        places = [result.grad_fn.place for result in (first, second, third)]
        here = sys._getframe().f_code
        assert [code for code, _ in places] == [here, here, elsewhere.__code__]
        assert len({at for _, at in places[:2]}) == 2 and places[0][1] < places[1][1]
    again = [function(x).grad_fn.place for _ in range(4)]
    assert all(place is again[0] for place in again)


@native
def test_versions_are_those_of_the_inputs():
    function = torch.compile(lambda x, y: x * y)
    x, y = leaf(1.0, 2.0), torch.ones(2)
    first, again = settled(function, x, y), function(x, y)
    assert first.grad_fn.versions == (0, 0) and again.grad_fn.versions is first.grad_fn.versions
    y.add_(1.0)
    assert function(x, y).grad_fn.versions == (0, 1)
    with torch.no_grad():
        x.mul_(2.0)
    assert function(x, y).grad_fn.versions == (1, 1)
    assert first.grad_fn.versions == (0, 0)


@pytest.mark.parametrize("form", ["plain", "list", "dropout", "module", "held"])
def test_calls_leave_no_references(form):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    module = nn.Linear(2, 2)
    bodies = {
        "plain": (lambda x, y: (x * y).tanh().sum(), (x, y)),
        "list": (lambda xs: xs[0] * xs[1], ([x, y],)),
        "dropout": (lambda x: nn.functional.dropout(x, 0.5).sum(), (x,)),
        "module": (lambda x: module(x).sum(), (x,)),
        "held": (lambda x, y: (x * y).tanh(), (x, y)),
    }
    body, args = bodies[form]
    function = torch.compile(body)
    settled(function, *args)
    watched = [x, y, x._array, module.weight, function, sys._getframe().f_code, None, 0, True]

    def run():
        function(*args)
        function(*args).sum().backward()

    check_references(watched, run)


def test_a_call_that_native_code_gives_up_runs_the_body():
    """An error in a kernel makes the body run, and raise on its own line."""
    function = torch.compile(lambda table, k: table[k].sum())
    table, good = torch.arange(4.0, requires_grad=True), torch.tensor([1, 2])
    settled(function, table, good)
    with pytest.raises(IndexError):
        function(table, torch.tensor([1, 9]))
    assert function(table, good).item() == 3.0


def test_call_may_be_replaced(monkeypatch):
    function = torch.compile(lambda x: x * 2)
    x = torch.ones(2)
    settled(function, x)
    monkeypatch.setattr(type(function), "__call__", lambda self, *args: "mine")
    assert function(x) == "mine"
    monkeypatch.undo()
    assert function(x).tolist() == [2.0, 2.0]
    serve_modules(natively=True)  # as others find it

    class Louder(type(function)):
        def __call__(self, *args):
            return super().__call__(*args) + 1

    louder = Louder(lambda x: x * 2, {})
    for _ in range(4):
        assert louder(x).tolist() == [3.0, 3.0]
