"""`GradScaler`: scales go down and up as torch's do; a step with one compiles."""

import numpy as np
import pytest
import wengert as torch
from wengert import nn

SPIKES = {3, 4, 9}  # calls whose gradients are infinite


def made():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    return model, scaler, step


def history(model, scaler, step):
    found = []
    for k in range(14):
        x = torch.full((4, 3), np.inf if k in SPIKES else 0.1 * k)
        step(x)
        found.append((scaler.get_scale(), scaler.state_dict()["_growth_tracker"],
                      *model.weight.flatten().tolist()))  # fmt: skip
    return found


def test_scales_are_as_documented():
    scales = [row[0] for row in history(*made())]
    assert scales == [1024, 2048, 2048, 1024, 512, 512, 1024, 1024, 2048, 1024, 1024, 2048, 2048,
                      4096]  # fmt: skip


def test_a_compiled_step_does_the_same():
    model, scaler, step = made()
    fn = torch.compile(step)
    found, wanted = history(model, scaler, fn), history(*made())
    torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted))
    assert "trace of" in fn.explain() and "runs its Python body" not in fn.explain()


def test_states_come_back():
    model, scaler, step = made()
    history(model, scaler, step)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()
    other.update(8.0)
    assert other.get_scale() == 8.0


def test_unscale_twice_is_refused():
    model, scaler, _ = made()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler.scale(model(torch.ones(1, 3)).sum()).backward()
    scaler.unscale_(optimizer)
    np.testing.assert_allclose(model.bias.grad.numpy(), 1.0)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
