"""The source of a function as a tree, and functions made of such trees.

Note [The same code]
    A file may have changed since it was imported, a decorator may have put other code into the
    function, and names may mean something else where a function is in a class. So the tree that was
    found is compiled again, and is taken only if that gives the function's own code.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import linecache
import types
from collections.abc import Collection, Mapping, Sequence
from typing import Any

FACTORY = "__wengert_factory"
NESTED = inspect.CO_NESTED
FUTURES = sum(getattr(__future__, name).compiler_flag for name in set(__future__.all_feature_names))
FACTS = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_name",
         "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_exceptiontable")  # fmt: skip


def definition_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """The tree of a function, without decorators, annotations and values of defaults; None where
    its source is not known."""
    try:
        lines, first = inspect.getsourcelines(function.__code__)
        indented = lines[0][:1].isspace()
        tree = ast.parse("".join(["if 1:\n"] * indented + lines))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    found: ast.stmt = tree.body[0]
    if indented and isinstance(found, ast.If):
        found = found.body[0]
    if not isinstance(found, ast.FunctionDef) or getattr(found, "type_params", None):
        return None
    ast.increment_lineno(found, first - 1 - indented)
    strip(found)
    for imported in (modules_named, names_imported):
        made = function_of(function, found, {}, imported(function))
        if made is not None and same_code(made.__code__, function.__code__):
            return found
    return None


def modules_named(function: types.FunctionType) -> set[str]:
    """Names that are likely to be imported: Python's compiler has other code for their methods."""
    names, space = function.__code__.co_names, function.__globals__
    return {name for name in names if isinstance(space.get(name), types.ModuleType)}


def names_imported(function: types.FunctionType) -> set[str]:
    """Those that its file imports."""
    lines = linecache.getlines(function.__code__.co_filename, function.__globals__)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return set()
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names
            if alias.name != "*"}  # fmt: skip


def strip(found: ast.FunctionDef) -> None:
    """What is evaluated when a function is defined."""
    found.decorator_list, found.returns = [], None
    arguments = found.args
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in (*several, arguments.vararg, arguments.kwarg):
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(None)
                             for d in arguments.kw_defaults]  # fmt: skip


def function_of(function: types.FunctionType, tree: ast.FunctionDef, cells: Mapping[str, Any],
                imported: Collection[str] = ()) -> types.FunctionType | None:  # fmt: skip
    """A function made of a tree, with what is around another one, and these values beside that."""
    known = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    known.update((name, types.CellType(value)) for name, value in cells.items())
    factory = ast.FunctionDef(
        name=FACTORY,
        args=ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in known], kwonlyargs=[],
                           kw_defaults=[], defaults=[]),
        body=[tree, ast.Return(ast.Name(tree.name, ast.Load()))],
        decorator_list=[],
    )  # fmt: skip
    ast.copy_location(factory, tree)
    imports = [ast.Import([ast.alias(name)]) for name in sorted(imported)]
    never = [ast.If(ast.Constant(0), [*imports], [])] if imports else []
    module = ast.fix_missing_locations(ast.Module([*never, factory], []))
    flags = function.__code__.co_flags & FUTURES
    space: dict[str, Any] = {}
    try:
        code = compile(module, function.__code__.co_filename, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    exec(code, space)
    made = space[FACTORY](*[None] * len(known)).__code__
    made = made.replace(co_qualname=function.__code__.co_qualname)
    closure = tuple([known[name] for name in made.co_freevars])
    return types.FunctionType(made, function.__globals__, tree.name, None, closure)


def like_it(made: types.FunctionType, function: types.FunctionType) -> types.FunctionType:
    """One that is called as another is."""
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    return made


def same_code(a: types.CodeType, b: types.CodeType) -> bool:
    """See Note [The same code]."""
    if a.co_flags | NESTED != b.co_flags | NESTED:
        return False
    return all(getattr(a, fact) == getattr(b, fact) for fact in FACTS) and same_constants(
        a.co_consts, b.co_consts)  # fmt: skip


def same_constants(a: Sequence[Any], b: Sequence[Any]) -> bool:
    if len(a) != len(b):
        return False
    for one, other in zip(a, b):
        if isinstance(one, types.CodeType) and isinstance(other, types.CodeType):
            if not same_code(one, other):
                return False
        elif type(one) is not type(other) or repr(one) != repr(other):  # 1, 1.0, True; zeros
            return False
    return True
