"""Where a value that Python was given goes: straight into what the function returns, or elsewhere.

`return loss.item()` needs no Python at later calls, if nothing else is done with the number.
Whether that is so is read off the bytecode that follows the call of `item()`.

Note [Straight to the caller]
    The instructions are run on a stack that knows only where the value lies. It may be stored in
    local variables, put into tuples, lists and dicts, dropped, and returned, also by way of calling
    functions. Both sides of a branch are followed. Anything else (an operand, an argument, an
    attribute, a loop, an instruction not known here) means that Python may look at the value.
"""

from __future__ import annotations

import dis
import sys
from bisect import bisect_right
from types import CodeType, FrameType
from typing import Any

from .ir.places import is_ours
from .tracer.recorded import Refused

VALUE = object()  # the value that is followed
MAX_STEPS = 2000

# instructions that leave values alone: how many they take, how many they give
_EFFECTS: dict[str, Any] = {
    "RESUME": (0, 0), "NOP": (0, 0), "PRECALL": (0, 0), "KW_NAMES": (0, 0), "CACHE": (0, 0),
    "EXTENDED_ARG": (0, 0), "NOT_TAKEN": (0, 0), "PUSH_NULL": (0, 1), "LOAD_DEREF": (0, 1),
    "LOAD_CLOSURE": (0, 1), "MAKE_CELL": (0, 0), "COPY_FREE_VARS": (0, 0),
    "LOAD_GLOBAL": lambda arg: (0, 1 + (arg & 1)),
    "LOAD_METHOD": (1, 2), "LOAD_ATTR": (1, 1), "STORE_ATTR": (2, 0), "STORE_GLOBAL": (1, 0),
    "STORE_DEREF": (1, 0), "BINARY_OP": (2, 1), "BINARY_SUBSCR": (2, 1), "STORE_SUBSCR": (3, 0),
    "COMPARE_OP": (2, 1), "IS_OP": (2, 1), "CONTAINS_OP": (2, 1), "UNARY_NEGATIVE": (1, 1),
    "UNARY_NOT": (1, 1), "UNARY_INVERT": (1, 1), "TO_BOOL": (1, 1),
    "FORMAT_VALUE": lambda arg: (1 + (arg & 4 == 4), 1), "FORMAT_SIMPLE": (1, 1),
    "FORMAT_WITH_SPEC": (2, 1), "CONVERT_VALUE": (1, 1), "BUILD_STRING": lambda arg: (arg, 1),
    "CALL": lambda arg: (arg + 2, 1), "CALL_KW": lambda arg: (arg + 3, 1),
    "DELETE_FAST": (0, 0), "GET_ITER": (1, 1), "END_FOR": (0, 0),
    "UNPACK_SEQUENCE": lambda arg: (1, arg), "BUILD_SLICE": lambda arg: (arg, 1),
    "UNPACK_EX": lambda arg: (1, (arg & 255) + 1 + (arg >> 8)), "BINARY_SLICE": (3, 1),
    "STORE_SLICE": (4, 0), "DELETE_SUBSCR": (2, 0), "BUILD_SET": lambda arg: (arg, 1),
    "LIST_EXTEND": (1, 0), "LIST_TO_TUPLE": (1, 1), "LOAD_ASSERTION_ERROR": (0, 1),
    "UNARY_POSITIVE": (1, 1), "MAKE_FUNCTION": lambda arg: (1 + (arg & 15).bit_count(), 1),
    "CALL_FUNCTION_EX": lambda arg: (3 + (arg & 1), 1),
}  # fmt: skip
if sys.version_info >= (3, 12):
    _EFFECTS["LOAD_ATTR"] = lambda arg: (1, 1 + (arg & 1))
if sys.version_info < (3, 11):  # calls have no null below the function, operators have names
    _EFFECTS |= {
        "MAKE_FUNCTION": lambda arg: (2 + (arg & 15).bit_count(), 1),
        "CALL_FUNCTION_EX": lambda arg: (2 + (arg & 1), 1),
        "LOAD_GLOBAL": (0, 1), "POP_BLOCK": (0, 0), "CALL_METHOD": lambda arg: (arg + 2, 1),
        "CALL_FUNCTION": lambda arg: (arg + 1, 1), "CALL_FUNCTION_KW": lambda arg: (arg + 2, 1),
        **{f"{kind}_{word}": (2, 1) for kind in ("BINARY", "INPLACE")
           for word in ("ADD", "SUBTRACT", "MULTIPLY", "TRUE_DIVIDE", "FLOOR_DIVIDE", "POWER",
                        "MODULO", "MATRIX_MULTIPLY")},
    }  # fmt: skip
_BACK = {"JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
_JUMPS = {"POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_NONE",
          "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE",
          "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_FALSE",
          "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_NONE",
          "POP_JUMP_BACKWARD_IF_NOT_NONE"}  # fmt: skip


class Elsewhere(Exception):
    """The value may be looked at by Python."""


class Reached(Exception):
    """A walk has come to its goal."""

    def __init__(self, stack: list[Any]):
        self.stack = stack


class Constant:
    """A constant on the stack, which may be the key of a dict."""

    def __init__(self, value: Any):
        self.value = value


class Box:
    """A container that only the function has which is followed, or had until it was `shared`."""

    def __init__(self) -> None:
        self.holds = self.shared = False


class Walk:
    """Follows the value through one function, from after an instruction."""

    def __init__(self, code: CodeType):
        self.instructions = list(dis.get_instructions(code))
        self.index = {i.offset: k for k, i in enumerate(self.instructions)}
        self.offsets = list(self.index)
        self.returned: list[Any] = []
        self.steps = 0
        self.goal = -1  # a position where it stops

    def after(self, offset: int) -> int:
        """The position after the instruction at work; the offset may lie in its inline cache."""
        return bisect_right(self.offsets, offset)

    def run(self, position: int, stack: list[Any], names: dict[str, Any]) -> None:
        while True:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Elsewhere
            if position == self.goal:
                raise Reached(stack)
            step = self.instructions[position]
            position += 1
            kind, arg = step.opname, step.arg or 0
            if kind == "RETURN_VALUE":
                self.returned.append(pop(stack))
                return
            if kind in ("RETURN_CONST", "RAISE_VARARGS", "RERAISE"):
                return
            if kind == "JUMP_FORWARD":
                position = self.index[step.argval]
            elif kind in _BACK:
                position = self.index[step.argval]
                if not self.is_new(position, stack, names):
                    return
            elif kind in _JUMPS:
                self.decide(pop(stack))
                target = self.index[step.argval]
                if target >= position or self.is_new(target, stack, names):
                    self.run(target, list(stack), dict(names))
            elif kind == "FOR_ITER":
                unused(stack[-1] if stack else None)
                self.run(self.index[step.argval], stack[:-1], dict(names))
                stack.append(None)
            elif not self.moves(kind, arg, step.argval, stack, names):
                self.other(kind, arg, stack)

    def decide(self, item: Any) -> None:
        """The truth of an item decides what is done."""
        unused(item)

    def is_new(self, position: int, stack: list[Any], names: dict[str, Any]) -> bool:
        """Is a place to which a loop goes back not yet seen with such a stack?"""
        raise Elsewhere

    def moves(self, kind: str, arg: int, what: Any, stack: list[Any], names: Any) -> bool:
        """Instructions that move the value without looking at it."""
        if kind == "LOAD_CONST":
            stack.append(Constant(what))
        elif kind in ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"):
            stack.append(names.get(what))
        elif kind == "LOAD_FAST_LOAD_FAST":
            stack.extend(names.get(name) for name in what)
        elif kind == "STORE_FAST":
            names[what] = pop(stack)
        elif kind == "STORE_FAST_LOAD_FAST":
            names[what[0]] = pop(stack)
            stack.append(names.get(what[1]))
        elif kind == "POP_TOP":
            pop(stack)
        elif kind in ("COPY", "DUP_TOP"):
            stack.append(deep(stack, arg or 1)[-(arg or 1)])
        elif kind in ("SWAP", "ROT_TWO"):  # also where a `with` ends, whose exit lies below
            depth = arg or 2
            deep(stack, depth)
            stack[-1], stack[-depth] = stack[-depth], stack[-1]
        elif kind in ("BUILD_TUPLE", "BUILD_LIST"):
            stack.append(container(range(arg), popped(stack, arg)))
        elif kind == "BUILD_MAP":
            parts = popped(stack, 2 * arg)
            stack.append(container(parts[::2], parts[1::2]))
        elif kind == "BUILD_CONST_KEY_MAP":
            keys = pop(stack)
            stack.append(container(keys.value, popped(stack, arg)))
        else:
            return False
        return True

    def other(self, kind: str, arg: int, stack: list[Any]) -> None:
        effect = _EFFECTS.get(kind)
        if effect is None:
            raise Elsewhere
        takes, gives = effect(arg) if callable(effect) else effect
        for item in popped(stack, takes):
            unused(item)
        stack.extend([None] * gives)


def pop(stack: list[Any]) -> Any:
    """The top of the stack; what lay there before the value came is nothing of ours."""
    return stack.pop() if stack else None


def deep(stack: list[Any], count: int) -> list[Any]:
    """The stack with at least so many items; see `pop`."""
    stack[:0] = [None] * (count - len(stack))
    return stack


def popped(stack: list[Any], count: int) -> list[Any]:
    return [pop(stack) for _ in range(count)][::-1]


def has_value(item: Any) -> bool:
    return item is VALUE or isinstance(item, dict) or (isinstance(item, Box) and item.holds)


def unused(item: Any) -> None:
    if has_value(item):
        raise Elsewhere
    if isinstance(item, Box):
        item.shared = True


def container(keys: Any, items: list[Any]) -> Any:
    """A tuple, list or dict as its members by index or key; None if the value is not in it."""
    for item in items:
        if isinstance(item, Box):
            item.shared = True
    if not any(map(has_value, items)):
        return None
    keys = [key.value if isinstance(key, Constant) else key for key in keys]
    if None in keys:
        raise Elsewhere
    return dict(zip(keys, items))


def members(item: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of the value in an item."""
    if item is VALUE:
        return [path]
    if isinstance(item, dict):
        return [p for key, part in item.items() for p in members(part, (*path, key))]
    return []


def places_returned(how: str, value: Any, last: CodeType) -> list[tuple[Any, ...]]:
    """Where a value that the user's code is about to get lies in what the call returns to `last`.

    Paths of indices and keys, of all branches; none where Python may look at the value.
    """
    frame = users_frame()
    if frame is None or not is_sure(how, value, frame):
        return []
    item, ends = VALUE, []
    while frame is not None and frame.f_code is not last:
        walk = Walk(frame.f_code)
        next_one = walk.after(frame.f_lasti)
        if not walk.instructions[next_one - 1].opname.startswith("CALL"):
            return []
        try:
            walk.run(next_one, [item], {})
        except Elsewhere:
            return []
        ends = [end for end in walk.returned if has_value(end)]
        if len(ends) != 1 and (not ends or frame.f_back is None or frame.f_back.f_code is not last):
            return []
        item, frame = ends[0], frame.f_back
    return [] if frame is None else [path for end in ends for path in members(end)]


def users_frame() -> FrameType | None:
    """The frame of the code that asked for a value."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_sure(how: str, value: Any, frame: FrameType) -> bool:
    """Is the value known by its identity, or by the method called right here?

    Something in between (`sum(map(Tensor.item, x))`) would return another object. Small ints are
    one object each, whoever makes them.
    """
    if type(value) is not int:
        return True
    before = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti]
    names = [i for i in before[-3:-1] if i.opname != "PRECALL"]
    return names[-1].opname in ("LOAD_METHOD", "LOAD_ATTR") and names[-1].argval == how


class Handed:
    """A value Python got: of which tensor, by which method, and where it may have been returned.

    `problem` says why the body must run again if it was not.
    """

    def __init__(self, tensor: Any, how: str, value: Any, places: Any, problem: str):
        self.tensor, self.how, self.value = tensor, how, value
        self.places: list[tuple[Any, ...]] = places
        self.problem = problem


def with_handed(output: Any, handed: list[Handed]) -> Any:
    """The output with values that Python got replaced by what they are made of."""
    for item in handed:
        path = next((p for p in item.places if at(output, p) is item.value), None)
        if path is None:
            raise Refused(item.problem)
        output = replaced(output, path, item)
    return output


def at(output: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        try:
            output = output[key]
        except (TypeError, LookupError):
            return None
    return output


def replaced(output: Any, path: tuple[Any, ...], item: Any) -> Any:
    """`output` with `item` at the end of a path."""
    if not path:
        return item
    inner = replaced(output[path[0]], path[1:], item)
    if isinstance(output, dict):
        return {key: inner if key == path[0] else part for key, part in output.items()}
    return type(output)(inner if k == path[0] else part for k, part in enumerate(output))
