"""Which `raise` statements of the library do tests reach?

    python tests/errors/sites.py                    runs the suite, then lists the rest
    python tests/errors/sites.py tests/errors       runs these tests only

The sources are compiled with a note before each `raise` that makes an exception, in the processes
of pytest and in those that tests start.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import os
import subprocess
import sys
import tempfile
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "ir", "tracer", "codegen", "runtime")
IN_EVERY_PROCESS = """
import sys
sys.path.insert(0, {here!r})
import sites
sys.path.remove({here!r})
sites.note_what_is_raised({folder!r})
"""


class Site(NamedTuple):
    """A `raise` in the sources."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text}"

    @property
    def mark(self) -> str:
        """The name of the file that is there once the site was reached."""
        return f"{self.path}:{self.line}".replace("/", ".")


class Noting(ast.NodeTransformer):
    """Puts a call of `note_raise(mark)` before each `raise`."""

    def __init__(self, path: Path):
        self.path, self.sites = str(path.relative_to(ROOT)), []

    def visit_Raise(self, node: ast.Raise):
        if node.exc is None:
            return node
        self.sites.append(Site(self.path, node.lineno, ast.unparse(node.exc)))
        name = ast.Name("note_raise", ast.Load())
        note = ast.Expr(ast.Call(name, [ast.Constant(self.sites[-1].mark)], []))
        return [ast.fix_missing_locations(ast.copy_location(note, node)), node]


def note_what_is_raised(folder: str) -> None:
    """From now on, sources of the library are compiled with notes, which are kept in a folder."""
    usual, open_file = SourceFileLoader.source_to_code, os.open

    def source_to_code(loader, data, path, **options):
        place = Path(path).resolve()
        if any(place.is_relative_to(ROOT / room) for room in ROOMS):
            data = Noting(place).visit(ast.parse(data))
        return usual(loader, data, path, **options)

    def note_raise(mark):
        with contextlib.suppress(OSError):  # of tests in which files cannot be written
            os.close(open_file(f"{folder}/{mark}", os.O_CREAT | os.O_WRONLY))

    SourceFileLoader.source_to_code = source_to_code
    sys.pycache_prefix, sys.dont_write_bytecode = f"{folder}/code", False
    builtins.note_raise = note_raise


def all_sites() -> list[Site]:
    """Every `raise` that makes an exception."""
    found = []
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        walk = Noting(path)
        walk.visit(ast.parse(path.read_text(encoding="utf-8")))
        found += walk.sites
    return found


def reached_by(arguments: list[str]) -> tuple[int, set[str]]:
    """Runs pytest; returns its exit code and the marks of what was raised."""
    with tempfile.TemporaryDirectory() as folder:
        code = IN_EVERY_PROCESS.format(here=str(Path(__file__).parent), folder=folder)
        Path(folder, "sitecustomize.py").write_text(code, encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": folder}
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        failed = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        return failed, set(os.listdir(folder))


def main(arguments: list[str]) -> int:
    failed, marks = reached_by(arguments)
    sites = all_sites()
    rest = [site for site in sites if site.mark not in marks]
    print(*rest, sep="\n")
    print(f"{len(sites) - len(rest)} of {len(sites)} raise statements were reached")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
