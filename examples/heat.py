"""Solves the heat equation u_t = k u_xx: a network taught by the equation itself.

The loss holds second derivatives of the network, so training differentiates three times.

python examples/heat.py [--steps 1500]
"""

from __future__ import annotations

import math

import plotting
import wengert as torch
from running import Progress, count_parameters, maybe_compiled, options, summary
from wengert import nn
from wengert.autograd import grad

DIFFUSION = 0.1


def exact(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The solution that starts as sin(pi x) and is zero at both ends."""
    return (-DIFFUSION * math.pi**2 * t).exp() * (math.pi * x).sin()


def main() -> None:
    chosen = options("solves the heat equation", steps=1500, name="heat")
    model = nn.Sequential(
        nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1)
    )

    def u(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return model(torch.cat([x, t], dim=1))

    def residual(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        value = u(x, t)
        u_x, u_t = grad(value.sum(), (x, t), create_graph=True)
        (u_xx,) = grad(u_x.sum(), x, create_graph=True)
        return u_t - DIFFUSION * u_xx

    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.1 ** (1 / chosen.steps))
    start = torch.linspace(0, 1, 32).view(-1, 1)
    times = torch.linspace(0, 1, 16).view(-1, 1)
    begun, target = torch.zeros_like(start), exact(start, torch.zeros_like(start))
    ends = torch.cat([torch.zeros_like(times), torch.ones_like(times)])
    both = torch.cat([times, times])

    def step(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        inside = residual(x, t).square().mean()
        initial = (u(start, begun) - target).square().mean()
        loss = inside + 10 * initial + 10 * u(ends, both).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = maybe_compiled(step, chosen)
    losses, progress = [], Progress(chosen.steps)
    for _ in progress:
        losses.append(step(torch.rand(128, 1), torch.rand(128, 1)).item())
        schedule.step()
        progress.note(loss=losses[-1])
    profile = plotting.Axes("network (lines) and solution (points)", "x", "u")
    worst, line = 0.0, torch.linspace(0, 1, 41).view(-1, 1)
    with torch.no_grad():
        for time in (0.0, 0.5, 1.0):
            moment = torch.full_like(line, time)
            found, right = u(line, moment), exact(line, moment)
            worst = max(worst, (found - right).abs().max().item())
            profile.line(found.flatten().tolist(), line.flatten().tolist(), f"t = {time}")
            profile.points(line[::4].flatten().tolist(), right[::4].flatten().tolist())
    plotting.save(chosen.plot, plotting.Axes("training", "step", "loss", log=True).line(losses),
                  profile)  # fmt: skip
    summary("heat", parameters=count_parameters(model), steps=chosen.steps, last_loss=losses[-1],
            largest_error=worst, seconds=progress.seconds(), plot=chosen.plot)  # fmt: skip


if __name__ == "__main__":
    main()
