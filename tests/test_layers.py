"""The rooms import only what they may; see docs/decisions/0001-rooms-and-layers.md."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("ir", "tracer", "codegen", "runtime")
MAY_IMPORT = {"ir": set(), "tracer": {"ir"}, "codegen": {"ir"}, "runtime": {"ir"}}
OUTSIDE = {"ir": {"numpy"}, "tracer": {"numpy"}, "codegen": {"numpy", "jinja2"},
           "runtime": {"numpy", "llvmlite"}}  # fmt: skip
STANDARD = set(__import__("sys").stdlib_module_names)


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield 0, name.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level and not base:
                for name in node.names:
                    yield node.level, name.name
            else:
                yield node.level, base


def files(room):
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_what_they_may(room):
    problems = []
    for path in files(room):
        depth = len(path.relative_to(ROOT / room).parts)  # 1 in the room itself
        for level, name in imports_of(path):
            top = name.split(".")[0]
            if level == 0 and top not in STANDARD | OUTSIDE[room] | {"__future__"}:
                problems.append(f"{path.relative_to(ROOT)} imports {name}")
            if level > depth and top not in MAY_IMPORT[room] | {room}:
                problems.append(f"{path.relative_to(ROOT)} imports ..{name}")
    assert problems == []


def test_llvmlite_is_imported_in_one_file():
    found = {
        str(path.relative_to(ROOT))
        for room in (*ROOMS, "api")
        for path in files(room)
        for level, name in imports_of(path)
        if level == 0 and name.split(".")[0] == "llvmlite"
    }
    assert found <= {"runtime/jit.py"}
