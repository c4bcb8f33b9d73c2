"""The same bits for any number of threads, in every run, process and state of the cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from training import train

TRAINING = Path(__file__).with_name("training.py")
STEPS = 200


def trained(how, steps=STEPS, **environment):
    """The hash after training in a new process."""
    done = subprocess.run(
        [sys.executable, str(TRAINING), str(steps), how], capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_threads_processes_and_caches(tmp_path):
    """A cold cache, a warm one, none; 1, 2, 4 and 8 threads: one hash."""
    directory = str(tmp_path / "cache")
    hashes = {}
    for threads in (1, 2, 4, 8):  # the first finds the directory empty, the others full
        hashes[f"{threads} threads"] = trained("compiled", WENGERT_NUM_THREADS=str(threads),
                                               WENGERT_CACHE_DIR=directory)  # fmt: skip
    hashes["no cache"] = trained("compiled", WENGERT_CACHE="0", WENGERT_NUM_THREADS="3")
    assert len(set(hashes.values())) == 1, hashes


def test_eager_processes():
    assert trained("eager", 20) == trained("eager", 20)


@pytest.mark.parametrize("compiled", [True, False])
def test_runs_in_one_process(compiled):
    losses, first = train(20, compiled)
    assert train(20, compiled) == (losses, first)
