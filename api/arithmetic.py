"""Where a number that a tensor gave goes: into arithmetic, comparisons and results, or elsewhere.

See Note [Numbers of tensors] in tracer/recorded_numbers.py, and Note [Straight to the caller]. What
is computed of the number is not followed: it is looked at when it is made.

Note [Containers of one's own]
    `logs["loss"] = loss.item()` and `losses.append(loss.item())` put the number into a dict or list
    that the function returns, or drops. That is no look at it, if nobody else has the container.
    What the code did with it before is not read off the bytecode: the count of references says
    whether there is another one. What it does from then on is followed, also where a list comes
    from a comprehension (`[loss.item() for loss in losses]`), and is given to `sum` or `len`.

Note [Questions of math]
    `math.isfinite(loss.item())` asks the number for a float: that is a branch on a value. Python
    does not say who asks, but the code in sight does.
"""

from __future__ import annotations

import dis
import math
import sys
from collections import ChainMap, Counter
from itertools import dropwhile
from operator import not_
from types import BuiltinFunctionType, CodeType, FrameType
from typing import Any

from .returns import (
    VALUE,
    Box,
    Constant,
    Elsewhere,
    Reached,
    Walk,
    has_value,
    popped,
    unused,
    users_frame,
)

OPERATORS = {"BINARY_OP": 2, "COMPARE_OP": 2, "UNARY_NEGATIVE": 1, "UNARY_NOT": 1, "TO_BOOL": 1}
OPERATORS |= {f"{kind}_{word}": 2 for kind in ("BINARY", "INPLACE")
              for word in ("ADD", "SUBTRACT", "MULTIPLY", "TRUE_DIVIDE", "FLOOR_DIVIDE", "POWER",
                           "MODULO")}  # fmt: skip
CALLS = {"CALL", "CALL_METHOD"}
METHODS_ARE_ATTRIBUTES = sys.version_info >= (3, 12)
SUBSCRIPT = 26  # an operator of Python 3.14
APPEND = object()  # the method of a container of one's own, on the stack
OF_LISTS = {sum, len}  # which only reckon with what is in a list
QUESTIONS = {math.isfinite: "isfinite", math.isnan: "isnan", math.isinf: "isinf"}
ADDS_UP = sys.version_info < (3, 12)  # from then on `sum` rounds floats in another way
SEES_VARIABLES = {"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"}


class Local:
    """What a variable holds, on a stack that is not known otherwise."""

    def __init__(self, name: str):
        self.name = name


class Reckoning(Walk):
    """Follows a number through the function of a frame, loops included."""

    def __init__(self, frame: FrameType):
        code = frame.f_code
        if getattr(code, "co_exceptiontable", None) or SEES_VARIABLES.intersection(code.co_names):
            raise Elsewhere  # what follows an exception is not seen here
        super().__init__(code)
        self.outside = ChainMap(frame.f_globals, frame.f_builtins)
        self.states: set[Any] = set()

    def behind(self, frame: FrameType) -> int:
        """The position behind what the frame does; Python 3.11 may call where it prepares to."""
        position = self.after(frame.f_lasti)
        return position + (self.instructions[position - 1].opname == "PRECALL")

    def decide(self, item: Any) -> None:
        if item is not VALUE:
            super().decide(item)

    def is_new(self, position: int, stack: list[Any], names: dict[str, Any]) -> bool:
        held = list(dropwhile(not_, map(how_held, stack)))
        variables = frozenset((name, how_held(item)) for name, item in names.items())
        state = (position, tuple(held), frozenset(v for v in variables if v[1]))
        known = state in self.states
        self.states.add(state)
        return not known

    def moves(self, kind: str, arg: int, what: Any, stack: list[Any], names: Any) -> bool:
        if kind == "LOAD_GLOBAL" and is_followed(self.outside.get(what)):
            self.other(kind, arg, stack)
            stack[-1] = Constant(self.outside[what])
        elif kind in ("LOAD_METHOD", "LOAD_ATTR") and stack and is_question(stack[-1], what):
            question = getattr(math, what)
            self.other(kind, arg, stack)
            stack[-1] = Constant(question)
        elif kind == "CALL" and len(stack) > arg and is_one_of(stack[-arg - 1], QUESTIONS):
            for item in popped(stack, arg + 2)[2:]:
                self.decide(item)
            stack.append(None)
        elif kind == "CALL" and arg == 1 and len(stack) > 1 and is_one_of(stack[-2], OF_LISTS):
            function, item = popped(stack, 3)[1:]
            if not isinstance(item, Box) or (function.value is sum and not ADDS_UP):
                unused(item)
            stack.append(None)
        elif kind == "LIST_APPEND":
            item = popped(stack, 1)[0]
            put(stack[-arg] if len(stack) >= arg else None, item)
        elif kind == "KW_NAMES" and any(map(is_choice, stack)):
            raise Elsewhere  # `key=` is given the number
        elif kind == "CALL" and len(stack) > arg and is_choice(stack[-arg - 1]):
            chosen = popped(stack, arg + 2)[2:]
            stack.append(VALUE if VALUE in chosen else None)
            for item in chosen:
                self.decide(item)
        elif kind == "STORE_SUBSCR" and len(stack) > 2 and isinstance(stack[-2], Box):
            value, box, key = popped(stack, 3)
            unused(key)
            put(box, value)
        elif kind in CALLS and arg == 1 and len(stack) > 2 and stack[-3] is APPEND:
            _, box, value = popped(stack, 3)
            put(box, value)
            stack.append(None)
        elif is_append(kind, arg, what) and stack and isinstance(stack[-1], Box | Local):
            stack.insert(-1, APPEND)
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


class Before(Reckoning):
    """Walks to where the number is made, and knows which variables lie on the stack there."""

    def moves(self, kind: str, arg: int, what: Any, stack: list[Any], names: Any) -> bool:
        if kind == "LOAD_FAST":
            stack.append(Local(what))
            return True
        if kind == "BUILD_LIST" and arg == 0:
            stack.append(Box())
            return True
        return super().moves(kind, arg, what, stack, names)


def how_held(item: Any) -> Any:
    """What a walk must know of an item to tell states apart; None of most."""
    if isinstance(item, Box):
        return id(item), item.holds, item.shared
    return "value" if item is VALUE else "inside" if has_value(item) else None


def put(box: Any, item: Any) -> None:
    """An item is put into a container."""
    if not isinstance(box, Box) or box.shared or not has_value(item):
        unused(item)
    else:
        box.holds = True


def is_append(kind: str, arg: int, what: Any) -> bool:
    """Does the instruction load the method to call it?"""
    method = kind == "LOAD_METHOD" or (kind == "LOAD_ATTR" and arg & 1 and METHODS_ARE_ATTRIBUTES)
    return method and what == "append"  # type: ignore[no-any-return]


def own_containers(frame: FrameType, stack: list[Any]) -> dict[str, Any]:
    """Variables with lists and dicts that nobody else has; see Note [Containers of one's own]."""
    variables, found = frame.f_locals, {}
    loaded = Counter(item.name for item in stack if isinstance(item, Local))
    for name in variables:
        value = variables[name]
        # in the frame, in its dict, here, in the call; and on the stack
        if type(value) in (list, dict) and sys.getrefcount(value) == 4 + loaded[name]:
            found[name] = Box()
    return found


def is_followed(value: Any) -> bool:
    """Is it a function, or the module, whose calls tell what becomes of a number?"""
    return chooses(value) or value is math or (
        isinstance(value, BuiltinFunctionType) and (value in QUESTIONS or value in OF_LISTS)
    )  # fmt: skip


def is_one_of(item: Any, functions: Any) -> bool:
    """Is it one of these functions, on the stack?"""
    return isinstance(item, Constant) and isinstance(item.value, BuiltinFunctionType) and (
        item.value in functions)  # fmt: skip


def is_question(item: Any, name: str) -> bool:
    """Is it the module, of which one of the functions is taken?"""
    return isinstance(item, Constant) and item.value is math and name in QUESTIONS.values()


def question_asked() -> str:
    """Which function asks a number for a float; see Note [Questions of math]."""
    frame = users_frame()
    if frame is None or sys.version_info >= (3, 13):
        return ""
    asked = callee(frame)
    return QUESTIONS.get(asked, "") if isinstance(asked, BuiltinFunctionType) else ""


def callee(frame: FrameType) -> Any:
    """The function that a frame calls now, with one argument; None where that is not known."""
    try:
        walk = Before(frame)
        position = walk.behind(frame)
        call = walk.instructions[position - 1]
        walk.goal = position - 1
        if call.opname == "CALL" and call.arg == 1:
            walk.run(0, [], {})
    except Reached as reached:
        function = reached.stack[-2] if len(reached.stack) > 1 else None
        return function.value if isinstance(function, Constant) else None
    except Elsewhere:
        pass
    return None


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
        position = walk.behind(frame)
        if not made_here(how, walk.instructions[:position], frame):
            return False
        item: Any = VALUE
        while True:
            stack = stack_before(position, frame)
            boxes = own_containers(frame, stack)
            stack = [boxes.get(i.name) if isinstance(i, Local) else i for i in stack]
            walk.run(position, [*stack, item], boxes)
            ends = [end for end in walk.returned if has_value(end)]
            outer = frame.f_back
            if not ends or (outer is not None and outer.f_code is last):
                return True
            if frame.f_code.co_name != "<listcomp>" or outer is None:
                return False
            frame, item = outer, ends[0]  # where the list is, which nobody else has
            walk = Reckoning(frame)
            position = walk.behind(frame)
    except Elsewhere:
        return False


def stack_before(position: int, frame: FrameType) -> list[Any]:
    """What lies below the result of the instruction before that position, as far as it is known."""
    walk = Before(frame)
    walk.goal = position
    try:
        walk.run(0, [], {})
    except Reached as reached:
        return reached.stack[:-1]
    except Elsewhere:
        pass
    return []


def made_here(how: str, before: list[dis.Instruction], frame: FrameType) -> bool:
    """Is the last instruction a call of that method, or an operator, whose result is the number?

    Of the numbers that `sum` adds up nobody sees but the last.
    """
    last = before[-1].opname
    if not how:
        return last in OPERATORS or (last == "CALL" and ADDS_UP and callee(frame) is sum)
    names = [i for i in before[-4:-1] if i.opname not in ("PRECALL", "CACHE")]
    return last.startswith("CALL") and bool(names) and names[-1].argval == how and (
        names[-1].opname in ("LOAD_METHOD", "LOAD_ATTR"))  # fmt: skip
