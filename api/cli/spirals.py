"""Learns to tell two spirals apart: written by `python -m wengert demo`, to be changed and run."""

import math

import wengert as torch
from wengert import nn


def spirals(count):
    """Points of two interleaved spirals, and which of the two each is on."""
    t = torch.linspace(0.25, 3.0, count) * math.pi
    one = torch.stack([t.cos() * t, t.sin() * t], dim=1) / 10
    return torch.cat([one, -one]), torch.cat([torch.zeros(count), torch.ones(count)])


def make():
    """A model and a function that trains it for a step."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        scores = model(x).squeeze(1)
        loss = nn.functional.binary_cross_entropy_with_logits(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    return model, step


def small(x):
    h = torch.tanh(x)
    return (h**2).sum()


if __name__ == "__main__":
    model, step = make()
    step = torch.compile(step)
    x, y = spirals(128)
    for k in range(401):
        loss = step(x, y)
        if k % 100 == 0:
            print(f"step {k}: loss {float(loss):.4f}")
    step.report("step.html")
