"""Compares systems on the workloads: interleaved in bursts, one process per pair, losses checked.

    python benchmarks/run.py                                    this library alone
    python benchmarks/run.py --peer-python PYTHON_WITH_TORCH    beside torch, torch.compile and jax
    python benchmarks/run.py --workloads "matmul:size=300 lstm:length=50" --threads 1

Systems run one at a time, in turn, so that the machine's mood is shared, each with the same number
of threads. Reported are the minimum and median step; the first two calls together, with an empty
cache on disk and with a filled one; import time, peak memory and installed size. Writes
PREFIX.json, PREFIX.md and PREFIX.svg.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from systems import SYSTEMS, environment
from tables import bars, report, row

HERE = Path(__file__).resolve().parent
VERSION = 2  # of the JSON file
WORKLOADS = (
    "dispatch", "value_loop", "pointwise", "pointwise:size=32", "softmax_cross_entropy",
    "softmax_cross_entropy:rows=128,classes=10", "layer_norm", "matmul:size=64",
    "matmul:size=256", "matmul:size=1024", "mlp_small", "mlp_mnist", "lenet", "resnet_block",
    "transformer_block", "transformer_block:length=256,batch=2", "lstm", "gru", "gradient_penalty",
)  # fmt: skip


class Missing(Exception):
    """A system is not installed, or has no version of a workload."""


class Worker:
    """A process that holds one system with one workload."""

    def __init__(self, python: str, system: str, workload: str, threads: int, cache: str):
        self.system, self.workload = system, workload
        command = [python, str(HERE / "worker.py"), system, workload, str(threads)]
        self.complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed with the worker)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints,
            text=True, env=environment(threads, cache),
        )  # fmt: skip
        self.times: list[float] = []
        self.facts: dict[str, Any] = self.read()
        if "missing" in self.facts:
            self.close()
            raise Missing(self.facts["missing"])

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            code = self.process.wait()
            self.complaints.seek(0)
            errors = re.findall(r"^\S*(?:Error|Exception)\b.*", self.complaints.read(), re.M)
            why = errors[-1] if errors else f"exit code {code}"
            raise RuntimeError(f"{self.system} failed on {self.workload}: {why}")
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
        self.process.stdout.close()  # type: ignore[union-attr]
        self.process.wait(timeout=60)
        self.complaints.close()


def start(system: str, workload: str, options: argparse.Namespace) -> Worker:
    """A worker whose cache on disk is filled, by one that met it empty; it knows of both."""
    python = sys.executable if SYSTEMS[system].ours else options.peer_python or sys.executable
    with tempfile.TemporaryDirectory() as cache:
        cold = Worker(python, system, workload, options.threads, cache)
        cold.close()
        warm = Worker(python, system, workload, options.threads, cache)
    warm.facts.update(cold=cold.facts["first"], warm=warm.facts.pop("first"))
    warm.facts["import"] = min(warm.facts["import"], cold.facts["import"])
    return warm


def measure(workload: str, options: argparse.Namespace) -> dict[str, Any]:
    """All systems on one workload."""
    workers = []
    for system in options.systems:
        try:
            workers.append(start(system, workload, options))
        except Missing:
            continue
        except RuntimeError as error:
            print(f"  {error}", file=sys.stderr)
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
    reference = next(iter(losses.values()), 0.0)
    for system, loss in losses.items():
        if not math.isclose(loss, reference, rel_tol=2e-3, abs_tol=1e-5):
            raise SystemExit(f"{workload}: {system} computes {loss}, others {reference}")


def machine(options: argparse.Namespace) -> dict[str, Any]:
    """What the numbers depend on."""
    return {"platform": platform.platform(), "processors": os.cpu_count(),
            "threads": options.threads, "python": platform.python_version()}  # fmt: skip


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="wengert bench", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--workloads", default="all", metavar="NAMES",
                        help="separated by spaces, with sizes as in matmul:size=64")  # fmt: skip
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names separated by commas")
    parser.add_argument("--peer-python", metavar="PATH", help="an interpreter that has the peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5, help="bursts per system")
    parser.add_argument("--burst", type=float, default=0.3, help="seconds per burst")
    parser.add_argument("--out", default="results", help="prefix of the files written")
    parser.add_argument("--list", action="store_true", help="name workloads and systems, and stop")
    options = parser.parse_args(arguments)
    options.systems = options.systems.split(",")
    options.workloads = WORKLOADS if options.workloads == "all" else options.workloads.split()
    unknown = [name for name in options.systems if name not in SYSTEMS]
    if unknown:
        parser.error(f"no system {unknown[0]!r}; there are {', '.join(SYSTEMS)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    if options.list:
        print("\n".join(["systems: " + ", ".join(SYSTEMS), "workloads:", *WORKLOADS]))
        return 0
    found: dict[str, Any] = {"version": VERSION, "machine": machine(options), "workloads": {}}
    print(row("minimum step, us", options.systems, {}, heads=True), flush=True)
    for name in options.workloads:
        found["workloads"][name] = rows = measure(name, options)
        print(row(name, options.systems, rows), flush=True)
        Path(options.out + ".json").write_text(json.dumps(found, indent=1))
    Path(options.out + ".md").write_text(report(found, options.systems))
    Path(options.out + ".svg").write_text(bars(found["workloads"], options.systems))
    print(f"wrote {options.out}.json, {options.out}.md and {options.out}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
