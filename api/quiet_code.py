"""Whether code can run ahead of time unnoticed: does it touch anything but what it is given?

The backward of a custom Function is recorded when its forward is. That must not be seen, so code
that may print, count or keep books runs at its own time instead.
"""

from __future__ import annotations

import builtins
import dis
import itertools
import types
from functools import lru_cache
from typing import Any

from .plain import PLAIN, is_library
from .tracer.tensor import Tensor

LOUD = {"print", "open", "input", "exec", "eval", "next", "setattr", "delattr", "globals", "vars"}
LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
STORES = {"STORE_GLOBAL", "DELETE_GLOBAL"}


def is_quiet(function: Any, seen: set[int] | None = None) -> bool:
    """Does a function of the user's only compute?"""
    seen = set() if seen is None else seen
    function = getattr(function, "__wrapped__", function)
    if id(function) in seen or not isinstance(function, types.FunctionType):
        return True
    seen.add(id(function))
    if is_library(function.__module__):
        return True
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    return all(is_quiet_code(code, function.__globals__, cells, seen)
               for code in codes_in(function.__code__))  # fmt: skip


def is_quiet_code(code: types.CodeType, space: Any, cells: Any, seen: set[int]) -> bool:
    if "backward" in code.co_names:  # it leaves gradients in leaves
        return False
    for step in dis.get_instructions(code):
        name = step.argval
        if step.opname in STORES or (step.opname == "STORE_DEREF" and name in cells):
            return False
        if step.opname in LOADS:
            value = space.get(name, getattr(builtins, name, None))
        elif step.opname == "LOAD_DEREF" and name in cells:
            value = getattr(cells[name], "cell_contents", None)
        else:
            continue
        if name in LOUD or not is_harmless(value, code.co_names, seen):
            return False
        if isinstance(value, Tensor) and writes(code):
            return False
        if isinstance(value, type | types.FunctionType) and keeps_books(code) and not (
                is_library(value.__module__)):  # fmt: skip
            return False
    return True


def writes(code: types.CodeType) -> bool:
    """May code write into tensors?"""
    stores = any(step.opname == "STORE_SUBSCR" for step in dis.get_instructions(code))
    return stores or any(name.endswith("_") and name[-2:] != "__" for name in code.co_names)


def keeps_books(code: types.CodeType) -> bool:
    """May code set attributes of something but its first argument, the context?"""
    steps = list(dis.get_instructions(code))
    context = code.co_varnames[:1]
    return any(step.opname in ("STORE_ATTR", "DELETE_ATTR") and not (
        before.opname.startswith("LOAD_FAST") and before.argval in context)
        for before, step in itertools.pairwise(steps))  # fmt: skip


def is_harmless(value: Any, names: tuple[str, ...], seen: set[int]) -> bool:
    """A value that can be used without leaving anything behind."""
    if isinstance(value, (*PLAIN, Tensor, types.ModuleType, types.BuiltinFunctionType)):
        return not isinstance(value, types.ModuleType) or is_library(value.__name__)
    if isinstance(value, types.FunctionType):
        return is_quiet(value, seen)
    if isinstance(value, type):
        if is_library(value.__module__):
            return True
        kept = [getattr(value, name, None) for name in names if name in vars(value)]
        return all(is_harmless(v, names, seen) for v in kept)
    return is_library(type(value).__module__) and not isinstance(value, list | dict | set)


@lru_cache(maxsize=4096)
def globals_read(code: types.CodeType) -> tuple[str, ...]:
    """The names that code looks up outside itself; `co_names` has those of attributes too."""
    return tuple({step.argval for step in dis.get_instructions(code) if step.opname in LOADS})


@lru_cache(maxsize=4096)
def attributes_set(code: types.CodeType) -> frozenset[str]:
    """The names of attributes that code sets."""
    steps = (step for part in codes_in(code) for step in dis.get_instructions(part))
    return frozenset(step.argval for step in steps if step.opname == "STORE_ATTR")


def set_by_methods(cls: type) -> set[str]:
    """The names of attributes that methods of a user's class set, but for what makes objects."""
    functions = [function for base in cls.__mro__ if not is_library(base.__module__)
                 for name, member in vars(base).items() if name != "__init__"
                 if (function := unwrapped(member)) is not None]  # fmt: skip
    return {name for function in functions for name in attributes_set(function.__code__)}


def unwrapped(member: Any) -> types.FunctionType | None:
    """The function behind what decorators made of it; None if there is none."""
    while (inner := getattr(member, "__wrapped__", None)) is not None:
        member = inner
    return member if isinstance(member, types.FunctionType) else None


def codes_in(code: types.CodeType) -> list[types.CodeType]:
    """A code object and those within it."""
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return [code, *(c for part in inner for c in codes_in(part))]
