"""Optimizers and schedules follow the paths torch recorded."""

import copy
import json
import pickle

import pytest
import wengert as torch
import wengert.optim.optimizer
from optimizer_cases import OPTIMIZERS, RECORDS, SCHEDULES, optimize, schedule
from wengert import nn, optim

RECORDED = json.loads(RECORDS.read_text())


@pytest.mark.parametrize("form", ["arrays", "ops"])
@pytest.mark.parametrize("text", OPTIMIZERS)
def test_trajectories_are_torchs(text, form, monkeypatch):
    if form == "ops":  # as a recording runs the formulas
        monkeypatch.setattr(wengert.optim.stepping, "runs_on_arrays", lambda tensors: False)
    found, expected = optimize(torch, text), dict(RECORDED[text])
    assert found.pop("path") == [pytest.approx(row, rel=1e-7, abs=1e-9)
                                 for row in expected.pop("path")]  # fmt: skip
    assert found == expected


@pytest.mark.parametrize("text", SCHEDULES)
def test_schedules_are_torchs(text):
    found, expected = schedule(torch, text), RECORDED[text]
    assert found["path"] == [pytest.approx(row, abs=1e-12) for row in expected["path"]]
    assert found["keys"] == expected["keys"]


def parameter():
    made = nn.Parameter(torch.ones(2))
    made.grad = torch.tensor([1.0, -1.0])
    return made


@pytest.mark.parametrize("make, error, text", [
    (lambda p: optim.SGD([p], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError,
     "Invalid beta parameter at index 0: 1.0"),
    (lambda p: optim.SGD([p], lr=0.1, nesterov=True), ValueError,
     "Nesterov momentum requires a momentum and zero dampening"),
    (lambda p: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
    (lambda p: optim.SGD(p, lr=0.1), TypeError, "should be an iterable of Tensors or dicts"),
    (lambda p: optim.SGD([3], lr=0.1), TypeError, "one of the params is int"),
    (lambda p: optim.SGD([p * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
    (lambda p: optim.SGD([{"params": {p}}], lr=0.1), TypeError, "ordered collections"),
    (lambda p: optim.Adam([{"params": [p]}, {"params": [p]}]), ValueError,
     "some parameters appear in more than one parameter group"),
    (lambda p: optim.LBFGS([{"params": [p]}, {"params": [parameter()]}]), ValueError,
     "LBFGS doesn't support per-parameter options"),
    (lambda p: optim.Adam([p]).load_state_dict({"state": {}, "param_groups": []}), ValueError,
     "different number of parameter groups"),
    (lambda p: optim.Optimizer([p], {}).step(), NotImplementedError, ""),
    (lambda p: optim.lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
    (lambda p: optim.lr_scheduler.OneCycleLR(optim.Adam([p]), 1.0), ValueError,
     "You must define either total_steps OR (epochs AND steps_per_epoch)"),
])  # fmt: skip
def test_misuse_raises_torchs_errors(make, error, text):
    with pytest.raises(error) as caught:
        make(parameter())
    assert text in str(caught.value)


def test_state_continues_after_loading_copying_and_pickling():
    p = parameter()
    first = optim.Adam([p], lr=0.1)
    first.step()
    step, mean = first.state[p]["step"], first.state[p]["exp_avg"]
    assert step.shape == () and step.dtype is torch.float32 and step.item() == 1
    loaded = optim.Adam([p])
    loaded.load_state_dict(first.state_dict())
    assert loaded.param_groups[0]["lr"] == 0.1
    for other in (loaded, copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        kept = next(iter(other.state.values()))
        assert kept["step"].item() == 1 and torch.equal(kept["exp_avg"], mean)


def test_hooks_closures_and_plain_state():
    p = parameter()
    optimizer, seen = optim.SGD([p], lr=0.5), []
    optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("post"))
    assert optimizer.step(lambda: torch.tensor(3.0)).item() == 3
    assert seen == ["pre", "post"] and p.tolist() == [0.5, 1.5]
    assert optimizer.state_dict()["state"] == {}


def test_optimizers_of_the_user():
    class Halving(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 1.0})

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    p.mul_(0.5)

    p = parameter()
    Halving([p]).step()
    assert p.tolist() == [0.5, 0.5]


def test_tensor_learning_rates_are_written_in_place():
    p, lr = parameter(), torch.tensor(0.5)
    optimizer = optim.SGD([p], lr=lr)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert p.tolist() == [0.5, 1.5] and lr.item() == 0.25


def test_averages_of_models():
    net = nn.Linear(1, 1, bias=False)
    equal = optim.swa_utils.AveragedModel(net)
    moving = optim.swa_utils.AveragedModel(
        net, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.9)
    )
    for value in (0.0, 1.0, 5.0):
        nn.init.constant_(net.weight, value)
        equal.update_parameters(net)
        moving.update_parameters(net)
    assert equal.module.weight.item() == pytest.approx(2)
    assert moving.module.weight.item() == pytest.approx(0.9 * 0.1 + 0.5)


def test_half_and_complex_parameters_are_optimized():
    for dtype in (torch.float16, torch.bfloat16, torch.complex64):
        p = nn.Parameter(torch.ones(2, dtype=dtype))
        optimizer = optim.Adam([p], lr=0.5)
        p.grad = torch.ones(2, dtype=dtype)
        optimizer.step()
        assert p.dtype is dtype and abs(p[0].item() - 0.5) < 0.01


def three_steps(kind, shape):
    """Where an optimizer takes a parameter of `shape` that starts at 3."""
    x = torch.full(shape, 3.0, requires_grad=True)
    more = {"momentum": 0.9} if kind in ("SGD", "RMSprop") else {}
    optimizer = getattr(optim, kind)([x], lr=0.1, **more)

    def closure():
        optimizer.zero_grad()
        loss = ((x - 1) ** 2 + x.exp()).sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    return x


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adadelta",
                                  "Adagrad", "RMSprop", "Rprop", "ASGD", "LBFGS"])  # fmt: skip
def test_numbers_are_parameters_as_vectors_are(kind):
    number, vector = three_steps(kind, ()), three_steps(kind, (1,))
    assert number.shape == ()
    assert number.item() == pytest.approx(vector.item(), rel=1e-6)
