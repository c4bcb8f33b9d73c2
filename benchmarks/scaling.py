"""Time against size: steps by batch, depth and sequence length, compiling by size of the graph.

    python benchmarks/scaling.py [--peer-python PYTHON_WITH_TORCH] [--curves batch,depth] [--short]

No step may grow faster than its work, compiling must stay linear in the number of ops, and layers
that repeat must share their kernels. Writes PREFIX.json, PREFIX.md and a chart of each curve.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run import Missing, Worker, start
from systems import SYSTEMS
from tables import OURS, curves, markdown


@dataclass(frozen=True)
class Curve:
    """A workload over growing sizes; `what` is measured of it."""

    title: str
    spec: str  # of a workload, with {} for the size
    sizes: tuple[int, ...]
    axis: str
    what: str = "step"  # or "compile"


CURVES = {
    "batch": Curve("step by batch: MLP of MNIST's size, Adam", "mlp_mnist:batch={}",
                   (1, 4, 16, 64, 256, 1024), "batch"),
    "depth": Curve("step by depth: layers of 64, SGD", "mlp_deep:depth={}",
                   (2, 4, 8, 16, 32, 64), "layers"),
    "sequence": Curve("step by length: transformer block, AdamW",
                      "transformer_block:length={},batch=2", (32, 64, 128, 256, 512), "length"),
    "compile": Curve("first two calls by size: layers of sixteen kinds", "chain:layers={}",
                     (12, 25, 50, 100, 200, 450), "recorded ops", "compile"),
    "layers": Curve("first two calls by depth: layers that repeat", "mlp_deep:depth={}",
                    (2, 4, 8, 16, 32, 64), "recorded ops", "compile"),
}  # fmt: skip


def steps(curve: Curve, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Minimum steps of all systems at each size."""
    rows = []
    for size in curve.sizes[: options.most]:
        workers = []
        for system in options.systems:
            try:
                workers.append(start(system, curve.spec.format(size), options))
            except Missing:
                continue
        for _ in range(options.rounds):
            for worker in workers:
                worker.burst(options.burst)
        rows.append({"size": size, **{w.system: min(w.times) for w in workers}})
        for worker in workers:
            worker.close()
    return rows


def compiles(curve: Curve, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The least time of first calls with an empty cache, and what was made in it."""
    rows = []
    for size in curve.sizes[: options.most]:
        times = []
        for _ in range(options.rounds):
            with tempfile.TemporaryDirectory() as cache:
                worker = Worker(sys.executable, OURS, curve.spec.format(size), options.threads,
                                cache)  # fmt: skip
                worker.close()
            times.append(worker.facts["first"])
        graph = worker.facts["graph"]
        rows.append({"size": graph["ops"], OURS: min(times), "steps": graph["steps"],
                     "modules": graph["modules"]})  # fmt: skip
    return rows


def table(curve: Curve, rows: list[dict[str, Any]]) -> str:
    heads = [head for head in rows[0] if head != "size"]
    unit, scale = ("s", 1.0) if curve.what == "compile" else ("us", 1e6)
    lines = [[f"{row['size']:,}", *(f"{row[h] * scale:,.2f}" if h in SYSTEMS else str(row[h])
                                    for h in heads)] for row in rows]  # fmt: skip
    return f"{curve.title}, {unit}\n\n" + markdown([curve.axis, *heads], lines)


def chart(curve: Curve, rows: list[dict[str, Any]]) -> str:
    unit, scale = ("s", 1.0) if curve.what == "compile" else ("us", 1e6)
    names = [name for name in rows[0] if name in SYSTEMS]
    lines = {name: [(row["size"], row[name] * scale) for row in rows] for name in names}
    return curves(curve.title, unit, curve.axis, lines)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--curves", default=",".join(CURVES), help="names separated by commas")
    parser.add_argument("--systems", default="torch-eager,jax,wengert-eager,wengert-compile")
    parser.add_argument("--peer-python", metavar="PATH", help="an interpreter that has the peers")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--burst", type=float, default=0.2, help="seconds per burst")
    parser.add_argument("--short", dest="most", action="store_const", const=2, default=None,
                        help="the two smallest sizes only")  # fmt: skip
    parser.add_argument("--out", default="scaling", help="prefix of the files written")
    options = parser.parse_args(arguments)
    options.systems = options.systems.split(",")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    found, texts = {}, []
    for name in options.curves.split(","):
        curve = CURVES[name]
        rows = compiles(curve, options) if curve.what == "compile" else steps(curve, options)
        found[name] = rows
        texts.append(table(curve, rows))
        print(texts[-1], flush=True)
        Path(f"{options.out}-{name}.svg").write_text(chart(curve, rows))
    Path(options.out + ".json").write_text(json.dumps({"version": 1, "curves": found}, indent=1))
    Path(options.out + ".md").write_text("\n".join(texts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
