"""The house keeps its own rules: packaging, sizes of files and functions, notes, README."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {"api": "wengert", "ir": "wengert.ir", "tracer": "wengert.tracer",
         "codegen": "wengert.codegen", "runtime": "wengert.runtime",
         "benchmarks": "wengert.benchmarks"}  # fmt: skip
MOST_LINES, MOST_FUNCTION_LINES = 450, 60
# the loop of backward: splitting it would cost each node a call, the largest part of its time
LONG_FUNCTIONS = {"tracer/engine.py loop"}


def sources():
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def folders_as_packages():
    for room, package in ROOMS.items():
        for init in sorted((ROOT / room).rglob("__init__.py")):
            inside = init.parent.relative_to(ROOT / room).parts
            yield ".".join([package, *inside])


def test_pyproject_lists_every_package():
    text = (ROOT / "pyproject.toml").read_text()
    block = re.search(r"^packages = \[(.*?)\]", text, re.S | re.M).group(1)
    assert sorted(re.findall(r'"([^"]+)"', block)) == sorted(folders_as_packages())


def test_files_and_functions_stay_small():
    long = []
    for path in sources():
        text = path.read_text()
        count = text.count("\n")
        if count > MOST_LINES:
            long.append(f"{path.relative_to(ROOT)}: {count} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                lines = node.end_lineno - node.lineno + 1
                known = f"{path.relative_to(ROOT)} {node.name}" in LONG_FUNCTIONS
                if lines > MOST_FUNCTION_LINES and not known:
                    place = f"{path.relative_to(ROOT)}:{node.lineno}"
                    long.append(f"{place} {node.name}: {lines} lines")
    assert long == []


def test_no_module_hides_a_function():
    """Python puts a module that is imported into its package, over what had its name there."""
    from wengert.ir.value import FUNCTIONS

    functions = {name for name, function in FUNCTIONS.items() if "torch" in function.spaces}
    modules = {path.stem for path in (ROOT / "api").glob("*.py")}
    assert modules & functions == set()


def test_cited_notes_exist():
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*")]
    texts = [p.read_text() for p in rooms if p.suffix in (".py", ".ll", ".j2")]
    written = {n for t in texts for n in re.findall(r"^\W*Note \[([^\]]+)\]", t, re.M)}
    cited = {n for t in texts for n in re.findall(r"Note \[([^\]]+)\]", t)}
    assert cited <= written


def test_every_module_says_what_it_holds():
    missing = [str(p.relative_to(ROOT)) for p in sources() if not ast.get_docstring(
        ast.parse(p.read_text()))]  # fmt: skip
    assert missing == []


def readme_blocks():
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)


@pytest.mark.parametrize("block", readme_blocks(), ids=lambda b: b.splitlines()[-1][:30])
def test_readme_code_runs(block, tmp_path):
    script = tmp_path / "block.py"
    script.write_text(block)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_importing_loads_neither_llvmlite_nor_jinja2():
    code = "import sys, wengert; print([m for m in ('llvmlite', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff(command):
    done = subprocess.run([sys.executable, "-m", "ruff", *command, "-q", str(ROOT)],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0",
    reason="NumPy's own annotations do not pass a strict check before 2.3",
)
def test_types_of_the_ir(tmp_path):
    """mypy sees the package as it is installed: `api/` is `wengert`, the rooms are inside."""
    package = tmp_path / "wengert"
    package.mkdir()
    for path in (ROOT / "api").iterdir():
        (package / path.name).symlink_to(path)
    for room in ("ir", "tracer", "codegen", "runtime"):
        (package / room).symlink_to(ROOT / room)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
               "--cache-dir", str(tmp_path / "cache"), "-p", "wengert.ir"]  # fmt: skip
    environment = {**os.environ, "MYPYPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_properties_hold_no_lock():
    """A fork would inherit it: see ir/cached.py."""
    locking = re.compile(r"^ *from functools import .*cached_property|@functools.cached", re.M)
    assert [p.name for p in sources() if locking.search(p.read_text())] == ["cached.py"]
