"""Processes that take turns at a case, round by round, so that what slows one slows all.

A script names its cases and says what of a case is installed where it runs (`calls_of`): functions
without arguments, by the name of the system. `serve` measures them for the process that asks.
"""

import json
import subprocess
import sys
import time


def serve(calls_of):
    """Answers each line, the name of a case, with the seconds of one round of it."""
    case, calls = None, {}
    for line in sys.stdin:
        if line.strip() != case:
            case = line.strip()
            calls = calls_of(case)
            times = {name: repeats(call) for name, call in calls.items()}
        print(json.dumps({name: measured(calls[name], times[name]) for name in calls}), flush=True)


def measured(call, times):
    """Seconds of a call."""
    start = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - start) / times


def repeats(call):
    """How often a call is made in a round: short ones until the round takes a millisecond."""
    measured(call, 3)
    return min(1000, 1 + int(1e-3 / measured(call, 3)))


def installed(makers, *arguments):
    """What of `makers`, functions that import a system and return a call, works here."""
    found = {}
    for name, make in makers.items():
        try:
            found[name] = make(*arguments)
        except ImportError:
            continue
    return found


class Turns:
    """A process of this Python, and one of each peer's, that serve `script`."""

    def __init__(self, script, peer, *arguments):
        pythons = [sys.executable, *([peer] if peer else [])]
        self.workers = [subprocess.Popen([python, script, "--serve", *arguments], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                        for python in pythons]  # fmt: skip

    def best(self, case, rounds):
        """The least seconds of each system."""
        best = {}
        for _ in range(rounds):
            for worker in self.workers:
                worker.stdin.write(case + "\n")
                worker.stdin.flush()
                for name, seconds in json.loads(worker.stdout.readline()).items():
                    best[name] = min(best.get(name, seconds), seconds)
        return best


def against_the_best(best, ours="wengert"):
    """How many times as fast we are as the best of the others, as text; nothing if alone."""
    others = [seconds for name, seconds in best.items() if name != ours]
    return f"  x{min(others) / best[ours]:.2f}" if others else ""
