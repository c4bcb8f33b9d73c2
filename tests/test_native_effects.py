"""What native code does beside running (runtime/effects.ll): it is what eager does."""

import collections
import dataclasses
import inspect
import sys

import pytest
import wengert as torch
from native_calls import check_references, without_digests
from native_calls import settled_natively as settled
from wengert import nn
from wengert.nn import functional as F
from wengert.pytree import flatten
from wengert.runtime import watch
from wengert.tracer.tape import describe_place

native = pytest.mark.skipif(bool(watch.trouble()), reason="calls are not bound here")


@dataclasses.dataclass
class Pair:
    a: object
    b: object


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object
    b: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: object
    b: object = None


@dataclasses.dataclass
class Nothing:
    pass


Point = collections.namedtuple("Point", "a b")


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def net():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(4, 4, bias=False), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 2)
    )


def stepping(model, make):
    optimizer = make(model.parameters(), lr=0.1)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, optimizer


OPTIMIZERS = {
    "SGD": torch.optim.SGD,
    "momentum": lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9),
    "Adam": torch.optim.Adam,
}


@native
@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_step_does_what_eager_does(make):
    ours, theirs = net(), net()
    step, optimizer = stepping(ours, make)
    compiled, (eager, other) = torch.compile(step), stepping(theirs, make)
    x, y = torch.rand(3, 4), torch.rand(3, 2)
    for round in range(12):
        if round == 8:
            assert inspect.isbuiltin(compiled.hot[0])
            optimizer.param_groups[0]["lr"] = other.param_groups[0]["lr"] = 0.01
        torch.manual_seed(round)
        loss = compiled(x, y)
        torch.manual_seed(round)
        expected = eager(x, y)
        torch.testing.assert_close(loss, expected)
        behind = {type(node).__name__ for node, _ in loss.grad_fn.next_functions}
        assert loss.requires_grad and (round < 8 or behind == {"AccumulateGrad"})
    assert inspect.isbuiltin(compiled.hot[0])
    found, wanted = ours.state_dict(), theirs.state_dict()
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name])
        assert found[name]._version == wanted[name]._version, name
    for mine, yours in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(mine.grad, yours.grad)
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


@native
def test_a_hyper_parameter_that_becomes_something_else_is_noticed():
    model = nn.Linear(4, 2)
    step, optimizer = stepping(model, torch.optim.SGD)
    compiled, x, y = torch.compile(step), torch.rand(3, 4), torch.rand(3, 2)
    settled(compiled, x, y)
    group = optimizer.param_groups[0]
    for rate in (0.5, torch.tensor(0.25), 0.125, 0):
        group["lr"] = rate
        before = model.weight.detach().clone()
        compiled(x, y)
        torch.testing.assert_close(model.weight, before - model.weight.grad * rate)


@native
def test_writes_are_counted_and_name_the_line():
    def into(out, x):
        out.mul_(0.5)
        out.add_(x)

    function = torch.compile(into)
    out, x = torch.zeros(4), torch.ones(4)
    settled(function, out, x)
    version = out._version
    function(out, x)
    line = inspect.currentframe().f_lineno - 1
    assert out._version == version + 2
    assert describe_place(out.storage_.written).endswith(f"{__file__}:{line}")
    fresh = torch.zeros(4)  # has no storage yet
    assert fresh._storage is None
    function(fresh, x)
    assert fresh._version == 2 and fresh.tolist() == [1.0] * 4
    assert inspect.isbuiltin(function.hot[0])


@native
def test_gradients_that_somebody_holds_are_new_tensors():
    weight = leaf(1.0, 2.0)

    @torch.compile
    def go(x):
        weight.grad = None
        (weight * x).sum().backward()

    x = torch.tensor([3.0, 4.0])
    kept = []
    for k in range(6):
        go(x + k)
        kept.append(weight.grad)
    assert [g.tolist() for g in kept] == [[3.0 + k, 4.0 + k] for k in range(6)]
    assert inspect.isbuiltin(go.hot[0])


@native
def test_a_float_is_part_of_the_history():
    function = torch.compile(lambda x, s: (x.tanh() * s).sum())
    x = leaf(0.5, -1.0)
    settled(function, x, 2.0)
    for scale in (3.0, -0.5, float("inf")):
        (grad,) = torch.autograd.grad(function(x, scale), x)
        (wanted,) = torch.autograd.grad((x.tanh() * scale).sum(), x)
        torch.testing.assert_close(grad, wanted)
    result = function(x, 4.0)
    (grad,) = torch.autograd.grad(result, x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    t = x.detach().tanh()
    torch.testing.assert_close(second, 4.0 * (-2 * t * (1 - t * t)))
    assert inspect.isbuiltin(function.hot[0])


@native
def test_a_float_from_outside_is_part_of_the_history():
    model = nn.Linear(2, 2)
    model.scale = 1.0
    function = torch.compile(lambda x: (model(x) * model.scale).sum())
    x = leaf(0.5, -1.0)
    for k in range(12):
        model.scale = 1.0 + k
        (grad,) = torch.autograd.grad(function(x), x)
        torch.testing.assert_close(grad, model.weight.detach().sum(0) * (1.0 + k))


@native
def test_draws_are_known_to_double_backward():
    function = torch.compile(lambda x: (F.dropout(x, 0.5) ** 3).sum())
    x = torch.ones(64, requires_grad=True)
    settled(function, x)
    for seed in range(3):
        torch.manual_seed(seed)
        result = function(x)
        (grad,) = torch.autograd.grad(result, x, create_graph=True)
        (second,) = torch.autograd.grad(grad.sum(), x)
        torch.manual_seed(seed)
        mask = F.dropout(torch.ones(64), 0.5)
        torch.testing.assert_close(second, 6 * mask**3)


@native
def test_a_snapshot_is_as_python_takes_it():
    function = torch.compile(lambda x: F.dropout(x, 0.5))
    x = torch.ones(8, requires_grad=True)
    settled(function, x)
    wanted = torch.default_generator.snapshot()
    (state,) = function(x).grad_fn.states
    assert type(state) is type(wanted) and state[1:] == wanted[1:]
    assert state.key.tolist() == wanted.key.tolist()


@native
def test_snapshots_share_the_words_that_are_the_same():
    function = torch.compile(lambda x: F.dropout(x, 0.5))
    x = torch.ones(8, requires_grad=True)
    settled(function, x)
    torch.manual_seed(3)
    wanted, states = [], []
    for _ in range(200):  # the engine makes new words twice or more
        wanted.append(torch.default_generator.snapshot())
        states += function(x).grad_fn.states
    assert 2 < len({id(state.words) for state in states}) < 10
    for ours, python in zip(states, wanted):
        assert ours.state().tolist() == python.state().tolist()
    torch.default_generator.resume(states[5])
    assert torch.equal(torch.get_rng_state(), torch.tensor(wanted[5].state()))


def forms():
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    model, out = nn.Linear(2, 2), torch.zeros(2)
    step, _ = stepping(model, torch.optim.SGD)
    row, target = torch.ones(3, 2), torch.ones(3, 2)
    return {
        "list": (lambda x, y: [x * y, x + y], (x, y)),
        "dict": (lambda x, y: {"a": x * y, "b": [y, 3, None]}, (x, y)),
        "pair": (lambda x, y: Pair(x * y, (x, model.weight)), (x, y)),
        "slots": (lambda x, y: Slotted(x * y, Slotted(x + y, 3)), (x, y)),
        "frozen": (lambda x, y: Frozen(Frozen(x * y), [Nothing(), y]), (x, y)),
        "named": (lambda x, y: Point(x * y, [y]), (x, y)),
        "given": (lambda x, y: (x, x * y), (x, y)),
        "none": (lambda x, y: None, (x, y)),
        "same twice": (lambda x, y: [x * y] * 2, (x, y)),
        "float": (lambda x, s: [x * s], (x, 2.5)),
        "dropout": (lambda x: {"a": F.dropout(x, 0.5)}, (x,)),
        "written": (lambda out, x: out.add_(x.detach()), (out, x)),
        "step": (step, (row, target)),
    }


@native
@pytest.mark.parametrize("form", forms())
def test_results_are_put_together_and_leave_no_references(form):
    body, args = forms()[form]
    function = torch.compile(body)
    torch.manual_seed(1)
    expected = body(*args)
    settled(function, *args)
    torch.manual_seed(1)
    found = function(*args)
    assert type(found) is type(expected)
    both = [], []
    assert flatten(found, both[0]) == flatten(expected, both[1])
    if form not in ("written", "step"):
        for ours, theirs in zip(*both):
            assert (ours is theirs) or torch.equal(ours, theirs)
    watched = [*args, function, None, 0, True, "a", (), Pair, sys._getframe().f_code]
    check_references(watched, lambda: function(*args))


@native
@without_digests
@pytest.mark.parametrize("form", ["list", "dict", "pair", "slots", "frozen"])
def test_no_python_puts_results_together(form):
    body, args = forms()[form]
    function = torch.compile(body)
    settled(function, *args)
    called = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code) if event == "call" else None)
    function(*args)
    sys.setprofile(None)
    assert not called


def nestings(x, y):
    """Arguments in containers, and others that are not like them."""
    return {
        "list": (([x, y],), [((x, y),), ([x],), ([x, y, y],), ([x, [y]],)]),
        "dict": (({"a": x, "b": y},), [({"b": y, "a": x},), ({"a": x},), ({"a": x, "c": y},)]),
        "pair": ((Pair(x, y),), [(Slotted(x, y),), (Pair(x, [y]),)]),
        "slots": ((Slotted(x, y),), [(Pair(x, y),)]),
        "named": ((Point(x, y),), [((x, y),)]),
        "deep": (({"a": [x, (y,)], "b": None},), [({"a": [x, (y, y)], "b": None},)]),
        "empty": (([], x, {}), [([y], x, {}), ([], x, {"a": y}), ((), x, {})]),
    }


@native
@pytest.mark.parametrize("form", nestings(1, 2))
def test_containers_are_taken_apart(form):
    def body(*args):
        leaves = []
        flatten(args, leaves)
        return sum((k + 1) * t for k, t in enumerate(leaves) if t is not None)

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    args, others = nestings(x, y)[form]
    function = torch.compile(body)
    settled(function, *args)
    expected = [body(*given).tolist() for given in (args, *others)]
    for _ in range(3):
        assert [function(*given).tolist() for given in (args, *others)] == expected
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        function(*args)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before


@native
def test_attributes_beside_the_fields_are_noticed():
    function = torch.compile(lambda p: p.a * 2 if not hasattr(p, "more") else p.a * p.more)
    pair = Pair(torch.ones(2), None)
    settled(function, pair)
    pair.more = torch.full((2,), 5.0)
    assert function(pair).tolist() == [5.0, 5.0]
    del pair.more
    assert function(pair).tolist() == [2.0, 2.0]


@native
def test_numbers_of_results():
    x = leaf(1.5, 2.0)
    for how in (lambda x: x.sum().item(), lambda x: (x * 2).tolist(), lambda x: float(x.max()),
                lambda x: [x.to(torch.bfloat16).sum().item()], lambda x: x.argmax().item(),
                lambda x: (x > 1).all().item()):  # fmt: skip
        found = settled(torch.compile(how), x)
        assert found == how(x) and repr(found) == repr(how(x))


@native
def test_branches_are_native():
    def body(x, y):
        z = x * y if x.sum() > 0 else x - y
        return [z, z * 2] if z.sum() > 10 else [z]

    function = torch.compile(body)
    calls = [
        (leaf(*a), leaf(*b)) for a in ((1.0, 2.0), (-1.0, -2.0)) for b in ((3.0, 4.0), (1.0, 0.0))
    ]
    for _ in range(6):
        for x, y in calls:
            found, wanted = function(x, y), body(x, y)
            assert [t.tolist() for t in found] == [t.tolist() for t in wanted]
            grads = [torch.autograd.grad(sum(t.sum() for t in r), (x, y)) for r in (found, wanted)]
            torch.testing.assert_close(*grads)
    assert inspect.isbuiltin(function.hot[0])
    x, y = calls[0]
    hits, counts = function.newest().hits, (sys.getrefcount(x), sys.getrefcount(y))
    for _ in range(100):
        function(x, y)
    assert function.newest().hits == hits + 100
    assert (sys.getrefcount(x), sys.getrefcount(y)) == counts
    line = inspect.currentframe().f_lineno + 1
    assert describe_place(function(x, y)[0].grad_fn.place).endswith(f":{line}")


@native
def test_versions_that_others_hold_stay_as_they_were():
    """Counts go up in place (runtime/effects.ll) where only the storage has them."""
    step = torch.compile(lambda x: x.mul_(1.0).add_(1.0))
    x = torch.zeros(3)
    settled(step, x)
    seen = [(x._version, x.storage_.version) for _ in range(300) if step(x) is x]
    assert [found for found, _ in seen] == [2 * n for n in range(6, 306)]
    assert all(one == other for one, other in seen)
    for _ in range(300):  # nobody looks
        step(x)
    assert x._version == 2 * 605 and x[0] == 605


@native
def test_versions_of_many_digits():
    step = torch.compile(lambda x: x.mul_(1.0).add_(1.0))
    x = torch.zeros(3)
    settled(step, x)
    for start in (2**30 - 3, 2**60 - 3, 2**31):
        x.storage_.version = int(str(start))
        for _ in range(3):
            step(x)
        assert x._version == start + 6


@native
def test_backward_sees_a_version_that_was_counted_in_place():
    step = torch.compile(lambda x: x.mul_(2.0))
    x = torch.ones(3)
    for _ in range(300):
        step(x)
        x.fill_(1.0)
    w = leaf(1.0, 2.0, 3.0)
    y = w * x
    assert sys.getrefcount(x.storage_.version) > 2
    step(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
