"""Searching: one program after another, in a process that may die of what it finds."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .compare import Difference, difference
from .draw import draw_program
from .minimise import minimise, script

BATCH = 100
SECONDS_PER_BATCH = 900.0


@dataclass(frozen=True)
class Finding:
    """A seed whose program fails, what was seen, and a script that shows it."""

    seed: int
    fault: str
    script: str

    def __str__(self) -> str:
        return f"# --- seed {self.seed}: {self.fault}\n{self.script}"


def examine(seed: int, *, small: bool = True) -> Finding | None:
    """Draws the program of a seed and runs it on all routes; what fails is made small."""
    try:
        program = draw_program(seed)
        fault = difference(program)
    except Exception as error:  # eager itself failed in a way that no user should see
        trace = "".join(traceback.format_exception(error, limit=-4))
        return Finding(seed, f"{type(error).__name__}: {error}", f'"""\n{trace}"""\n')
    if fault is None:
        return None
    if small:
        program = minimise(program, fault)
        fault = difference(program) or fault
    return Finding(seed, str(fault), script(program, fault))


def search(seeds: Iterable[int], report: Callable[[str], None], *, small: bool = True) -> int:
    """Examines seeds in this process; returns how many failed."""
    failed = 0
    for seed in seeds:
        report(f"seed {seed}")
        finding = examine(seed, small=small)
        if finding is not None:
            failed += 1
            report(str(finding))
    return failed


def campaign(first: int, seconds: float, report: Callable[[str], None]) -> tuple[int, int]:
    """Searches for a time, in batches with a process each: a crash costs one batch and is found.

    Returns how many programs ran and how many failed.
    """
    end, seed, failed = time.monotonic() + seconds, first, 0
    while time.monotonic() < end:
        count, bad = batch(seed, report)
        seed, failed = seed + count, failed + bad
    return seed - first, failed


def batch(first: int, report: Callable[[str], None]) -> tuple[int, int]:
    """One process; returns how many programs it ran and how many of them failed."""
    command = [sys.executable, "-m", "wengert", "fuzz", "--seeds", f"{first}:{first + BATCH}"]
    with tempfile.TemporaryFile("w+") as errors:
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                                  timeout=SECONDS_PER_BATCH)  # fmt: skip
            output, code = done.stdout, done.returncode
        except subprocess.TimeoutExpired as late:
            output, code = (late.stdout or b"").decode(), "no end"
        errors.seek(0)
        trouble = errors.read()[-2000:]
    lines = output.splitlines()
    seen = [int(line[5:]) for line in lines if line.startswith("seed ")]
    report("\n".join(line for line in lines if not line.startswith("seed ")).strip())
    failed = sum(line.startswith("# --- seed ") for line in lines)
    if code not in (0, 1):
        last = seen[-1] if seen else first
        report(f"# --- seed {last}: the process ended with {code}\n{trouble}")
        return last - first + 1, failed + 1
    return BATCH, failed


__all__ = ["BATCH", "Difference", "Finding", "campaign", "examine", "search"]
