"""One system on one workload, in a process of its own; obeys commands on standard input.

`python worker.py SYSTEM WORKLOAD` builds the workload, runs it twice, and then for every line
"SECONDS" on standard input runs steps for that long and answers with their times as JSON.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
import warnings
from typing import Any


def main() -> None:
    system, workload = sys.argv[1:3]
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    library = importlib.import_module(system.split("-")[0])
    imported = time.perf_counter() - started
    from workloads import WORKLOADS

    threads = int(sys.argv[3])
    library.set_num_threads(threads)
    step, loss = WORKLOADS[workload](library, system.endswith("compile"))
    started = time.perf_counter()
    step()
    step()
    first = time.perf_counter() - started
    step()
    reply({"import": imported, "first": first, "loss": loss()})
    for line in sys.stdin:
        reply({"times": burst(step, float(line)), "peak": peak_memory()})


def burst(step: Any, seconds: float) -> list[float]:
    times = []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reply(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
