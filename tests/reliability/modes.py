"""The suite in each mode: numbers of threads, states of the cache, nothing in PATH.

    python tests/reliability/modes.py [--only WORD] [--folder FOLDER] [what pytest is to be given]

Each mode is a run of pytest on its own, shared by two processes. Shown are what passed, was skipped
and failed, why tests were skipped, and the tests whose compiled graphs gave other bits than in the
first mode: this file is also the plugin that writes a digest of every test's results. Modes share a
folder for the cache: the first that uses it finds it empty, the next full, the last with every file
damaged. FOLDER keeps it, reports and digests.
"""

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
DIGESTS = "WENGERT_DIGESTS"  # names the file to write to
MODES = {
    "1 thread, no cache": {"WENGERT_NUM_THREADS": "1", "WENGERT_CACHE": "0"},
    "4 threads, cold cache, empty PATH": {"WENGERT_NUM_THREADS": "4", "PATH": ""},
    "2 threads, warm cache": {"WENGERT_NUM_THREADS": "2"},
    "2 threads, damaged cache": {"WENGERT_NUM_THREADS": "2"},
}


# --- as a plugin ---------------------------------------------------------------------------------


def pytest_configure(config):
    """From now on results of compiled graphs and functions are hashed as they are made."""
    if DIGESTS not in os.environ:
        return
    from wengert import stances
    from wengert.backend import CompiledGraph
    from wengert.compiling import CompiledFunction
    from wengert.pytree import flatten
    from wengert.tracer.tensor import Tensor

    def note(arrays):
        config.found.update(hashlib.sha256(array.tobytes()).digest() for array in arrays)
        return arrays

    graph_call, function_call = CompiledGraph.__call__, CompiledFunction.__call__

    def hashed_call(function, *args, **kwargs):
        result, leaves = function_call(function, *args, **kwargs), []
        flatten(result, leaves)
        note([leaf._array for leaf in leaves if type(leaf) is Tensor])
        return result

    # as if it were the library's own, or warnings would name this file as the user's
    own = function_call.__code__.co_filename
    hashed_call.__code__ = hashed_call.__code__.replace(co_filename=own)
    config.found, config.hashed_call = set(), hashed_call
    stances.OWN = hashed_call, stances.OWN[1]
    CompiledGraph.__call__ = lambda graph, *arrays: note(graph_call(graph, *arrays))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Digests of what a test alone does, whichever ran before it; threads may take any order."""
    if DIGESTS not in os.environ:
        return (yield)
    import wengert
    from wengert.compiling import CompiledFunction

    CompiledFunction.__call__ = item.config.hashed_call  # native code may be back after stances
    wengert.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    item.config.found.clear()
    try:
        return (yield)
    finally:
        if item.config.found:
            digest = hashlib.sha256(b"".join(sorted(item.config.found))).hexdigest()
            with open(os.environ[DIGESTS], "a") as file:
                file.write(f"{digest} {item.nodeid}\n")


# --- as a script ---------------------------------------------------------------------------------


def damage(folder):
    """Cuts every second file short and changes a byte of the others."""
    files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    for k, path in enumerate(files):
        data = bytearray(path.read_bytes())
        if k % 2 and data:
            data[len(data) // 2] ^= 0x10
        path.write_bytes(data if k % 2 else data[: len(data) // 2])
    return len(files)


def run(mode, folder, arguments):
    """pytest's report of one mode; the digest of each test is left beside it."""
    digests = folder / f"{mode}.digests"
    digests.write_text("")
    environment = {"WENGERT_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(HERE),
                   "PYTHONHASHSEED": "0", DIGESTS: str(digests), **MODES[mode]}  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-p", "modes", "--hypothesis-seed=0", "-rsfE",
               "--tb=short", *arguments]  # fmt: skip
    report = folder / f"{mode}.txt"
    with report.open("w") as file:  # to be looked at on the way
        subprocess.run(command, cwd=HERE.parent.parent, stdout=file, stderr=subprocess.STDOUT,
                       env={**os.environ, **environment})  # fmt: skip
    return report.read_text()


def differing(mode, folder):
    """Tests that gave other bits than in the first mode, and how many gave any."""
    files = [folder / f"{name}.digests" for name in (next(iter(MODES)), mode)]
    first, other = (dict(reversed(line.split(" ", 1)) for line in file.read_text().splitlines())
                    for file in files)  # fmt: skip
    either = first.keys() | other.keys()
    return sorted(n for n in either if first.get(n) != other.get(n)), len(either)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="modes whose name has this word")
    parser.add_argument("--folder", default=tempfile.mkdtemp(), help="for the cache and reports")
    options, arguments = parser.parse_known_args()
    folder = Path(options.folder)
    (folder / "cache").mkdir(mode=0o700, parents=True, exist_ok=True)
    failed = 0
    for mode in (name for name in MODES if options.only in name):
        if "damaged" in mode:
            print(f"{damage(folder / 'cache')} files damaged", flush=True)
        report = run(mode, folder, arguments)
        names, count = differing(mode, folder)
        print(f"{mode}: {report.strip().splitlines()[-1]}")
        print(*re.findall(r"^(?:SKIPPED|FAILED|ERROR).*", report, re.M), sep="\n")
        print(f"{len(names)} of {count} tests gave other bits", *names, sep="\n  ", flush=True)
        failed += bool(names) or " failed" in report or " error" in report
    return failed


if __name__ == "__main__":
    sys.exit(main())
