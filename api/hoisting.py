"""Statements that hand a value to Python, with what comes before that as statements of its own.

Note [In the same order]
    `logs.append(float(loss_of(x)))` becomes `a = logs.append; b = loss_of(x); a(float(b))`: what is
    evaluated before the value is handed over is done before, all of it in the order that Python has
    for it, so nobody sees a difference. What is the same whenever it is looked at stays: constants,
    local names, functions of Python. Where the order is not plain (an operand that may not be
    evaluated at all, a starred argument), the statement is left as it is.
"""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Callable, Mapping
from typing import Any

Place = tuple[int, int, int, int]  # line and column of the beginning, of the end
WORK = (ast.Call, ast.BinOp, ast.UnaryOp, ast.AugAssign, ast.Compare, ast.Subscript)


def place_of(node: Any) -> Place:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


class Hoist:
    """Takes statements apart. `local` are names of the function, `space` its global ones."""

    def __init__(self, local: frozenset[str], space: Mapping[str, Any], new: Callable[[], str]):
        self.local, self.space, self.new = local, space, new

    def statements(self, statement: ast.stmt, place: Place) -> list[ast.stmt]:
        """A simple statement, behind what comes before the call at `place`."""
        names = any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement))
        if names or not self.is_plain(statement):
            return [statement]
        path = path_to(statement, place)
        if path is None or not isinstance(path[-1], ast.Call):
            return [statement]
        before: list[tuple[Any, str, int | None]] = []
        for around, inner in itertools.pairwise(path):
            parts = in_order(around) or []
            at = next((k for k, part in enumerate(parts) if child(around, part) is inner), None)
            if at is None:
                return [statement]
            before += [(around, *part) for part in parts[:at]]
        call = path[-1]
        if any(isinstance(argument, ast.Starred) for argument in call.args):
            return [statement]
        if isinstance(call.func, ast.Attribute):
            before.append((call.func, "value", None))
        else:
            before += [(call, *part) for part in in_order(call) or ()]
        return [*[made for part in before for made in self.apart(*part)], statement]

    def apart(self, around: Any, name: str, index: int | None) -> list[ast.stmt]:
        """A part of an expression becomes a name, if that makes a difference."""
        part = child(around, (name, index))
        if isinstance(part, ast.keyword):
            around, name, index, part = part, "value", None, part.value
        if self.is_steady(part):
            return []
        own = self.new()
        put(around, name, index, ast.copy_location(ast.Name(own, ast.Load()), part))
        made = ast.copy_location(ast.Assign([ast.Name(own, ast.Store())], part), part)
        made.stays = not any(isinstance(node, WORK) for node in ast.walk(part))  # type: ignore[attr-defined]
        return [ast.fix_missing_locations(made)]

    def is_plain(self, statement: ast.stmt) -> bool:
        """Is it an expression, and then at most names for it?"""
        if isinstance(statement, ast.AugAssign):  # the target is looked at first
            return isinstance(statement.target, ast.Name) and statement.target.id in self.local
        return isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr)

    def is_steady(self, part: ast.AST) -> bool:
        if not isinstance(part, ast.Name):
            return isinstance(part, ast.Constant)
        return part.id in self.local or (part.id not in self.space and hasattr(builtins, part.id))


def path_to(node: Any, place: Place) -> list[Any] | None:
    """The nodes from a statement to the expression at a place."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.expr) and place_of(inner) == place:
            return [node, inner]
        found = path_to(inner, place)
        if found is not None:
            return [node, *found]
    return None


def in_order(node: Any) -> list[tuple[str, int | None]] | None:
    """The parts of an expression as they are evaluated; None where that is not plain."""
    if isinstance(node, ast.Call):
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            return None
        if any(keyword.arg is None for keyword in node.keywords):
            return None
        return [("func", None), *several("args", node.args), *several("keywords", node.keywords)]
    if isinstance(node, ast.Tuple | ast.List):
        return None if any(isinstance(e, ast.Starred) for e in node.elts) else several(
            "elts", node.elts)  # fmt: skip
    if isinstance(node, ast.Dict):
        if None in node.keys:
            return None
        return [pair for k in range(len(node.keys)) for pair in (("keys", k), ("values", k))]
    if isinstance(node, ast.JoinedStr):  # its parts become text one after the other
        known = [isinstance(value, ast.Constant) for value in node.values]
        return several("values", node.values) if sum(known) >= len(known) - 1 else None
    if isinstance(node, ast.Compare):
        return [("left", None), ("comparators", 0)] if len(node.ops) == 1 else None
    plain: dict[type, list[str]] = {
        ast.BinOp: ["left", "right"], ast.UnaryOp: ["operand"], ast.Attribute: ["value"],
        ast.Subscript: ["value", "slice"], ast.FormattedValue: ["value"], ast.keyword: ["value"],
        ast.Assign: ["value"], ast.AnnAssign: ["value"], ast.AugAssign: ["value"],
        ast.Return: ["value"], ast.Expr: ["value"],
    }  # fmt: skip
    names = plain.get(type(node))
    return None if names is None else [(name, None) for name in names]


def several(name: str, nodes: list[Any]) -> list[tuple[str, int | None]]:
    return [(name, k) for k in range(len(nodes))]


def child(around: Any, part: tuple[str, int | None]) -> Any:
    """A part of an expression."""
    name, index = part
    found = getattr(around, name)
    return found if index is None else found[index]


def put(around: Any, name: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(around, name, node)
    else:
        getattr(around, name)[index] = node
