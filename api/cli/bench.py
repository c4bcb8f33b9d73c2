"""`wengert bench`: the project's benchmarks, which are scripts of their own (benchmarks/run.py)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

HELP = "measure training steps, beside torch and jax where they are; see `bench --help`"


def register(commands: Any) -> None:
    from . import command

    command(commands, "bench", HELP, run, add_help=False).set_defaults(passes_on=True)


def run(options: Any) -> int:
    found = importlib.util.find_spec("wengert.benchmarks")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the benchmarks are not installed with this copy of wengert")
    script = Path(found.origin).with_name("run.py")
    return subprocess.call([sys.executable, str(script), *options.rest])
