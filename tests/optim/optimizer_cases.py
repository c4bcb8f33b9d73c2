"""Optimizers and schedules whose trajectories torch recorded.

`python optimizer_cases.py`, run where torch is installed, writes the records anew.
"""

import json
import warnings
from pathlib import Path

RECORDS = Path(__file__).resolve().parent.parent / "data" / "optimizers.json"

OPTIMIZERS = [
    "SGD(groups, lr=.1)",
    "SGD(groups, lr=.1, momentum=.9, dampening=.2, weight_decay=.01)",
    "SGD(groups, lr=.1, momentum=.9, nesterov=True, maximize=True)",
    "Adam(groups)",
    "Adam(groups, lr=.1, weight_decay=.1, amsgrad=True)",
    "AdamW(groups, lr=.1, amsgrad=True, weight_decay=.3)",
    "Adamax(groups, lr=.1, weight_decay=.1)",
    "NAdam(groups, lr=.1)",
    "NAdam(groups, lr=.1, weight_decay=.1, decoupled_weight_decay=True)",
    "RAdam(groups, lr=.1, betas=(.8, .9), weight_decay=.1)",
    "RAdam(groups, lr=.1, weight_decay=.1, decoupled_weight_decay=True)",
    "Adadelta(groups, lr=1., weight_decay=.1)",
    "Adagrad(groups, lr=.1, lr_decay=.1, initial_accumulator_value=.1)",
    "RMSprop(groups, lr=.1, centered=True, momentum=.9)",
    "RMSprop(groups, weight_decay=.1)",
    "Rprop(groups, lr=.1)",
    "ASGD(groups, lr=.1, t0=3, weight_decay=.1)",
    "Adafactor(groups, lr=.1, weight_decay=.1)",
    "Adafactor(groups, eps=(1e-4, 1e-2), d=2., maximize=True)",
    "Muon([q], lr=.1)",
    "Muon([q], lr=.1, nesterov=False, adjust_lr_fn='match_rms_adamw')",
    "LBFGS([p, q], lr=.5, max_iter=3)",
    "LBFGS([p, q], line_search_fn='strong_wolfe', max_iter=4)",
]

SCHEDULES = [
    "StepLR(o, 2, .5)",
    "MultiStepLR(o, [2, 5], .1)",
    "ConstantLR(o, .25, 3)",
    "LinearLR(o, .3, .9, 4)",
    "ExponentialLR(o, .9)",
    "CosineAnnealingLR(o, 3, .01)",
    "CosineAnnealingWarmRestarts(o, 2, 2, .01)",
    "PolynomialLR(o, 4, 2.)",
    "LambdaLR(o, lambda e: 1 / (e + 1))",
    "MultiplicativeLR(o, lambda e: .5 + e / 10)",
    "SequentialLR(o, [S.LinearLR(o, .1, 1., 2), S.CosineAnnealingLR(o, 4)], [2])",
    "ChainedScheduler([S.ConstantLR(o, .5, 2), S.ExponentialLR(o, .9)])",
    "ReduceLROnPlateau(o, 'max', .5, 1, cooldown=1)",
    "CyclicLR(o, .1, .5, step_size_up=2, mode='triangular2')",
    "CyclicLR(o, .1, .5, step_size_up=2, mode='exp_range', gamma=.9)",
    "OneCycleLR(o, .5, total_steps=9)",
    "OneCycleLR(o, .5, total_steps=9, three_phase=True, anneal_strategy='linear')",
]


def optimize(torch, text):
    """Twelve steps on a smooth function, in double precision, and the state after them."""
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64))
    q = torch.nn.Parameter(torch.tensor([[0.3, -0.7]], dtype=torch.float64))
    unused = torch.nn.Parameter(torch.zeros(2))
    groups = [{"params": [p]}, {"params": [q, unused], "lr": 0.05}]
    optimizer = eval("O." + text, {"O": torch.optim, "groups": groups, "p": p, "q": q})

    def closure():
        optimizer.zero_grad()
        loss = ((p - 0.3).pow(2).sum() * 0.3 + p.sin().sum() * 0.2
                + (q - p[0]).pow(2).sum() * 0.1)  # fmt: skip
        loss.backward()
        return loss

    steps = 5 if "LBFGS" in text else 12
    path = [[float(optimizer.step(closure)), *p.tolist(), *q.flatten().tolist()]
            for _ in range(steps)]  # fmt: skip
    state = optimizer.state_dict()
    return {
        "path": path,
        "keys": {str(k): sorted(v) for k, v in state["state"].items()},
        "groups": [sorted(group) for group in state["param_groups"]],
        "repr": repr(optimizer),
        "version": p._version,
    }


def schedule(torch, text):
    """Learning rate and first beta after each of nine steps, and the names of the state."""
    schedules = torch.optim.lr_scheduler
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    scheduler = eval("S." + text, {"S": schedules, "o": optimizer})
    path = []
    for epoch in range(9):
        group = optimizer.param_groups[0]
        path.append([group["lr"], group["betas"][0]])
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler.step(*([epoch % 3] if "Plateau" in text else []))
    return {"path": path, "keys": sorted(k for k in scheduler.state_dict() if k[0] != "_")}


if __name__ == "__main__":
    import torch

    records = {text: optimize(torch, text) for text in OPTIMIZERS}
    records |= {text: schedule(torch, text) for text in SCHEDULES}
    RECORDS.write_text(json.dumps(records))
