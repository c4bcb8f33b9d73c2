"""What the examples share: options, a progress bar, a summary at the end."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import wengert as torch


def options(description: str, steps: int, name: str) -> argparse.Namespace:
    """The command line: --steps, --seed, --eager and where the plot goes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps, help="training steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="do not compile the training step")
    parser.add_argument("--plot", type=Path, default=Path(f"{name}.svg"), help="where to save it")
    chosen = parser.parse_args()
    torch.manual_seed(chosen.seed)
    return chosen


def maybe_compiled(function: Any, chosen: argparse.Namespace) -> Any:
    """The function compiled, unless --eager asks for it as it is."""
    return function if chosen.eager else torch.compile(function)


class Progress:
    """Counts steps with a bar on the terminal; `note` shows a value beside it."""

    def __init__(self, total: int) -> None:
        self.total, self.started, self.text = total, time.perf_counter(), ""
        self.shown, self.lively = -1.0, sys.stderr.isatty()

    def __iter__(self) -> Iterator[int]:
        for step in range(self.total):
            yield step
            self._show(step + 1)
        print(file=sys.stderr)

    def note(self, **values: float) -> None:
        """Values to show from now on."""
        self.text = "  ".join(f"{name} {value:.4f}" for name, value in values.items())

    def _show(self, done: int) -> None:
        passed = time.perf_counter() - self.started
        wait = 0.1 if self.lively else 5.0
        if done < self.total and passed - self.shown < wait:
            return
        self.shown = passed
        filled = 30 * done // max(self.total, 1)
        left = passed / done * (self.total - done)
        bar = "#" * filled + "." * (30 - filled)
        line = f"[{bar}] {done}/{self.total}  {self.text}  {left:4.0f} s left"
        print(("\r" if self.lively else "") + line, end="" if self.lively else "\n",
              file=sys.stderr, flush=True)  # fmt: skip

    def seconds(self) -> float:
        """The time since the start."""
        return time.perf_counter() - self.started


def summary(title: str, **facts: Any) -> None:
    """Prints a small table."""
    print(title)
    width = max(len(name) for name in facts)
    for name, value in facts.items():
        shown = f"{value:.4f}" if isinstance(value, float) else value
        print(f"  {name.replace('_', ' '):<{width}}  {shown}")


def count_parameters(*modules: torch.nn.Module) -> int:
    """How many numbers are trained."""
    return sum(p.numel() for module in modules for p in module.parameters())
