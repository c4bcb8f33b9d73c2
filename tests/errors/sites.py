"""Which `raise` statements of the library do tests reach?

    python tests/errors/sites.py                    runs the suite, then lists the rest
    python tests/errors/sites.py tests/errors       runs these tests only

The sources are compiled with a note before each `raise` that makes an exception, in the processes
of pytest and in those that tests start. What need not be reached, RULES says; test_sites.py tests
them. The exit code is 0 if nothing is left.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
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
    """A `raise` in the sources: what it raises, and whether it is all that a function does."""

    path: str
    line: int
    text: str
    alone: bool

    @property
    def kind(self) -> str:
        """The name of the exception, or of what makes it."""
        return self.text.partition("(")[0].rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text[:120]}"

    @property
    def mark(self) -> str:
        """The name of the file that is there once the site was reached."""
        return f"{self.path}:{self.line}".replace("/", ".")


class Noting(ast.NodeTransformer):
    """Puts a call of `note_raise(mark)` before each `raise`."""

    def __init__(self, path: Path):
        self.path, self.sites = str(path.relative_to(ROOT)), []
        self.alone: set[ast.stmt] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef):
        body = node.body[1:] if ast.get_docstring(node) else node.body
        if len(body) == 1:
            self.alone.add(body[0])
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise):
        if node.exc is None:
            return node
        text = ast.unparse(node.exc)
        self.sites.append(Site(self.path, node.lineno, text, node in self.alone))
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


# Why a site need not be reached by a test.
RULES: dict[str, Callable[[Site], bool]] = {
    "a method that subclasses write": lambda s: s.alone and s.kind in ABSTRACT,
    "passing on what was raised elsewhere": lambda s: "(" not in s.text and s.kind.islower(),
    "control flow: no Error by name, and caught here": lambda s: s.kind in control_flow(),
    "a fault of the compiler: the function runs eagerly": lambda s: s.kind in COMPILERS_FAULTS,
}
ABSTRACT = ("NotImplementedError", "unwritten")
COMPILERS_FAULTS = ("VerifyError", "JitError", "LinkError")


@functools.cache
def control_flow() -> frozenset[str]:
    """Exceptions of the library's own that are named in some `except` of it."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources())
    made = re.findall(r"^class (\w+)\(\w*(?:Exception|Error)\)", text, re.M)
    caught = set(re.findall(r"\w+", " ".join(re.findall(r"except (.*):", text))))
    return frozenset(name for name in made if name in caught and not name.endswith("Error"))


def sources() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def all_sites() -> list[Site]:
    """Every `raise` that makes an exception."""
    found = []
    for path in sources():
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
    unreached = [site for site in sites if site.mark not in marks]
    rest = [site for site in unreached if not any(rule(site) for rule in RULES.values())]
    print(*rest, sep="\n")
    for name, rule in RULES.items():
        print(f"{sum(map(rule, unreached))} not reached: {name}")
    print(f"{len(sites) - len(unreached)} of {len(sites)} raise statements were reached, "
          f"{len(rest)} are left")  # fmt: skip
    return failed or bool(rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
