"""Compares systems on the workloads: interleaved in bursts, one process per pair, losses checked.

    python benchmarks/run.py --peer-python PYTHON_WITH_TORCH --workloads all --out results

Systems run one at a time, in turn, so that the machine's mood is shared. Reported are the minimum
and median step, the first two calls together, import time and peak memory; ratios are against the
best peer. Writes results.json, results.md and results.svg.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
OURS = ("wengert-eager", "wengert-compile")


class Worker:
    """A process that holds one system with one workload."""

    def __init__(self, python: str, system: str, workload: str, threads: int):
        self.system = system
        command = [python, str(HERE / "worker.py"), system, workload, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd=HERE)  # fmt: skip
        self.times: list[float] = []
        self.facts: dict[str, Any] = self.read()

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            error = self.process.stderr.read()  # type: ignore[union-attr]
            raise RuntimeError(f"{self.system}: {error.strip().splitlines()[-1:]}")
        return dict(json.loads(line))

    def burst(self, seconds: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        answer = self.read()
        self.times += answer["times"]
        self.facts["peak"] = answer["peak"]

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait(timeout=30)


def measure(workload: str, options: argparse.Namespace) -> dict[str, Any]:
    """All systems on one workload."""
    workers = []
    for system in options.systems:
        python = sys.executable if system in OURS else options.peer_python
        if python is None:
            continue
        try:
            workers.append(Worker(python, system, workload, options.threads))
        except RuntimeError as error:
            print(f"  {workload}: {error}", file=sys.stderr)
    check_losses(workload, workers)
    for _ in range(options.rounds):
        for worker in workers:
            worker.burst(options.burst)
    rows = {}
    for worker in workers:
        worker.close()
        rows[worker.system] = {
            **worker.facts,
            "minimum": min(worker.times),
            "median": statistics.median(worker.times),
        }
    return rows


def check_losses(workload: str, workers: list[Worker]) -> None:
    """Speed of a wrong answer is of no interest."""
    losses = {w.system: w.facts["loss"] for w in workers}
    reference = next(iter(losses.values()))
    for system, loss in losses.items():
        if not math.isclose(loss, reference, rel_tol=2e-3, abs_tol=1e-5):
            raise SystemExit(f"{workload}: {system} computes {loss}, others {reference}")


def table(results: dict[str, Any], systems: list[str]) -> str:
    """Markdown: minimum step in microseconds, first calls in seconds, ratio to the best peer."""
    peers = [s for s in systems if s not in OURS]
    lines = ["| workload | " + " | ".join(systems) + " | compile vs best peer | first calls, s |",
             "|---" * (len(systems) + 3) + "|"]  # fmt: skip
    for workload, rows in results.items():
        cells = [f"{rows[s]['minimum'] * 1e6:,.1f}" if s in rows else "-" for s in systems]
        best = min((rows[s]["minimum"] for s in peers if s in rows), default=None)
        ours = rows.get("wengert-compile")
        ratio = f"{best / ours['minimum']:.2f}x" if best and ours else "-"
        first = " / ".join(f"{rows[s]['first']:.2f}" if s in rows else "-" for s in systems)
        lines.append(f"| {workload} | " + " | ".join(cells) + f" | {ratio} | {first} |")
    return "\n".join(lines) + "\n"


def chart(results: dict[str, Any], systems: list[str]) -> str:
    """Bars of minimum step times, each workload scaled to its slowest system."""
    colours = ["#3b6fb6", "#c8553d", "#6a994e", "#8d6a9f", "#d4a017"]
    row, left, width = 16, 190, 700
    height = (len(systems) * row + 14) * len(results) + 30
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             'font-family="sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="white"/>']  # fmt: skip
    y = 20
    for workload, rows in results.items():
        slowest = max(r["minimum"] for r in rows.values())
        parts.append(f'<text x="4" y="{y + row}">{workload}</text>')
        for k, system in enumerate(systems):
            if system in rows:
                value = rows[system]["minimum"]
                length = (width - left - 160) * value / slowest
                parts.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{row - 3}" '
                             f'fill="{colours[k % 5]}"/>')  # fmt: skip
                parts.append(f'<text x="{left + length + 4:.1f}" y="{y + row - 5}">{system} '
                             f"{value * 1e6:,.0f} us</text>")  # fmt: skip
            y += row
        y += 14
    return "\n".join([*parts, "</svg>\n"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", default="all", help="names separated by commas, or all")
    parser.add_argument(
        "--systems", default="torch-eager,torch-compile,wengert-eager,wengert-compile"
    )
    parser.add_argument("--peer-python", help="an interpreter that has torch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="bursts per system")
    parser.add_argument("--burst", type=float, default=0.5, help="seconds per burst")
    parser.add_argument("--out", default="results", help="prefix of the files written")
    options = parser.parse_args(arguments)
    options.systems = options.systems.split(",")
    if options.peer_python is None:
        options.systems = [s for s in options.systems if s in OURS]
    names = list(WORKLOADS) if options.workloads == "all" else options.workloads.split(",")
    results = {}
    for name in names:
        results[name] = measure(name, options)
        print(table({name: results[name]}, options.systems).splitlines()[-1], flush=True)
    Path(options.out + ".json").write_text(json.dumps(results, indent=1))
    Path(options.out + ".md").write_text(table(results, options.systems))
    Path(options.out + ".svg").write_text(chart(results, options.systems))
    return 0


if __name__ == "__main__":
    sys.exit(main())
