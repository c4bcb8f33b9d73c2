"""Which local names of a function are read later, and which are surely bound, at a statement.

Note [Live names]
    Both walk the tree of a function: `live` backwards from what is read behind a block, `bound`
    forwards. Where a way through is not known, by exceptions above all, more names are live and
    fewer are bound.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

Names = frozenset[str]
NONE: Names = frozenset()
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# managers that let errors pass
MODES = {"no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "autocast",
         "detect_anomaly", "set_detect_anomaly", "record_function"}  # fmt: skip
UNFIT = (ast.Yield, ast.YieldFrom, ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef,
         ast.ClassDef, ast.Match, ast.Delete)  # fmt: skip


class Unfit(Exception):
    """Names can't be told apart from outside: a function that goes on living holds them."""


class Used(NamedTuple):
    """Of a piece of code: names that are read, and those that are bound if it is passed."""

    reads: Names
    binds: Names


def used(node: ast.AST, local: Names) -> Used:
    """Of an expression or simple statement, or of all that is in a compound one."""
    if isinstance(node, UNFIT):
        raise Unfit
    if isinstance(node, ast.Name):
        only = frozenset([node.id])
        return Used(only, NONE) if isinstance(node.ctx, ast.Load) else Used(NONE, only)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return Used(NONE, frozenset((a.asname or a.name).split(".")[0] for a in node.names))
    if isinstance(node, COMPREHENSIONS):
        return used_in_comprehension(node, local)
    if isinstance(node, ast.Lambda | ast.FunctionDef):
        return used_in_function(node, local)
    reads, binds = joined(ast.iter_child_nodes(node), local)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        reads |= {node.target.id}
    if isinstance(node, ast.ExceptHandler) and node.name is not None:
        binds |= {node.name}
    return Used(reads, binds)


def joined(nodes: object, local: Names) -> Used:
    found = [used(node, local) for node in nodes]  # type: ignore[attr-defined]
    return Used(NONE.union(*[f.reads for f in found]), NONE.union(*[f.binds for f in found]))


def used_in_comprehension(node: ast.AST, local: Names) -> Used:
    """Its own names are nobody else's."""
    reads, own = joined(ast.iter_child_nodes(node), local)
    if any(isinstance(inner, ast.NamedExpr | ast.Lambda) for inner in ast.walk(node)):
        raise Unfit
    first = used(node.generators[0].iter, local).reads  # type: ignore[attr-defined]
    if isinstance(node, ast.GeneratorExp) and not local.isdisjoint(reads - own - first):
        raise Unfit  # it may be asked later
    return Used(first | (reads - own), NONE)


def used_in_function(node: ast.Lambda | ast.FunctionDef, local: Names) -> Used:
    """One that reads local names holds them for as long as it is there."""
    if any(isinstance(inner, ast.Name) and inner.id in local for inner in ast.walk(node)):
        raise Unfit
    return Used(NONE, NONE if isinstance(node, ast.Lambda) else frozenset([node.name]))


class Loop(NamedTuple):
    """What is live behind it, and where its next round begins."""

    behind: Names
    again: Names


class Liveness:
    """Of the statements of a function with these local names."""

    def __init__(self, local: Names):
        self.local = local

    def used(self, *nodes: ast.AST | None) -> Used:
        found = joined([node for node in nodes if node is not None], self.local)
        return Used(found.reads & self.local, found.binds & self.local)

    def live(self, block: Sequence[ast.stmt], after: Names, loop: Loop | None) -> Names:
        """The names that are read from the beginning of a block on."""
        for statement in reversed(block):
            after = self.live_before(statement, after, loop)
        return after

    def live_before(self, statement: ast.stmt, after: Names, loop: Loop | None) -> Names:
        if isinstance(statement, ast.If):
            ways = [self.live(block, after, loop) for block in (statement.body, statement.orelse)]
            return self.used(statement.test).reads.union(*ways)
        if isinstance(statement, ast.For | ast.While):
            return self.live_before_loop(statement, after, loop)
        if isinstance(statement, ast.With):
            inside = self.live(statement.body, after, loop)
            return self.used(*statement.items).reads | inside | after
        if isinstance(statement, ast.Return | ast.Raise):
            return self.used(statement).reads
        if isinstance(statement, ast.Break | ast.Continue):
            if loop is None:
                raise Unfit
            return loop.behind if isinstance(statement, ast.Break) else loop.again
        reads, binds = self.used(statement)
        if isinstance(statement, ast.Try | getattr(ast, "TryStar", ast.Try)):
            return reads | after | (NONE if loop is None else loop.behind | loop.again)
        return reads | (after - self.surely(statement, binds))

    def live_before_loop(self, statement: ast.For | ast.While, after: Names,
                         loop: Loop | None) -> Names:  # fmt: skip
        end = self.live(statement.orelse, after, loop)
        if isinstance(statement, ast.While):
            asked, own = self.used(statement.test).reads, NONE
        else:
            target = self.used(statement.target)
            asked, own = target.reads, target.binds
        again, before = end | asked, None
        while again != before:
            before = again
            again |= self.live(statement.body, again, Loop(after, again)) - own
        first = self.used(statement.iter).reads if isinstance(statement, ast.For) else NONE
        return again | first

    def surely(self, statement: ast.stmt, binds: Names) -> Names:
        """Of the names that a simple statement binds, those that it always does."""
        walrus = {node.target.id for node in ast.walk(statement) if isinstance(node, ast.NamedExpr)}
        return binds - walrus

    def bound(self, block: Sequence[ast.stmt], before: Names) -> Names | None:
        """The names that are surely bound behind a block; None where it is never left so."""
        known: Names | None = before
        for statement in block:
            if known is None:
                return None
            known = self.bound_behind(statement, known)
        return known

    def bound_behind(self, statement: ast.stmt, before: Names) -> Names | None:
        if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue):
            return None
        if isinstance(statement, ast.If):
            ways = [self.bound(block, before) for block in (statement.body, statement.orelse)]
            known = [way for way in ways if way is not None]
            return known[0].intersection(*known) if known else None
        if isinstance(statement, ast.With):
            inside = self.bound(statement.body, before | self.used(*statement.items).binds)
            return inside if lets_errors_pass(statement) else before
        if isinstance(statement, ast.For | ast.While | ast.Try | getattr(ast, "TryStar", ast.Try)):
            return before
        return before | self.surely(statement, self.used(statement).binds)


def lets_errors_pass(statement: ast.With) -> bool:
    """Are its managers known to do so?"""
    managers = [item.context_expr for item in statement.items]
    return all(isinstance(m, ast.Call) and name_of(m.func) in MODES for m in managers)


def name_of(node: ast.AST) -> str:
    """The last name of `a.b.c`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
