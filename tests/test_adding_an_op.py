"""docs/adding-an-op.md, followed to the letter in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "adding-an-op.md"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.S)


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The package with steps 1 and 2 done, as an environment for subprocesses."""
    home = tmp_path_factory.mktemp("copy")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "api", home / "wengert", ignore=skip)
    for room in ("ir", "tracer", "codegen", "runtime"):
        shutil.copytree(ROOT / room, home / "wengert" / room, ignore=skip)
    entry, name, _ = blocks("python")
    path = re.search(r"Make `ir/(\S+)`", PAGE.read_text())[1]
    (home / "wengert" / "ir" / path).write_text(entry)
    catalogue = home / "wengert" / "ir" / "ops" / "__init__.py"
    catalogue.write_text(catalogue.read_text() + name)
    return {**os.environ, "PYTHONPATH": str(home)}


def run(command, environment):
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


def test_the_new_op_works(copy, tmp_path):
    script = tmp_path / "try.py"
    script.write_text(blocks("python")[2])
    done = run([sys.executable, str(script)], copy)
    assert done.returncode == 0, done.stderr
    assert "tensor([1.0000, 1.4142, 2.2361], grad_fn=<SoftabsBackward0>)" in done.stdout
    assert "^softabs.0" in done.stdout
    if "x86_64" in os.uname().machine:
        assert "sqrtp" in done.stdout or "sqrts" in done.stdout


def test_its_tests_run_by_themselves(copy):
    command = blocks("sh")[0].split()[1:]
    done = run([sys.executable, *command, "-p", "no:cacheprovider"], copy)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"[1-9]\d* passed|\.{3,}", done.stdout)
