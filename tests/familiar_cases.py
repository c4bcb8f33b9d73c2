"""What the tests of familiar graphs share."""

import wengert as torch
from wengert import nn
from wengert.ir.op import TABLE
from wengert.tracer import familiar

TIMES = familiar.OFTEN + 2


def count_calls(monkeypatch):
    """Whether each backward goes by a written function, from now on."""
    seen = []
    backward = familiar.backward

    def counted(*arguments):
        seen.append(backward(*arguments))
        return seen[-1]

    monkeypatch.setattr(familiar, "backward", counted)
    for op in TABLE.values():
        for plan in op.plans.values():
            monkeypatch.setattr(plan, "album", None)
    return seen


def small_net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def repeat(step, times=TIMES):
    return [step() for _ in range(times)]
