"""Whole programs print the same when their functions and modules are compiled.

Each program of `programs/` runs eagerly, with every function, method of a module and lambda wrapped
by `compile`, and as one compiled function that is called three times.
"""

import ast
import contextlib
import io
from pathlib import Path

import pytest
import wengert as torch

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
WRAP = ast.Name("compiled", ast.Load())


class Wrapped(ast.NodeTransformer):
    """Decorates functions, and the methods of modules; other classes are left alone."""

    def visit_ClassDef(self, node):
        if any("Module" in ast.unparse(base) for base in node.bases):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "forward":
                    method.decorator_list.append(WRAP)
        return node

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.decorator_list.append(WRAP)
        return node

    def visit_Lambda(self, node):
        self.generic_visit(node)
        return ast.Call(WRAP, [node], [])


def repeated(tree, as_function):
    """The program with all but its imports three times: in a loop, or as a function."""
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in tree.body if node not in imports]
    if as_function:
        text = "@compiled\ndef main():\n    pass\nfor _ in range(3):\n    main()"
    else:
        text = "for _ in range(3):\n    pass"
    added = ast.parse(text)
    added.body[0].body = rest
    added.body = [*imports, *added.body]
    return ast.fix_missing_locations(added)


def printed(path, wrap, as_function=False):
    tree = ast.parse(path.read_text(), str(path))
    tree = repeated(tree if as_function else Wrapped().visit(tree), as_function)
    space = {"__name__": "__main__", "compiled": wrap}
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(tree, str(path), "exec"), space)
    return out.getvalue()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_print_the_same(path, monkeypatch):
    monkeypatch.setenv("WENGERT_STRICT", "1")
    expected = printed(path, lambda f: f)
    assert expected.count("\n") > 5
    assert printed(path, torch.compile) == expected
    assert printed(path, torch.compile, as_function=True) == expected
