"""`wengert demo`: trains a model on two spirals, eagerly and compiled; shows the compiler."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import Any


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "demo", "train a small model eagerly and compiled, show the IR", run)
    parser.add_argument("--steps", type=int, default=400, help="training steps (default 400)")
    parser.add_argument("--out", default="wengert-demo", help="folder for the report and the plot")


def run(options: Any) -> int:
    eager_losses, eager_time = train(options.steps, compiled=False)
    losses, compiled_time, step = train(options.steps, compiled=True)
    print()
    for name, seconds, curve in (("eager", eager_time, eager_losses),
                                 ("compiled", compiled_time, losses)):  # fmt: skip
        rate = options.steps / seconds
        print(f"{name:9s} {rate:8.0f} steps/s   final loss {curve[-1]:.4f}")
    print(f"speed-up  {eager_time / compiled_time:8.1f} x\n")
    show_backward()
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    plot = folder / "loss.svg"
    plot.write_text(loss_plot(eager_losses, losses))
    print(f"loss curves: {plot}")
    report = getattr(step, "report", None)
    if report is not None:
        report(str(folder / "step.html"))
        print(f"compiler report: {folder / 'step.html'}")
    return 0


def spirals(count: int) -> Any:
    """Two interleaved spirals: points and their class."""
    from .. import cat, linspace, ones, stack, zeros

    t = linspace(0.25, 3.0, count) * math.pi
    one = stack([t.cos() * t, t.sin() * t], dim=1) / 10
    x = cat([one, -one])
    y = cat([zeros(count), ones(count)])
    return x, y


def train(steps: int, *, compiled: bool) -> Any:
    """Losses and seconds of a training run; the compiled step too, where asked for."""
    from .. import compile, manual_seed, nn, optim

    manual_seed(0)
    x, y = spirals(128)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1)
    )
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x: Any, y: Any) -> Any:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    function = compile(step) if compiled else step
    label = "compiled" if compiled else "eager"
    losses = []
    for _ in range(3 if compiled else 0):  # recording and compiling are not part of the rate
        losses.append(float(function(x, y)))
    start = time.perf_counter()
    for k in range(steps):
        losses.append(float(function(x, y)))
        progress(label, k + 1, steps, losses[-1])
    seconds = time.perf_counter() - start
    return (losses, seconds, function) if compiled else (losses, seconds)


def progress(label: str, done: int, total: int, loss: float) -> None:
    """A bar on a terminal; quarter marks elsewhere."""
    if sys.stdout.isatty():
        if done % max(1, total // 100) == 0 or done == total:
            filled = 30 * done // total
            bar = "#" * filled + "." * (30 - filled)
            end = "\n" if done == total else ""
            print(f"\r{label:9s} [{bar}] {done}/{total}  loss {loss:.4f}", end=end, flush=True)
    elif done % max(1, total // 4) == 0:
        print(f"{label:9s} {done}/{total}  loss {loss:.4f}")


def show_backward() -> None:
    from .. import compile, ones

    function = compile(lambda x: (x.tanh() ** 2).sum())
    function(ones(3, requires_grad=True))
    print("the backward IR of (x.tanh() ** 2).sum():\n")
    print(function.dump("backward"))


def loss_plot(*curves: list[float]) -> str:
    """Loss curves as a small SVG picture."""
    width, height, margin = 640, 360, 40
    top = max(max(c) for c in curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{margin}" y="20">training loss (top {top:.3f}, bottom 0)</text>',
    ]
    for curve, colour, name in zip(curves, ("#3b6fb6", "#c8553d"), ("eager", "compiled")):
        points = " ".join(
            f"{margin + k * (width - 2 * margin) / max(1, len(curve) - 1):.1f},"
            f"{height - margin - value / top * (height - 2 * margin):.1f}"
            for k, value in enumerate(curve)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        row = height - 15 if name == "eager" else height - 2
        parts.append(f'<text x="{margin}" y="{row}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])
