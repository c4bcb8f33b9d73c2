"""Reads digits: a small convolutional network on generated pictures.

python examples/digits.py [--steps 400]
"""

from __future__ import annotations

import plotting
import wengert as torch
import wengert.nn.functional as F
from glyphs import digits
from running import Progress, count_parameters, maybe_compiled, options, summary
from wengert import nn
from wengert.utils.data import DataLoader, TensorDataset


def network() -> nn.Module:
    """Two convolutions with batch normalisation, then two linear layers."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(144, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10),
    )  # fmt: skip


def batches(dataset: TensorDataset, size: int):
    """Shuffled batches, without end."""
    while True:
        yield from DataLoader(dataset, batch_size=size, shuffle=True, drop_last=True)


def main() -> None:
    chosen = options("reads digits", steps=400, name="digits")
    train, test = TensorDataset(*digits(1024, noise=0.2)), digits(256, noise=0.2)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=chosen.steps + 1)

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    step = maybe_compiled(step, chosen)
    losses, progress = [], Progress(chosen.steps)
    for _, (images, labels) in zip(progress, batches(train, 64)):
        losses.append(step(images, labels).item())
        schedule.step()
        progress.note(loss=losses[-1])
    model.eval()
    with torch.no_grad():
        guesses = model(test[0]).argmax(1)
    accuracy = (guesses == test[1]).float().mean().item()
    shown = [image[0].tolist() for image in test[0][:15]]
    read = " ".join(str(int(g)) for g in guesses[:15])
    plotting.save(
        chosen.plot,
        plotting.Axes("training", "step", "cross entropy", log=True)
        .line(losses, label="batch")
        .line(plotting.smooth(losses), label="mean of 20"),
        plotting.Images(shown, 5, f"read as {read}"),
    )
    summary("digits", parameters=count_parameters(model), steps=chosen.steps,
            last_loss=losses[-1], test_accuracy=accuracy, seconds=progress.seconds(),
            plot=chosen.plot)  # fmt: skip


if __name__ == "__main__":
    main()
