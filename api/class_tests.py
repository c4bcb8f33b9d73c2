"""Code that looks at the classes of values, found by reading its instructions.

While recording, a float argument is a `RunTimeNumber`, which is a tensor; in a window, a tensor is
of a twin of its class. `isinstance(x, float)` sees neither, but `type(x)`, and for numbers
`isinstance(x, torch.Tensor)`, `hasattr` and encoders written in C, would. So a body that asks gets
plain floats, and is recorded for their values; and in windows it runs eagerly. So it is with
symbolic sizes: a body that asks is recorded for each.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterable, Iterator
from typing import Any

from .quiet_code import LOADS, codes_in

ANY_LOADS = LOADS | {"LOAD_ATTR", "LOAD_METHOD"}  # of globals and of attributes
ENCODERS = {"json", "pickle", "marshal"}  # modules that know floats by their class alone
# what is written in C and takes sizes for what they are not, beside these
COUNTERS = {"deque", "timedelta", "datetime", "Decimal", "decimal", "statistics", "ldexp"}
TENSORS = {"Tensor", "Parameter", "is_tensor", "hasattr"}


def asks_for_types(functions: Iterable[types.FunctionType]) -> bool:
    """Does one look at the class of a value by type()?"""
    return any(next(types_asked(code), None) is not None
               for f in functions if "type" not in f.__globals__
               for code in codes_in(f.__code__))  # fmt: skip


def tells_sizes(functions: Iterable[types.FunctionType], tensors: set[str]) -> bool:
    """May one tell a symbolic size from an int?

    `tensors` are arguments of the first of them that are known to be tensors.
    """
    for position, function in enumerate(functions):
        known = tensors if position == 0 else set()
        asks = "type" not in function.__globals__
        for code in codes_in(function.__code__):
            if not (ENCODERS | COUNTERS).isdisjoint((*code.co_names, *code.co_freevars)):
                return True
            if asks and any(asked not in known for asked in types_asked(code)):
                return True
    return False


def tells_numbers(functions: Iterable[types.FunctionType], tensors: set[str]) -> bool:
    """May one tell a run-time number from a float?

    `tensors` are arguments of the first of them that are known to be tensors.
    """
    functions = list(functions)
    if asks_for_types(functions):
        return True
    for position, function in enumerate(functions):
        known = tensors if position == 0 else set()
        for code in codes_in(function.__code__):
            names = {*code.co_names, *code.co_freevars}
            if names & ENCODERS or (names & TENSORS and any(tensors_asked(code, known))):
                return True
    return False


def compares_identity(functions: Iterable[types.FunctionType], tensors: set[str]) -> bool:
    """May one ask whether a number *is* another? `x is None` asks no such thing.

    `tensors` are arguments of the first of them that are known to be tensors.
    """
    return any(
        identities_asked(code, {"self", "cls"} | (tensors if position == 0 else set()))
        for position, function in enumerate(functions) for code in codes_in(function.__code__)
    )  # fmt: skip


def identities_asked(code: types.CodeType, known: set[str]) -> bool:
    """Is there an `is` between values of which neither is a constant, or among `known`?"""
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("PUSH_NULL", "CACHE")]
    for k, step in enumerate(steps):
        if step.opname != "IS_OP":
            continue
        last = steps[k - 1]
        before = steps[k - 2] if last.opname.startswith("LOAD_") else None
        sides = [s for s in (last, before) if s is not None]
        names = [n for s in sides for n in (s.argval if type(s.argval) is tuple else [s.argval])]
        told = any(s.opname == "LOAD_CONST" for s in sides) or any(n in known for n in names)
        if not told:
            return True
    return False


def types_asked(code: types.CodeType) -> Iterator[Any]:
    """What `type` is called with, as far as it is known; that of `self` is no news."""
    for asked, _ in calls_of(code, "type", LOADS):
        if asked not in ("self", "cls"):
            yield asked or code.co_name


def tensors_asked(code: types.CodeType, known: set[str]) -> Iterator[bool]:
    """Values that are asked whether they are tensors, other than those that `known` names."""
    known = known | {"self", "cls"}
    for name in ("is_tensor", "hasattr"):
        for asked, _ in calls_of(code, name, ANY_LOADS):
            yield asked not in known
    for asked, classes in calls_of(code, "isinstance", LOADS):
        yield asked not in known and not TENSORS.isdisjoint(classes)


def calls_of(code: types.CodeType, name: str, loads: set[str]) -> Iterator[tuple[Any, Any]]:
    """For each call of a function of that name: its first argument, if that is a variable, and
    the names that are looked up for the others."""
    if name not in code.co_names:
        return
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("PUSH_NULL", "CACHE")]
    for k, step in enumerate(steps):
        if step.opname in loads and step.argval == name:
            rest = steps[k + 1 :]
            end = next((n for n, s in enumerate(rest) if s.opname.startswith("CALL")), len(rest))
            variable = rest[0].argval if rest and rest[0].opname.startswith("LOAD_FAST") else None
            yield variable, {s.argval for s in rest[:end] if isinstance(s.argval, str)}
