"""Which `raise` statements of the library do tests reach?

    python tests/errors/sites.py tests/errors tests/torchlike      runs pytest, then lists the rest

The sources are compiled with a note before each `raise` that makes an exception. Processes that
tests start are not seen.
"""

from __future__ import annotations

import ast
import builtins
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("api", "ir", "tracer", "codegen", "runtime")
reached: set[str] = set()


class Noting(ast.NodeTransformer):
    """Puts a call of `note_raise(place)` before each `raise`."""

    def __init__(self, path: Path):
        self.path, self.places = path.relative_to(ROOT), []

    def visit_Raise(self, node: ast.Raise):
        if node.exc is None:
            return node
        self.places.append(f"{self.path}:{node.lineno} {ast.unparse(node.exc)[:120]}")
        name = ast.Name("note_raise", ast.Load())
        note = ast.Expr(ast.Call(name, [ast.Constant(self.places[-1])], []))
        return [ast.fix_missing_locations(ast.copy_location(note, node)), node]


def get_code(loader: SourceFileLoader, name: str, usual=SourceFileLoader.get_code):
    path = Path(loader.path).resolve()
    if not any(path.is_relative_to(ROOT / room) for room in ROOMS):
        return usual(loader, name)
    tree = Noting(path).visit(ast.parse(loader.get_data(str(path))))
    return compile(tree, str(path), "exec", dont_inherit=True)


def all_places() -> list[str]:
    """Every `raise` that makes an exception, with its text."""
    found = []
    for path in (path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))):
        walk = Noting(path)
        walk.visit(ast.parse(path.read_text(encoding="utf-8")))
        found += walk.places
    return found


def main() -> int:
    builtins.note_raise = reached.add
    SourceFileLoader.get_code = get_code
    failed = pytest.main(["-q", *sys.argv[1:]])
    places = all_places()
    print(*(place for place in places if place not in reached), sep="\n")
    print(f"{len(reached & set(places))} of {len(places)} raise statements were reached")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
