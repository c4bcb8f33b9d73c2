"""One system on one workload, in a process of its own; obeys commands on standard input.

`python worker.py SYSTEM WORKLOAD THREADS` builds the workload and calls it; then for every line
"SECONDS" on standard input it runs steps for that long and answers with their times as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from systems import SYSTEMS, System, installed_size, keep_to


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    warnings.simplefilter("ignore")
    system, workload, threads = SYSTEMS[sys.argv[1]], sys.argv[2], int(sys.argv[3])
    keep_to(threads)
    try:
        case, facts = started(system, workload, threads)
    except (ImportError, LookupError) as error:
        reply(answers, {"missing": str(error)})
        return
    reply(answers, facts)
    for line in sys.stdin:
        reply(answers, {"times": burst(case.step, float(line)), "peak": peak_memory()})


def started(system: System, workload: str, threads: int) -> tuple[Any, dict[str, Any]]:
    """The case after its first calls, and what was seen on the way."""
    begin = time.perf_counter()
    library = importlib.import_module(system.library)
    imported = time.perf_counter() - begin
    if hasattr(library, "set_num_threads"):
        library.set_num_threads(threads)
    case = system.build(workload)
    calls = []
    for _ in range(3):
        begin = time.perf_counter()
        case.step()
        calls.append(time.perf_counter() - begin)
    facts = {"import": imported, "first": calls[0] + calls[1], "calls": calls,
             "loss": case.loss(), "version": library.__version__,
             "installed": installed_size(system.library)}  # fmt: skip
    if system.ours and hasattr(case.compiled, "newest"):
        facts["graph"] = graph_facts(case.compiled.newest())
    return case, facts


def graph_facts(trace: Any) -> dict[str, int] | None:
    """How much was recorded, and how much of it had to be compiled."""
    if trace is None:
        return None
    natives = [executor.native for segment in trace.segments()
               for executor in segment.function.ready(segment.wanted(trace.history))
               if executor.native is not None]  # fmt: skip
    modules = {m.symbols[0] for native in natives for m in native.program.modules}
    return {
        "ops": sum(len(segment.function.trace.nodes) for segment in trace.segments()),
        "steps": sum(len(native.program.steps) for native in natives),
        "modules": len(modules),
    }


def burst(step: Any, seconds: float) -> list[float]:
    times = []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times) < 3:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def peak_memory() -> int:
    """Bytes of memory this process had at most; of the process, not of what it was started by."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(t for t in status.read_text().splitlines() if t.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reply(answers: Any, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
