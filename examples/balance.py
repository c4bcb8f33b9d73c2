"""Balances a pole on a cart: REINFORCE with a learned baseline, many carts at once.

python examples/balance.py [--steps 120]
"""

from __future__ import annotations

import math

import plotting
import wengert as torch
import wengert.nn.functional as F
from running import Progress, count_parameters, maybe_compiled, options, summary
from wengert import nn
from wengert.distributions import Categorical

CARTS, LONGEST, DISCOUNT = 16, 150, 0.98


class Carts:
    """Carts with poles: position, speed, angle and angular speed; pushed left or right."""

    def reset(self) -> torch.Tensor:
        """New carts, almost upright."""
        self.state = 0.05 * (2 * torch.rand(CARTS, 4) - 1)
        return self.state

    def push(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The next states, and which poles still stand."""
        x, v, angle, spin = self.state.unbind(1)
        force = 10.0 * (2.0 * actions.float() - 1.0)
        sine, cosine = angle.sin(), angle.cos()
        pull = (force + 0.05 * spin**2 * sine) / 1.1
        turn = (9.8 * sine - cosine * pull) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        speed_up = pull - 0.05 * turn * cosine / 1.1
        moved = (x + 0.02 * v, v + 0.02 * speed_up, angle + 0.02 * spin, spin + 0.02 * turn)
        self.state = torch.stack(moved, dim=1)
        return self.state, (self.state[:, 0].abs() < 2.4) & (self.state[:, 2].abs() < math.pi / 15)


@torch.no_grad()
def play(policy: nn.Module, carts: Carts) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Lets the carts run; states, actions, and which of them counted."""
    state, standing = carts.reset(), torch.ones(CARTS, dtype=torch.bool)
    states, actions, counted = [], [], []
    while len(states) < LONGEST and standing.any():
        action = Categorical(logits=policy(state), validate_args=False).sample()
        states.append(state)
        actions.append(action)
        counted.append(standing)
        state, alive = carts.push(action)
        standing = standing & alive
    missing = LONGEST - len(states)  # equal lengths: the step is compiled for one shape
    states += [torch.zeros(CARTS, 4)] * missing
    actions += [torch.zeros(CARTS, dtype=torch.int64)] * missing
    counted += [torch.zeros(CARTS, dtype=torch.bool)] * missing
    return torch.stack(states), torch.stack(actions), torch.stack(counted).float()


def returns(counted: torch.Tensor) -> torch.Tensor:
    """A reward of one for each moment upright, discounted."""
    total, out = torch.zeros(CARTS), []
    for reward in counted.flip(0):
        total = reward + DISCOUNT * total
        out.append(total)
    return torch.stack(out[::-1])


def main() -> None:
    chosen = options("balances a pole", steps=120, name="balance")
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
    critic = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-2)
    carts = Carts()

    def step(states: torch.Tensor, actions: torch.Tensor, gains: torch.Tensor,
             counted: torch.Tensor) -> torch.Tensor:  # fmt: skip
        optimizer.zero_grad()
        choice = Categorical(logits=policy(states), validate_args=False)
        value = critic(states).squeeze(-1)
        better = (gains - value).detach()
        reward = (choice.log_prob(actions) * better + 0.01 * choice.entropy()) * counted
        error = F.mse_loss(value * counted, gains * counted, reduction="sum")
        loss = (0.1 * error - reward.sum()) / counted.sum()
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = maybe_compiled(step, chosen)
    lengths, losses, progress = [], [], Progress(chosen.steps)
    for _ in progress:
        states, actions, counted = play(policy, carts)
        losses.append(step(states, actions, returns(counted), counted).item())
        lengths.append(counted.sum(0).mean().item())
        progress.note(moments=lengths[-1])
    plotting.save(
        chosen.plot,
        plotting.Axes("learning to balance", "step", "moments upright")
        .line(lengths, label="mean of the carts")
        .line(plotting.smooth(lengths, 10), label="mean of 10"),
    )
    summary("balance", parameters=count_parameters(policy, critic), steps=chosen.steps,
            first_length=lengths[0], last_length=plotting.smooth(lengths, 10)[-1],
            seconds=progress.seconds(), plot=chosen.plot)  # fmt: skip


if __name__ == "__main__":
    main()
