"""The house keeps its own rules: packaging."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    "api": "wengert",
    "ir": "wengert.ir",
    "tracer": "wengert.tracer",
    "codegen": "wengert.codegen",
    "runtime": "wengert.runtime",
}


def folders_as_packages():
    for room, package in ROOMS.items():
        for init in sorted((ROOT / room).rglob("__init__.py")):
            inside = init.parent.relative_to(ROOT / room).parts
            yield ".".join([package, *inside])


def test_pyproject_lists_every_package():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert sorted(config["tool"]["setuptools"]["packages"]) == sorted(folders_as_packages())
