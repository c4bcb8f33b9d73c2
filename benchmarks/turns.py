"""Processes that take turns at a case, round by round, so that what slows one slows all.

A script names its cases and says what of a case is installed where it runs (`calls_of`): functions
without arguments, by the name of the system. `serve` measures them for the process that asks.

With several threads, contenders should be kept apart: idle threads of one pool spin for a while and
would take the other's core. So each runs all its rounds after a pause.
"""

import json
import math
import subprocess
import sys
import time

ONLY = " only "  # in a case: what follows is the one contender that is asked for
AGAIN = 4  # times a case is measured once more


def serve(calls_of):
    """Answers each line, the name of a case, with the seconds of one round of it."""
    case, calls = None, {}
    for line in sys.stdin:
        if line.strip() != case:
            case = line.strip()
            found, _, only = case.partition(ONLY)
            calls = {name: f for name, f in calls_of(found).items() if only in ("", name)}
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

    def apart(self, case, rounds):
        """The same, one contender after the other."""
        best = {}
        for name in self.best(case, 1):
            time.sleep(0.2)
            best |= self.best(case + ONLY + name, rounds)
        return best

    def settled(self, case, rounds, apart=False, again=0.0, ratio_of=None):
        """The same, and of more rounds, of all alike, while `ratio_of(best)` is below `again`."""
        measure = self.apart if apart else self.best
        best = measure(case, rounds)
        for _ in range(AGAIN if again else 0):
            if ratio_of(best) >= again:
                break
            for name, seconds in measure(case, rounds).items():
                best[name] = min(best[name], seconds)
        return best


def ratio_to_best(best, ours="wengert"):
    """How many times as fast we are as the best of the others; infinitely if alone."""
    return min((t for name, t in best.items() if name != ours), default=math.inf) / best[ours]


def against_the_best(best, ours="wengert"):
    """How many times as fast we are as the best of the others, as text; nothing if alone."""
    return f"  x{ratio_to_best(best, ours):.2f}" if len(best) > 1 else ""
