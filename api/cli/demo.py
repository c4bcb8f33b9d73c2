"""`wengert demo`: trains a model on two spirals, eagerly and compiled; shows the compiler.

The program it trains (spirals.py) is copied to the user's folder and run from there, so that dumps
and the report point into a file which the user can open and change.
"""

from __future__ import annotations

import importlib.util
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM_UP = 3  # steps that record and compile: not part of the rate
EXAMPLES = """  wengert demo                     about ten seconds; results go to wengert-demo/
  wengert demo --steps 2000 --out spirals
"""


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "demo", "train a small model eagerly and compiled, show the IR", run,
                     EXAMPLES)  # fmt: skip
    parser.add_argument("--steps", type=int, default=400, help="training steps (default 400)")
    parser.add_argument("--out", default="wengert-demo", help="folder for what is written")


def run(options: Any) -> int:
    from .. import compile
    from ..dumps import show

    if options.steps < 1:
        raise ValueError(f"--steps must be at least 1, not {options.steps}")
    folder = Path(options.out)
    program = copied(folder)
    x, y = program.spirals(128)
    print("Two spirals, a network of three layers, Adam: the same step, eager and compiled.\n")
    _, step = program.make()
    eager = train("eager", step, x, y, options.steps)
    model, step = program.make()
    step = compile(step)
    compiled = train("compiled", step, x, y, options.steps)
    print(summary(eager, compiled, options.steps))
    print("What the compiled step has learned ('.' and '#'; the data as 'o' and 'x'):\n")
    print(field(model, x, y))
    print("The derivative of `small` in train.py, as the compiler sees it:\n")
    small = compile(program.small)
    small(x[0].clone().requires_grad_())
    show(small.dump("backward"))
    (folder / "loss.svg").write_text(loss_plot(eager.losses, compiled.losses))
    step.report(str(folder / "step.html"))
    print(f"\n{folder / 'train.py'}   the program: change it, run it")
    print(f"{folder / 'step.html'}  every stage of the compiled step: open it in a browser")
    print(f"{folder / 'loss.svg'}   the losses of both runs")
    return 0


def copied(folder: Path) -> Any:
    """The program as a module of the user's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "train.py"
    path.write_text(Path(__file__).with_name("spirals.py").read_text())
    spec = importlib.util.spec_from_file_location("wengert_demo_train", path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Run:
    """What came of a training run."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.first = self.seconds = 0.0


def train(label: str, step: Callable[..., Any], x: Any, y: Any, steps: int) -> Run:
    found = Run()
    start = time.perf_counter()
    for _ in range(WARM_UP):
        found.losses.append(float(step(x, y)))
    found.first = time.perf_counter() - start
    start = time.perf_counter()
    for k in range(steps):
        found.losses.append(float(step(x, y)))
        progress(label, k + 1, steps, found.losses[-1])
    found.seconds = time.perf_counter() - start
    return found


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


def summary(eager: Run, compiled: Run, steps: int) -> str:
    lines = [""]
    for name, found in (("eager", eager), ("compiled", compiled)):
        rate, last = steps / found.seconds, found.losses[-1]
        first = f"first {WARM_UP} steps {found.first:.2f} s"
        lines.append(f"{name:9s} {rate:8,.0f} steps/s   final loss {last:.4f}   {first}")
    lines.append(f"speed-up  {eager.seconds / compiled.seconds:8.1f} x\n")
    return "\n".join(lines)


def field(model: Any, x: Any, y: Any, width: int = 56, height: int = 24) -> str:
    """The model's answer over the plane, in characters."""
    from .. import linspace, no_grad, stack

    across, down = linspace(-1, 1, width), linspace(1, -1, height)
    grid = stack([across.expand(height, width), down[:, None].expand(height, width)], dim=-1)
    with no_grad():
        signs = (model(grid.reshape(-1, 2)) > 0).reshape(height, width).tolist()
    rows = [["#" if sign else "." for sign in row] for row in signs]
    for (right, up), mark in zip(x.tolist(), y.tolist()):
        column = round((right + 1) / 2 * (width - 1))
        row = round((1 - up) / 2 * (height - 1))
        rows[row][column] = "x" if mark else "o"
    return "\n".join("  " + "".join(row) for row in rows) + "\n"


def loss_plot(eager: list[float], compiled: list[float]) -> str:
    """Losses on a logarithmic scale, as a small SVG picture."""
    width, height, left, below = 640, 360, 56, 34
    values = [max(v, 1e-9) for v in (*eager, *compiled)]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def at(k: int, value: float) -> str:
        x = left + k * (width - left - 20) / max(1, len(eager) - 1)
        y = 20 + (high - math.log10(max(value, 1e-9))) / (high - low) * (height - below - 20)
        return f"{x:.1f},{y:.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']  # fmt: skip
    for power in range(low, high + 1):
        y = at(0, 10.0**power).split(",")[1]
        parts.append(f'<path d="M{left} {y}H{width - 20}" stroke="#e3e6ea"/>'
                     f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">'
                     f"{10.0**power:g}</text>")  # fmt: skip
    wide, thin = 'stroke="#2457a6" stroke-width="4" opacity=".45"', 'stroke="#c8553d"'
    for curve, style, name, x in ((compiled, wide, "compiled", left),
                                  (eager, thin, "eager", left + 90)):  # fmt: skip
        points = " ".join(at(k, value) for k, value in enumerate(curve))
        parts.append(f'<polyline points="{points}" fill="none" {style}/>')
        parts.append(f'<path d="M{x} {height - 14}h18" {style}/>'
                     f'<text x="{x + 24}" y="{height - 10}">{name}</text>')  # fmt: skip
    parts.append(f'<text x="{width - 20}" y="{height - 10}" text-anchor="end">training loss by '
                 f"step, {len(eager) - 1} steps</text>")  # fmt: skip
    return "\n".join([*parts, "</svg>\n"])
