"""Plain values of Python, compared by value; and what belongs to libraries."""

from __future__ import annotations

import gc
import math
import sys
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .ir.dims import is_dim

PLAIN = (int, float, bool, str, type(None), bytes, complex, np.generic, range)
LIBRARIES = {"wengert", "torch", "numpy", "builtins", *sys.stdlib_module_names} - {"__main__"}
EXACT = "exact"  # how keys begin that have the text of a number
OBJECT = object()  # stands for one that is looked at elsewhere


def is_plain(value: Any) -> bool:
    """A plain value, and no object of a user's class with attributes beside it."""
    return isinstance(value, PLAIN) and not getattr(value, "__dict__", None)


def is_library(module: str | None) -> bool:
    if module is not None and not isinstance(module, str):
        return True  # classes made in C may have a descriptor by that name
    return (module or "").split(".")[0] in LIBRARIES


def is_pythons(module: str | None) -> bool:
    """Is it a module of Python's standard library?"""
    return is_library(module) and (module or "").split(".")[0] in sys.stdlib_module_names


def is_installed(file: Any) -> bool:
    """Does a file belong to a package that was installed?"""
    return isinstance(file, str) and ("site-packages" in file or "dist-packages" in file)


def is_built_in(kind: type) -> bool:
    """A class of Python's or NumPy's own, whose objects have no attributes that Python sets."""
    return (kind.__module__ or "").split(".")[0] in ("builtins", "numpy")


def same(a: Any, b: Any) -> bool:
    """Equal, of one type, and of one sign; a NaN is a NaN."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is not float:
        return bool(exact(a) == exact(b))
    if a != a:
        return bool(b != b)
    return a == b and (a != 0 or math.copysign(1, a) == math.copysign(1, b))


def exact(value: Any) -> tuple[Any, ...]:
    """What is equal for values that nobody can tell apart: zeros have signs, a NaN is a NaN."""
    kind = type(value)
    if kind is int or kind is str:
        return kind, value
    if isinstance(value, np.generic | complex | range):  # equal ranges may have other ends
        return EXACT, kind, repr(value)
    if isinstance(value, float):
        return EXACT, kind, float.__repr__(value)
    if isinstance(value, tuple):
        return (kind, *map(exact, value))
    return kind, value


def is_constant(value: Any) -> bool:
    """Can the same object be handed out at every call? Not if it could be changed, or used up."""
    if isinstance(value, FunctionType):
        return value.__closure__ is None
    if isinstance(value, (*PLAIN, tuple, slice, frozenset, type, ModuleType, Enum)):
        return True
    return is_dim(value) or (type(value).__module__ or "").split(".")[0] == "wengert"


def same_items(a: list[Any], b: list[Any]) -> bool:
    """The same objects, or equal plain values."""
    return len(a) == len(b) and all(
        x is y or (isinstance(x, PLAIN) and same(x, y)) for x, y in zip(a, b))  # fmt: skip


def outline(items: Any, names: Any = None, varying: Any = ()) -> dict[Any, Any]:
    """Which names there are, with the values of those that are plain.

    Of those in `varying` it only tells that they are floats; see Note [Varying floats].
    """
    return {k: float if type(v) is float and k in varying else v if is_plain(v) else OBJECT
            for k, v in items.items() if names is None or k in names}  # fmt: skip


def first_change(
    before: dict[Any, Any], now: dict[Any, Any], ordered: bool = True
) -> tuple[Any] | None:
    """A name whose value differs, or its place where their order counts."""
    if before.keys() != now.keys():
        return (next(iter(before.keys() ^ now.keys())),)
    if ordered:
        for old, new in zip(before, now):
            if not same(old, new):
                return (new,)
    for name, value in before.items():
        if not same(value, now[name]):
            return (name,)
    return None


def space_of(cls: type) -> dict[str, Any]:
    """The dict behind a class's `__dict__`."""
    behind = gc.get_referents(cls.__dict__)
    return behind[0] if behind and type(behind[0]) is dict else dict(cls.__dict__)
