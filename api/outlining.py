"""Bodies with statements that need Python: what is around these is compiled.

Note [Pieces of a body]
    A statement that hands a value to Python (`logs.append(float(loss))`) runs there at every call.
    What comes before and after it can be functions of their own, of the local names that they read,
    which give back those that are read later: so the body becomes one that calls them, and keeps
    the statement as it is, with its line. The pieces are compiled like any function, and may be
    taken apart in turn. Loops, `if` and `with no_grad()` around the statement stay, and what is
    inside them is taken apart; the rest stays with the statement.

    All that is moved into a piece is done at once: it holds no `return` but at its end and no
    `break` out of it, nobody catches its errors inside the body, and no function that is made in
    the body holds its names. Where any of that is not sure, the body stays as it is.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .bodies import Pieces
from .body_source import definition_of, function_of, like_it
from .hoisting import WORK, Hoist, Place, place_of
from .live_names import NONE, Liveness, Loop, Names, Unfit, lets_errors_pass

# functions that look at their caller, by name, by name or attribute
LOOKS_BACK = {"locals", "vars", "dir", "eval", "exec", "super", "__class__"}
FRAMES = {"_getframe", "currentframe"}


def in_pieces(function: Any, places: set[Place], wrap: Callable[[Any], Any]) -> Pieces:
    """The function with the statements at `places` left to Python, other pieces given to `wrap`;
    itself where there is no such way. See Note [Pieces of a body]."""
    whole = Pieces(function)
    if isinstance(function, types.MethodType):
        found = in_pieces(function.__func__, places, wrap)
        return found._replace(run=types.MethodType(found.run, function.__self__))
    if type(function) is not types.FunctionType or hasattr(function, "__wrapped__"):
        return whole
    tree = definition_of(function)
    if tree is None or any(looks_back(node) for node in ast.walk(tree)):
        return whole
    outline = Outline(function, tree, frozenset(places), wrap)
    try:
        tree.body = outline.apart(tree.body)
        tree.body = outline.block(tree.body, outline.parameters, NONE, None)
    except Unfit:
        return whole
    made = function_of(function, tree, outline.pieces) if outline.pieces else None
    if made is None:
        return whole
    return Pieces(like_it(made, function), (*outline.pieces.values(),), outline.is_clean)


@dataclass
class Outline:
    """The pieces of a function that were found so far."""

    function: types.FunctionType
    tree: ast.FunctionDef
    places: frozenset[Place]
    wrap: Callable[[Any], Any]
    pieces: dict[str, Any] = field(default_factory=dict)  # by the name that the body has for them
    is_clean: bool = True

    def __post_init__(self) -> None:
        code, arguments = self.function.__code__, self.tree.args
        self.liveness = Liveness(frozenset((*code.co_varnames, *code.co_cellvars)))
        several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                   arguments.vararg, arguments.kwarg]  # fmt: skip
        self.parameters = frozenset(argument.arg for argument in several if argument is not None)
        self.declared = [node for node in ast.walk(self.tree)
                         if isinstance(node, ast.Global | ast.Nonlocal)]  # fmt: skip

    def apart(self, block: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A block where what is computed before a value goes to Python has statements of its own.
        See Note [In the same order] in hoisting.py."""
        made: list[ast.stmt] = []
        for statement in block:
            for name in ("body", "orelse"):
                if isinstance(statement, ast.If | ast.For | ast.While | ast.With):
                    setattr(statement, name, self.apart(getattr(statement, name, ())))
            places = [place for place in self.places if within(place, statement)]
            hoist = Hoist(self.liveness.local, self.function.__globals__, self.new_name)
            made += hoist.statements(statement, places[0]) if len(places) == 1 else [statement]
        return made

    def new_name(self) -> str:
        name = f"__wengert_part_{len(self.liveness.local)}"
        self.liveness.local |= {name}
        return name

    def block(self, block: Sequence[ast.stmt], bound: Names, after: Names,
              loop: Loop | None) -> list[ast.stmt]:  # fmt: skip
        """The statements of a block, where runs of them are calls of pieces."""
        made: list[ast.stmt] = []
        first = 0
        for k, statement in enumerate(block):
            is_last = isinstance(statement, ast.Return) and not self.is_left(statement)
            if not is_last and not self.is_left(statement) and not leaves(statement):
                continue
            end = k + 1 if is_last else k
            rest = self.liveness.live(block[end:], after, loop)
            made += self.run(block[first:end], bound, rest)
            bound, first = self.reached(block[first:end], bound), end
            if not is_last:
                behind = self.liveness.live(block[k + 1 :], after, loop)
                made.append(self.statement(statement, bound, behind, loop))
                bound, first = self.reached([statement], bound), k + 1
        return made + self.run(block[first:], bound, after)

    def reached(self, block: Sequence[ast.stmt], bound: Names) -> Names:
        """What is bound behind a block, if anything comes there."""
        found = self.liveness.bound(block, bound)
        return bound if found is None else found

    def is_left(self, statement: ast.stmt) -> bool:
        """Is any of the places in it?"""
        if hasattr(statement, "stays"):
            return bool(statement.stays)
        return any(within(place, statement) for place in self.places)

    def statement(self, statement: ast.stmt, bound: Names, after: Names,
                  loop: Loop | None) -> ast.stmt:  # fmt: skip
        """One that stays, with pieces inside."""
        liveness = self.liveness
        if isinstance(statement, ast.If):
            statement.body = self.block(statement.body, bound, after, loop)
            statement.orelse = self.block(statement.orelse, bound, after, loop)
        elif isinstance(statement, ast.With) and lets_errors_pass(statement):
            inside = bound | liveness.used(*statement.items).binds
            statement.body = self.block(statement.body, inside, after, loop)
        elif isinstance(statement, ast.For | ast.While):
            again = liveness.live_before(statement, after, loop)
            inside = bound
            if isinstance(statement, ast.For):
                inside |= liveness.used(statement.target).binds
            statement.body = self.block(statement.body, inside, again, Loop(after, again))
        elif hasattr(statement, "body"):
            self.is_clean = False
        return statement

    def run(self, run: Sequence[ast.stmt], bound: Names, after: Names) -> list[ast.stmt]:
        """A call of the piece that does these statements, or they themselves."""
        liveness = self.liveness
        if not any(isinstance(node, WORK) for statement in run for node in ast.walk(statement)):
            return [*run]
        alone = liveness.bound(run, NONE)
        if alone is None and not isinstance(run[-1], ast.Return):
            return [*run]
        returns = alone is None
        given = NONE if returns else liveness.used(*run).binds & after
        taken = liveness.live(run, NONE, None) | (given - (alone or NONE))
        if not taken <= bound:
            return [*run]
        return [self.call(run, sorted(taken), sorted(given), returns)]

    def call(self, run: Sequence[ast.stmt], taken: list[str], given: list[str],
             returns: bool) -> ast.stmt:  # fmt: skip
        name = f"__wengert_{len(self.pieces)}"
        self.pieces[name] = self.wrap(self.piece(run, taken, given, returns))
        call = ast.Call(ast.Name(name, ast.Load()), [ast.Name(n, ast.Load()) for n in taken], [])
        statement: ast.stmt = ast.Expr(call)
        if returns:
            statement = ast.Return(call)
        elif given:
            statement = ast.Assign([together(given, ast.Store())], call)
        ast.copy_location(statement, run[0])
        return ast.fix_missing_locations(statement)

    def piece(self, run: Sequence[ast.stmt], taken: list[str], given: list[str],
              returns: bool) -> types.FunctionType:  # fmt: skip
        """The function that does these statements."""
        body = [*self.declared, *run]
        if not returns and given:
            last = ast.Return(together(given, ast.Load()))
            body.append(ast.copy_location(last, run[-1]))
        arguments = ast.arguments(posonlyargs=[], args=[ast.arg(name) for name in taken],
                                  kwonlyargs=[], kw_defaults=[], defaults=[])  # fmt: skip
        tree = ast.FunctionDef(name=self.tree.name, args=arguments, body=body, decorator_list=[])
        ast.copy_location(tree, run[0])
        made = function_of(self.function, tree, {})
        if made is None:
            raise Unfit
        made.__module__, made.__qualname__ = self.function.__module__, self.function.__qualname__
        made.__name__ = f"{self.tree.name}, lines {run[0].lineno} to {run[-1].end_lineno}"
        return made


def looks_back(node: ast.AST) -> bool:
    """Is it the name of such a function?"""
    if isinstance(node, ast.Name):
        return node.id in LOOKS_BACK | FRAMES
    return isinstance(node, ast.Attribute) and node.attr in FRAMES


def within(place: Place, statement: ast.stmt) -> bool:
    around = place_of(statement)
    return around[:2] <= place[:2] and place[2:] <= around[2:]


def together(names: list[str], context: ast.expr_context) -> ast.expr:
    several: list[ast.expr] = [ast.Name(name, context) for name in names]
    return several[0] if len(several) == 1 else ast.Tuple(several, context)


def leaves(node: ast.AST, in_loop: bool = False) -> bool:
    """Does it leave the block that it is in, or say whose names are meant?"""
    if isinstance(node, ast.Return | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.Break | ast.Continue):
        return not in_loop
    if isinstance(node, ast.FunctionDef | ast.expr):
        return False
    rounds = node.body if isinstance(node, ast.For | ast.While) else []
    return any(leaves(inner, True) for inner in rounds) or any(
        leaves(inner, in_loop) for inner in ast.iter_child_nodes(node) if inner not in rounds
    )
