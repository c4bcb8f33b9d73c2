"""Where a number that a tensor gave goes: into arithmetic, comparisons and results, or elsewhere.

See Note [Numbers of tensors] in tracer/recorded_numbers.py, and Note [Straight to the caller]. What
is computed of the number is not followed: it is looked at when it is made.
"""

from __future__ import annotations

import dis
import sys
from collections import ChainMap
from types import CodeType, FrameType
from typing import Any

from .returns import VALUE, Constant, Elsewhere, Reached, Walk, has_value, popped, users_frame

OPERATORS = {"BINARY_OP": 2, "COMPARE_OP": 2, "UNARY_NEGATIVE": 1, "UNARY_NOT": 1, "TO_BOOL": 1}
OPERATORS |= {f"{kind}_{word}": 2 for kind in ("BINARY", "INPLACE")
              for word in ("ADD", "SUBTRACT", "MULTIPLY", "TRUE_DIVIDE", "FLOOR_DIVIDE", "POWER",
                           "MODULO")}  # fmt: skip
SUBSCRIPT = 26  # an operator of Python 3.14
SEES_VARIABLES = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"}


class Reckoning(Walk):
    """Follows a number through the function of a frame, loops included."""

    def __init__(self, frame: FrameType):
        code = frame.f_code
        if getattr(code, "co_exceptiontable", None) or SEES_VARIABLES.intersection(code.co_names):
            raise Elsewhere  # what follows an exception is not seen here
        super().__init__(code)
        self.outside = ChainMap(frame.f_globals, frame.f_builtins)
        self.states: set[Any] = set()

    def decide(self, item: Any) -> None:
        if item is not VALUE:
            super().decide(item)

    def is_new(self, position: int, stack: list[Any], names: dict[str, Any]) -> bool:
        held = [item is VALUE for item in stack]
        state = (position, tuple(held[held.index(True) :] if True in held else ()),
                 frozenset(name for name, item in names.items() if item is VALUE))  # fmt: skip
        if any(isinstance(item, dict) for item in (*stack, *names.values())):
            raise Elsewhere  # a container in a loop
        known = state in self.states
        self.states.add(state)
        return not known

    def moves(self, kind: str, arg: int, what: Any, stack: list[Any], names: Any) -> bool:
        if kind == "LOAD_GLOBAL" and chooses(self.outside.get(what)):
            self.other(kind, arg, stack)
            stack[-1] = Constant(self.outside[what])
        elif kind == "KW_NAMES" and any(map(is_choice, stack)):
            raise Elsewhere  # `key=` is given the number
        elif kind == "CALL" and len(stack) > arg and is_choice(stack[-arg - 1]):
            chosen = popped(stack, arg + 2)[2:]
            stack.append(VALUE if VALUE in chosen else None)
            for item in chosen:
                self.decide(item)
        else:
            return super().moves(kind, arg, what, stack, names)
        return True

    def other(self, kind: str, arg: int, stack: list[Any]) -> None:
        takes = OPERATORS.get(kind, 0)
        if not takes or (kind == "BINARY_OP" and arg == SUBSCRIPT):
            super().other(kind, arg, stack)
            return
        for item in popped(stack, takes):
            self.decide(item)
        stack.append(None)


def chooses(function: Any) -> bool:
    """Does it give one of its arguments, by comparing them?"""
    return function is min or function is max


def is_choice(item: Any) -> bool:
    """Is it such a function, on the stack?"""
    return isinstance(item, Constant) and chooses(item.value)


def is_arithmetic(how: str, last: CodeType) -> bool:
    """Is a number that the user's code is about to get, by a method `how` or an operator, only
    reckoned with, compared and returned to `last`?"""
    frame = users_frame()
    if frame is None or sys.version_info >= (3, 13):
        return False
    try:
        walk = Reckoning(frame)
        position = walk.after(frame.f_lasti)
        if not made_here(how, walk.instructions[:position]):
            return False
        walk.run(position, [*stack_before(position, frame), VALUE], {})
    except Elsewhere:
        return False
    outer = frame.f_back
    return not any(map(has_value, walk.returned)) or (outer is not None and outer.f_code is last)


def stack_before(position: int, frame: FrameType) -> list[Any]:
    """What lies below the result of the instruction before that position, as far as it is known."""
    walk = Reckoning(frame)
    walk.goal = position
    try:
        walk.run(0, [], {})
    except Reached as reached:
        return reached.stack[:-1]
    except Elsewhere:
        pass
    return []


def made_here(how: str, before: list[dis.Instruction]) -> bool:
    """Is the last instruction a call of that method, or an operator, whose result is the number?"""
    last = before[-1].opname
    if not how:
        return last in OPERATORS
    names = [i for i in before[-4:-1] if i.opname not in ("PRECALL", "CACHE")]
    return last.startswith("CALL") and bool(names) and names[-1].argval == how and (
        names[-1].opname in ("LOAD_METHOD", "LOAD_ATTR"))  # fmt: skip
