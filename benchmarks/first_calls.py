"""What compiling costs: the first calls of a training step in new processes, by cache.

    python benchmarks/first_calls.py [--processes N]

A step of an MLP (784-256-256-10, batch 128), forward, backward and update, is called until it
replays. Processes with an empty cache on disk and with a filled one take turns; of each sum of
three calls the least counts, in seconds of the clock and of CPU time of all threads, which says
more on a busy machine.

Python finds its own bytecode, as it does in an installed package: where it may not write any
(PYTHONDONTWRITEBYTECODE, often set in containers), it compiles the source of this library anew in
every process, which takes as long as all the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile

CALLS = 3
OPTIMIZERS = ("SGD", "Adam")
STEP = """
import json, sys, time
import wengert as torch
from wengert import nn

model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                      nn.Linear(256, 10))
optimizer = getattr(torch.optim, sys.argv[1])(model.parameters(), lr=1e-3)
x, y = torch.randn(128, 784), torch.randint(0, 10, (128,))

@torch.compile
def step(x, y):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss

start, busy = time.perf_counter(), time.process_time()
for _ in range(int(sys.argv[2])):
    step(x, y)
print(json.dumps([time.perf_counter() - start, time.process_time() - busy]))
"""


def measured(optimizer: str, cache: str, bytecode: str) -> list[float]:
    """Seconds of the clock and of CPU time in a new process; both `cache` (none: "") and
    `bytecode` are directories."""
    switches = {"WENGERT_CACHE_DIR": cache} if cache else {}
    switches["WENGERT_CACHE"] = "1" if cache else "0"
    switches |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
    command = [sys.executable, "-c", STEP, optimizer, str(CALLS)]
    done = subprocess.run(command, env={**os.environ, **switches}, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=5)
    options = parser.parse_args()
    print("| first calls, s (CPU) | cache empty | cache filled |\n|---|---:|---:|")
    for optimizer in OPTIMIZERS:
        with tempfile.TemporaryDirectory() as folder:
            cache, bytecode = f"{folder}/cache", f"{folder}/bytecode"
            measured(optimizer, cache, bytecode)
            turns = [(measured(optimizer, "", bytecode), measured(optimizer, cache, bytecode))
                     for _ in range(options.processes)]  # fmt: skip
        cells = [f"{min(t[0] for t in times):.3f} ({min(t[1] for t in times):.3f})"
                 for times in zip(*turns)]  # fmt: skip
        print(f"| {optimizer} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
