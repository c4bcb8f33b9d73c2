"""Writes nonsense verse: a small transformer that predicts the next character of a poem.

python examples/characters.py [--steps 500]
"""

from __future__ import annotations

import math
from pathlib import Path

import plotting
import wengert as torch
import wengert.nn.functional as F
from running import Progress, count_parameters, maybe_compiled, options, summary
from wengert import nn

TEXT = (Path(__file__).parent / "data" / "jabberwocky.txt").read_text()
LETTERS = sorted(set(TEXT))
CONTEXT, WIDTH, HEADS = 48, 48, 4


class Block(nn.Module):
    """Attention to what came before, then a layer of each place by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.before_attention, self.before_layer = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.project, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.layer = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        parts = self.project(self.before_attention(x)).chunk(3, dim=-1)
        q, k, v = (p.view(batch, length, HEADS, -1).transpose(1, 2) for p in parts)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.join(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.layer(self.before_layer(x))


class Model(nn.Module):
    """Letters and places to vectors, two blocks, scores of the next letter."""

    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS), WIDTH)
        self.places = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(Block(), Block(), nn.LayerNorm(WIDTH))
        self.scores = nn.Linear(WIDTH, len(LETTERS))

    def forward(self, letters: torch.Tensor) -> torch.Tensor:
        return self.scores(self.blocks(self.letters(letters) + self.places[: letters.size(1)]))


@torch.no_grad()
def write(model: Model, start: str, count: int, temperature: float = 0.5) -> str:
    """Continues `start` by `count` characters."""
    letters = [LETTERS.index(c) for c in start]
    for _ in range(count):
        scores = model(torch.tensor([letters[-CONTEXT:]]))[0, -1] / temperature
        letters.append(int(torch.multinomial(scores.softmax(-1), 1)))
    return "".join(LETTERS[k] for k in letters)


def main() -> None:
    chosen = options("writes nonsense verse", steps=500, name="characters")
    data = torch.tensor([LETTERS.index(c) for c in TEXT])
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda k: min(1.0, (k + 1) / 30) * 0.5 * (1 + math.cos(k / chosen.steps * 3))
    )

    def step(letters: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        scores = model(letters[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), letters[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    step = maybe_compiled(step, chosen)
    losses, progress = [], Progress(chosen.steps)
    for _ in progress:
        starts = torch.randint(len(data) - CONTEXT - 1, (16, 1))
        losses.append(step(data[starts + torch.arange(CONTEXT + 1)]).item())
        schedule.step()
        progress.note(loss=losses[-1])
    print(write(model, "'Twas", min(200, 10 * chosen.steps)))
    guess = math.log(len(LETTERS))
    plotting.save(
        chosen.plot,
        plotting.Axes("next character", "step", "nats").line(losses, label="loss")
        .line([guess, guess], [0, max(len(losses) - 1, 1)], label="guessing"),
    )  # fmt: skip
    summary("characters", letters=len(LETTERS), parameters=count_parameters(model),
            steps=chosen.steps, first_loss=losses[0], last_loss=losses[-1],
            seconds=progress.seconds(), plot=chosen.plot)  # fmt: skip


if __name__ == "__main__":
    main()
