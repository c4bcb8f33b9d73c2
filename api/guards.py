"""What a recorded trace relies on beyond its arguments, and how to check it cheaply.

Python values the body can read are found by looking at its code: closure cells and globals that
hold numbers, strings or bools, of the function and of the functions it names; plain attributes of
the modules and objects it reaches. Modules report changes through `epoch`, so a hit costs one
compare.
"""

from __future__ import annotations

import types
from typing import Any

from .ir.bind import epoch

PLAIN = (int, float, bool, str, type(None), bytes)
MAX_OBJECTS = 2000


class Environment:
    """The Python values a function can see: (container, key, value) triples."""

    def __init__(self, function: Any, leaves: list[Any]):
        self.cells: list[tuple[Any, Any]] = []
        self.globals: list[tuple[dict[str, Any], str, Any]] = []
        self.objects: list[tuple[Any, dict[str, Any]]] = []
        self.seen: set[int] = set()
        self.visit(function)
        for leaf in leaves:
            if not isinstance(leaf, PLAIN):
                self.visit(leaf)
        self.epoch = epoch.value

    # --- finding ---

    def visit(self, value: Any) -> None:
        if id(value) in self.seen or len(self.seen) > MAX_OBJECTS:
            return
        self.seen.add(id(value))
        if isinstance(value, types.MethodType):
            self.visit(value.__self__)
            value = value.__func__
        if isinstance(value, types.FunctionType):
            self.visit_function(value)
        elif isinstance(value, list | tuple | set):
            for item in value:
                if not isinstance(item, PLAIN):
                    self.visit(item)
        elif isinstance(value, dict):
            for item in value.values():
                if not isinstance(item, PLAIN):
                    self.visit(item)
        elif is_user_object(value):
            self.visit_object(value)

    def visit_function(self, function: types.FunctionType) -> None:
        if is_library(function.__module__):
            wrapped = getattr(function, "__wrapped__", None)
            if wrapped is None:
                return
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if isinstance(value, PLAIN):
                self.cells.append((cell, value))
            else:
                self.visit(value)
        self.visit_names(function.__code__, function.__globals__)
        for default in function.__defaults__ or ():
            if not isinstance(default, PLAIN):
                self.visit(default)

    def visit_names(self, code: types.CodeType, space: dict[str, Any]) -> None:
        for name in code.co_names:
            if name not in space:
                continue
            value = space[name]
            if isinstance(value, PLAIN):
                self.globals.append((space, name, value))
            elif not isinstance(value, types.ModuleType | type):
                self.visit(value)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.visit_names(constant, space)

    def visit_object(self, value: Any) -> None:
        attributes = getattr(value, "__dict__", None)
        if attributes is None:
            return
        self.objects.append((value, plain_attributes(attributes)))
        for name, item in list(attributes.items()):
            if not isinstance(item, PLAIN) and name != "__dict__":
                self.visit(item)
        if not is_library(type(value).__module__):
            forward = vars(type(value)).get("forward") or vars(type(value)).get("__call__")
            if isinstance(forward, types.FunctionType):
                self.visit(forward)

    # --- checking ---

    def quick_failure(self) -> str | None:
        """Closure cells and globals: no epoch tells of their changes, so each call reads them."""
        for cell, value in self.cells:
            if not same(cell.cell_contents, value):
                return f"a closure variable changed from {value!r} to {cell.cell_contents!r}"
        for space, name, value in self.globals:
            if not same(space.get(name), value):
                return f"global {name} changed from {value!r} to {space.get(name)!r}"
        return None

    def failure(self) -> str | None:
        """Which value changed since, or None."""
        quick = self.quick_failure()
        if quick is not None:
            return quick
        for owner, before in self.objects:
            changed = first_change(before, plain_attributes(owner.__dict__))
            if changed is not None:
                return f"{type(owner).__name__}.{changed} changed"
        self.epoch = epoch.value
        return None


def plain_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if isinstance(v, PLAIN)}


def first_change(before: dict[str, Any], now: dict[str, Any]) -> str | None:
    for name in before.keys() | now.keys():
        if name not in now or name not in before or not same(before[name], now[name]):
            return name
    return None


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and (a == b or (a != a and b != b)))


def is_library(module: str | None) -> bool:
    root = (module or "").split(".")[0]
    return root in ("wengert", "torch", "numpy", "builtins", "functools", "typing", "math")


def is_user_object(value: Any) -> bool:
    """Objects with plain state: modules of ours and instances of the user's classes."""
    if isinstance(value, types.ModuleType | type) or callable(getattr(value, "_wrap", None)):
        return False
    if hasattr(value, "_parameters") and hasattr(value, "_modules"):
        return True
    if hasattr(value, "param_groups"):
        return False  # hyper-parameters are run-time scalars
    return hasattr(value, "__dict__") and not is_library(type(value).__module__)
