"""A compiled step that is bound to its tensors sees every change that eager would see."""

import dataclasses
import inspect
import threading

import numpy as np
import pytest
import wengert as torch
from wengert import nn
from wengert.runtime import watch

F = nn.functional

if watch.trouble():
    pytest.skip(watch.trouble(), allow_module_level=True)


@pytest.fixture(autouse=True)
def strict(monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")


class Training:
    """The same small training, eager or compiled."""

    def __init__(self, compiled, make=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9)):
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        self.optimizer = make(self.model.parameters())
        self.step = torch.compile(self.eager_step) if compiled else self.eager_step

    def eager_step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    @property
    def bound(self):
        return any(hot.__name__.startswith("bound") for hot in self.step.hot)


def batches(count, size=5):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(size, 4, generator=generator), torch.randn(size, 2, generator=generator))
            for _ in range(count)]  # fmt: skip


def compare(change, make=None, steps=12):
    """Trains eagerly and compiled, with `change(training, k)` between the steps."""
    options = {} if make is None else {"make": make}
    trainings = [Training(compiled, **options) for compiled in (False, True)]
    for k, (x, y) in enumerate(batches(steps)):
        losses = [t.step(x, y).item() for t in trainings]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5), f"step {k}"
        for training in trainings:
            change(training, k)
    eager, compiled = trainings
    for a, b in zip(eager.model.parameters(), compiled.model.parameters()):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-6)
        assert a._version == b._version
    return compiled


def test_the_usual_step_is_bound():
    assert compare(lambda training, k: None).bound


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "RMSprop"])
def test_what_is_bound_stays_bound(kind):
    """Each call is served by what the last one was: no word that is watched changes by itself."""
    model = nn.Linear(4, 2)
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.01)
    update, x = optimizer.step, torch.ones(3, 4)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        update()
        return loss

    for _ in range(6):
        step(x)
    before = step.hot
    for _ in range(20):
        step(x)
    assert step.hot is before and before[0].__name__.startswith("bound")


def test_a_learning_rate_is_read_again():
    def change(training, k):
        training.optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)

    compiled = compare(change)
    assert compiled.bound and "trace of" in compiled.step.explain()


def test_a_hyper_parameter_that_is_switched_off_selects_another_trace():
    def change(training, k):
        training.optimizer.param_groups[0]["weight_decay"] = 0.1 if k % 4 > 1 else 0.0

    compare(change)


def test_parameters_given_other_memory():
    def change(training, k):
        if k % 3 == 2:
            weight = training.model[0].weight
            weight.data = weight.data * 0.5

    compare(change)


def test_parameters_written_from_outside():
    def change(training, k):
        with torch.no_grad():
            training.model[2].bias.add_(0.1)

    assert compare(change).bound


def test_modules_exchanged():
    def change(training, k):
        if k == 5:
            training.model[1] = nn.ReLU()

    compare(change)


def test_gradients_set_by_hand():
    def change(training, k):
        if k % 2:
            training.model[0].weight.grad = None

    compare(change)


def test_frozen_parameters():
    def change(training, k):
        training.model[0].weight.requires_grad_(k % 4 < 2)

    compare(change)


@pytest.mark.parametrize(
    "keep",
    [
        lambda g: g,
        lambda g: g.numpy(),
        lambda g: g.t(),
        lambda g: g.detach(),
        lambda g: memoryview(g.numpy()),
    ],
)
def test_a_gradient_that_is_kept_in_any_way_is_left_alone(keep):
    training, kept, copies = Training(compiled=True), [], []
    for k, (x, y) in enumerate(batches(14)):
        training.step(x, y)
        grad = training.model[0].weight.grad
        if k % 3 == 0:
            kept.append(keep(grad))
            copies.append(np.array(kept[-1]))
        del grad
    for now, then in zip(kept, copies):
        np.testing.assert_array_equal(np.array(now), then)


def test_gradients_are_recycled_where_nobody_looks():
    training = Training(compiled=True)
    seen = set()
    for k, (x, y) in enumerate(batches(12)):
        training.step(x, y)
        if k > 6:
            seen.add(training.model[0].weight.grad.data_ptr())
    assert len(seen) == 1


def test_a_hook_on_a_recycled_gradient_does_not_pass_to_the_next():
    training = Training(compiled=True)
    for k, (x, y) in enumerate(batches(10)):
        training.step(x, y)
        grad = training.model[0].weight.grad
        assert grad._version == 0 and not grad.requires_grad
        if k == 6:
            grad.requires_grad_()
            grad.add(0)


def test_several_threads_use_one_bound_step():
    weight = torch.randn(64, 64)
    function = torch.compile(lambda x: (x @ weight).sum(1))
    inputs = [torch.randn(32, 64) for _ in range(8)]
    expected = [(x @ weight).sum(1) for x in inputs]
    function(inputs[0])
    function(inputs[0])
    wrong = []

    def work(x, y):
        for _ in range(50):
            if not torch.allclose(function(x), y, rtol=1e-4, atol=1e-4):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_modes_and_kinds_of_arguments_are_declined():
    function = torch.compile(lambda x, scale: x * scale + 1)
    x = torch.arange(4.0)
    for _ in range(3):
        assert function(x, 2.0).tolist() == [1, 3, 5, 7]
    assert function.hot[0].__name__.startswith("bound")
    assert function(x, 3.0).tolist() == [1, 4, 7, 10]
    assert function(x.double(), 2.0).dtype is torch.float64
    assert function(x[:2], 2.0).tolist() == [1, 3]
    assert function(torch.arange(8.0)[::2], 2.0).tolist() == [1, 5, 9, 13]
    assert function(x.clone().requires_grad_(), 2.0).requires_grad
    with torch.no_grad():
        assert not function(x.clone().requires_grad_(), 2.0).requires_grad
    with torch.inference_mode():
        assert function(x, 2.0).is_inference()


def test_errors_in_kernels_are_raised():
    table = torch.arange(5.0)
    function = torch.compile(lambda at: table[at] * 2)
    for _ in range(3):
        assert function(torch.tensor([0, 4])).tolist() == [0, 8]
    with pytest.raises(IndexError):
        function(torch.tensor([0, 5]))
    assert function(torch.tensor([1, 1])).tolist() == [2, 2]


def test_gradients_that_must_be_none_are_looked_for():
    trainings = [nn.Linear(3, 2), nn.Linear(3, 2)]
    trainings[1].load_state_dict(trainings[0].state_dict())
    steps = [lambda x, m=m: m(x).pow(2).mean().backward() for m in trainings]
    steps[1] = torch.compile(steps[1])
    x = torch.ones(4, 3)
    for k in range(9):
        for step, model in zip(steps, trainings):
            step(x)
            if k in (3, 6):
                model.zero_grad()
        eager, compiled = (model.weight.grad for model in trainings)
        assert (eager is None) == (compiled is None)
        assert eager is None or torch.allclose(eager, compiled)


def test_arguments_of_any_layout_are_bound():
    """Native code copies those that are not contiguous; their layout is part of what is bound."""
    function = torch.compile(lambda x, y: x * 2 + y)
    base = torch.arange(12.0).reshape(3, 4)
    ways = [lambda: base.t(), lambda: base.t().contiguous(), lambda: base[:, :3].t()[:3].flip(0),
            lambda: torch.arange(3.0).expand(4, 3)]  # fmt: skip
    for way in ways:
        for k in range(4):
            x, y = way() + k, torch.ones(())
            x = x if k % 2 else way()
            assert (function(x, y) == x * 2 + y).all()
    for _ in range(3):
        x = base.t()
        assert (function(x, y) == x * 2 + y).all()
    assert function.hot[0].__name__ == "bound_replay"
    assert not np.shares_memory(function(x, y).numpy(), base.numpy())


def test_a_set_that_the_body_asks_is_watched():
    known = {"relu", "tanh"}
    function = torch.compile(lambda x, name: x * 2 if name in known else x - 1)
    x = torch.ones(2)
    for _ in range(4):
        assert function(x, "tanh").tolist() == [2.0, 2.0]
    assert inspect.isbuiltin(function.hot[0])
    known.remove("tanh")
    assert function(x, "tanh").tolist() == [0.0, 0.0]
    known.add("tanh")
    assert function(x, "tanh").tolist() == [2.0, 2.0]


def test_a_dataclass_made_inside_is_a_result():
    @dataclasses.dataclass
    class Pair:
        first: object
        second: object

    function = torch.compile(lambda x: Pair(x * 2, x + 1))
    for _ in range(5):
        pair = function(torch.ones(2))
    assert type(pair) is Pair and pair.first.tolist() == pair.second.tolist() == [2.0, 2.0]
    assert inspect.isbuiltin(function.hot[0]), function.explain()
