"""Memory at the peak of a training step: a compiled step beside torch's eager one.

    python benchmarks/memory.py [--peer PYTHON_WITH_TORCH] [--only WORD]

Each workload runs six steps in a process of its own, compiled code found on disk. Shown is by how
much the process grew over that, and how large it was at its peak, in megabytes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

WORKLOADS = (
    "mlp_mnist:batch=2048", "lenet:batch=512", "resnet_block:batch=64",
    "transformer_block:batch=16,length=128,width=256", "lstm:length=64,batch=32,width=128",
)  # fmt: skip
STEPS = 6
RUN = """
import importlib, json, sys
folder, system, workload, steps = sys.argv[1:]
sys.path.insert(0, folder)
from systems import SYSTEMS
from worker import peak_memory
importlib.import_module(SYSTEMS[system].library)
case = SYSTEMS[system].build(workload)
before = peak_memory()
for _ in range(int(steps)):
    case.step()
print(json.dumps([peak_memory() - before, peak_memory()]))
"""


def peak(python: str, system: str, workload: str) -> list[float]:
    """Megabytes a new process grew by, and had at most."""
    folder = __file__.rpartition("/")[0] or "."
    command = [python, "-c", RUN, folder, system, workload, str(STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [number / 2**20 for number in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", help="a Python with torch")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print("| workload | compiled: growth, peak | torch eager: growth, peak |\n|---|---|---|")
    for workload in (name for name in WORKLOADS if options.only in name):
        peak(sys.executable, "wengert-compile", workload)  # fills the cache
        ours = peak(sys.executable, "wengert-compile", workload)
        cells = ["{:.0f}, {:.0f}".format(*ours)]
        if options.peer:
            cells.append("{:.0f}, {:.0f}".format(*peak(options.peer, "torch-eager", workload)))
        print(f"| {workload} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
