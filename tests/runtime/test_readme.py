"""The room's README runs, and the room imports what it may."""

import re
import subprocess
import sys
from pathlib import Path

from wengert import runtime

ROOM = Path(runtime.__file__).parent


def test_the_readme_runs():
    readme = Path(__file__).parents[2] / "runtime" / "README.md"
    for block in re.findall(r"```python\n(.*?)```", readme.read_text(), re.S):
        exec(compile(block, str(readme), "exec"), {})


def test_the_readme_names_every_file():
    readme = (Path(__file__).parents[2] / "runtime" / "README.md").read_text()
    # Modules that later join the room add themselves to its table.
    mine = {path.name for path in ROOM.iterdir() if path.suffix in (".py", ".ll")}
    assert {name for name in mine - {"__init__.py"} if f"`{name}`" not in readme} == set()


def test_no_module_imports_llvmlite_by_itself():
    modules = [path.stem for path in ROOM.glob("*.py") if path.stem != "__init__"]
    code = "import importlib, sys\n" + "\n".join(
        f"importlib.import_module('wengert.runtime.{name}')" for name in modules
    )
    code += "\nsys.exit('llvmlite' in sys.modules or 'jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_notes_that_are_cited_exist():
    text = "\n".join(path.read_text() for path in ROOM.iterdir() if path.suffix in (".py", ".ll"))
    cited = set(re.findall(r"Note \[([^\]]+)\]", text))
    written = set(re.findall(r"^# Note \[([^\]]+)\]", text, re.M))
    assert cited == written
