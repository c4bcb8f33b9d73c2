"""The same bits for any number of threads, in every run, process and state of the cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from training import MODELS, train

TRAINING = Path(__file__).with_name("training.py")
SHORT, LONG = 10, 200


def trained(model, how, steps, **environment):
    """The hash after training in a new process."""
    done = subprocess.run(
        [sys.executable, str(TRAINING), model, str(steps), how], capture_output=True, text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_hashes(model, steps, directory):
    """A cold cache, a warm one, none; 1, 2, 4 and 8 threads: one hash."""
    hashes = {}
    for threads in (1, 2, 4, 8):  # the first finds the directory empty, the others full
        hashes[f"{threads} threads"] = trained(
            model, "compiled", steps, WENGERT_NUM_THREADS=str(threads), WENGERT_CACHE_DIR=directory
        )
    hashes["no cache"] = trained(
        model, "compiled", steps, WENGERT_CACHE="0", WENGERT_NUM_THREADS="3"
    )
    assert len(set(hashes.values())) == 1, hashes


def test_threads_processes_and_caches(tmp_path):
    check_hashes("mlp", LONG, str(tmp_path / "cache"))


@pytest.mark.nightly
@pytest.mark.parametrize("model", MODELS)
def test_threads_processes_and_caches_of_all_models(model, tmp_path):
    check_hashes(model, LONG, str(tmp_path / "cache"))


def test_eager_processes():
    hashes = {trained("mlp", "eager", SHORT, WENGERT_NUM_THREADS=threads) for threads in "14"}
    assert len(hashes) == 1


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("model", MODELS)
def test_runs_in_one_process(model, compiled):
    losses, first = train(SHORT, compiled, model)
    assert train(SHORT, compiled, model) == (losses, first)
