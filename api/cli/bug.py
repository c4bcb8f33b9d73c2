"""`wengert bug SCRIPT`: runs a script and packs what a bug report about the compiler needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = """  wengert bug train.py --epochs 1   makes wengert-bug.zip; look through it and send it
"""
FOLDER = "wengert-bug"


def register(commands: Any) -> None:
    from . import command

    parser = command(commands, "bug", "run a script and pack a report of a fault of the compiler",
                     run, EXAMPLES)  # fmt: skip
    parser.add_argument("script", help="the script that gave the warning W001, and its arguments")
    parser.set_defaults(passes_on=True)


def run(options: Any) -> int:
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, "WENGERT_STRICT": "1", "WENGERT_DUMP": str(folder / "dumps"),
                   "WENGERT_CHECK": "1"}  # fmt: skip
    keep(folder / "doctor.txt", [sys.executable, "-m", "wengert", "doctor"], os.environ)
    status = keep(folder / "output.txt", [sys.executable, options.script, *options.rest],
                  environment)  # fmt: skip
    if Path(options.script).is_file():
        shutil.copy(options.script, folder)
    packed = shutil.make_archive(FOLDER, "zip", folder)
    print(f"{options.script} ended with status {status}; {packed} holds its output, the dumps of "
          "its compiled functions, the script and what `wengert doctor` says")  # fmt: skip
    return 0


def keep(path: Path, command: list[str], environment: Any) -> int:
    """Runs a command; its output goes to a file."""
    done = subprocess.run(command, env=dict(environment), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)  # fmt: skip
    path.write_text(done.stdout)
    return done.returncode
