"""What a recorded trace relies on beyond its arguments, and how to check it cheaply.

Python values the body can read are found by looking at its code: closure cells and globals that
hold numbers, strings or bools, of the function and of the functions it names; containers of such
values; plain attributes of the objects it reaches. Modules report changes through `epoch`, so for
them a hit costs one compare; the rest is watched in memory (`runtime/watch.py`), and compared
value by value only where a word has changed or nothing can be watched.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from .ir.bind import epoch
from .ir.dims import plain_values
from .places import Cell, Entry, Findings, Item
from .settling import is_symbolic, settle, settle_cell

PLAIN = (int, float, bool, str, type(None), bytes)
MAX_OBJECTS = 5000
MAX_ITEMS = 64  # of one container; larger ones are data, not settings
MAX_ALARMS = 8  # then watching costs more than comparing
TABLES = ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks",
          "_backward_hooks", "_backward_pre_hooks")  # fmt: skip


class Environment:
    """The Python values a function can see, as they were when it was recorded."""

    def __init__(self, function: Any, leaves: list[Any]):
        self.cells: list[tuple[Any, Any]] = []
        self.globals: list[tuple[dict[str, Any], str, Any]] = []
        self.containers: list[tuple[Any, Any]] = []
        self.objects: list[tuple[Any, dict[str, Any]]] = []
        self.modules: list[tuple[Any, Any]] = []
        self.lists: list[tuple[list[Any], list[Any]]] = []  # of parameters of optimizers
        self.groups: list[tuple[dict[str, Any], str, Any]] = []  # options of optimizers
        self.findings = Findings()
        self.seen: set[int] = set()
        self.keep: list[Any] = []  # so that no id in `seen` is used again
        self.visit(function)
        # arguments that the body also reaches by a name of its own
        self.reached = [k for k, leaf in enumerate(leaves)
                        if id(leaf) in self.seen and not isinstance(leaf, PLAIN)]  # fmt: skip
        for leaf in leaves:
            if not isinstance(leaf, PLAIN):
                self.visit(leaf)
        self.epoch = epoch.value
        self.unchanged: Any = None  # the watch over what `compare` looks at
        self.alarms = 0  # of the watch, in a row, without a change that matters

    # --- finding ---

    def visit(self, value: Any) -> None:
        if isinstance(value, PLAIN) or id(value) in self.seen or len(self.seen) > MAX_OBJECTS:
            return
        self.seen.add(id(value))
        self.keep.append(value)
        if isinstance(value, types.MethodType):
            self.visit(value.__self__)
            self.visit(value.__func__)
        elif isinstance(value, types.FunctionType):
            self.visit_function(value)
        elif isinstance(value, list | tuple | set | dict):
            self.visit_container(value)
        elif is_module(value):
            self.visit_module(value)
        elif isinstance(value, functools.partial):
            self.visit_all((value.func, *value.args))
            self.visit(value.keywords)
        elif hasattr(value, "param_groups"):
            self.visit_optimizer(value)
        elif is_user_object(value):
            self.objects.append((value, plain_items(value.__dict__)))
            self.visit_entries(value.__dict__)
            self.visit_method(value)
        elif hasattr(value, "function") and hasattr(value, "cache_clear"):  # a compiled function
            self.visit(value.function)

    def visit_all(self, values: Any) -> None:
        for item in list(values):
            self.visit(item)

    def visit_entries(self, space: dict[Any, Any], covered: bool = True) -> None:
        for name, value in list(space.items()):
            self.find(Entry(space, name, covered), value)

    def find(self, place: Any, value: Any) -> None:
        """A value that the body reads at a place of its own."""
        if not isinstance(value, PLAIN):
            self.findings.add(place, value)
            self.visit(value)

    def visit_container(self, value: Any) -> None:
        if len(value) > MAX_ITEMS:
            return
        if isinstance(value, dict):
            self.containers.append((value, plain_items(value)))
            self.visit_entries(value)
        elif isinstance(value, list):
            self.containers.append((value, plain_items(dict(enumerate(value)))))
            self.lists.append((value, [None] * len(value)))
            for k, item in enumerate(value):
                self.find(Item(value, k), item)
        else:
            self.visit_all(value)

    def visit_optimizer(self, optimizer: Any) -> None:
        """Which groups and parameters it has, and their options; numbers are run-time numbers."""
        self.lists.append((optimizer.param_groups, list(optimizer.param_groups)))
        for group in optimizer.param_groups:
            self.lists.append((group["params"], list(group["params"])))
            self.groups += [(group, name, value) for name, value in group.items()
                            if isinstance(value, bool | str | type(None))]  # fmt: skip

    def visit_module(self, module: Any) -> None:
        self.modules.append((module, module_state(module)))
        for name, value in list(module.__dict__.items()):
            if name not in TABLES:
                self.find(Entry(module.__dict__, name, True), value)
        self.visit_all(module._modules.values())
        self.visit_method(module)

    def visit_method(self, value: Any) -> None:
        """The code that runs when the object is called."""
        if is_library(type(value).__module__):
            return
        for name in ("forward", "__call__"):
            method = vars(type(value)).get(name)
            if isinstance(method, types.FunctionType):
                self.visit(method)

    def visit_function(self, function: types.FunctionType) -> None:
        self.visit(getattr(function, "__wrapped__", None))
        if is_library(function.__module__):
            return
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if isinstance(value, PLAIN):
                self.cells.append((cell, value))
            else:
                self.find(Cell(cell, name), value)
        self.visit_names(function.__code__, function.__globals__)
        self.visit_all(function.__defaults__ or ())

    def visit_names(self, code: types.CodeType, space: dict[str, Any]) -> None:
        for name in code.co_names:
            if name not in space:
                continue
            value = space[name]
            if isinstance(value, PLAIN):
                self.globals.append((space, name, value))
            elif not isinstance(value, types.ModuleType | type):
                self.find(Entry(space, name, False), value)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.visit_names(constant, space)

    def functions(self) -> list[types.FunctionType]:
        """The user's functions in sight."""
        return [f for f in self.keep
                if isinstance(f, types.FunctionType) and not is_library(f.__module__)]  # fmt: skip

    def parameter_names(self) -> dict[int, str]:
        """Names of the parameters and buffers of the modules in sight, by id."""
        names: dict[int, str] = {}
        for module, _ in self.modules:
            for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                names.setdefault(id(tensor), name)
        return names

    # --- checking ---

    def quick_failure(self) -> str | None:
        """What no epoch tells of: cells, globals, containers, objects."""
        if self.unchanged is not None and self.unchanged():
            self.alarms = 0
            return None
        reason = self.compare()
        if reason is None and self.alarms < MAX_ALARMS:
            self.alarms += 1
            self.unchanged = self.watched()
        return reason

    def compare(self) -> str | None:
        """Each value with what it was."""
        for cell, value in self.cells:
            if not same(cell.cell_contents, value):
                return f"a closure variable changed from {value!r} to {cell.cell_contents!r}"
        for space, name, value in self.globals:
            if not same(space.get(name), value):
                return f"global {name} changed from {value!r} to {space.get(name)!r}"
        for container, before in self.containers:
            now = container if isinstance(container, dict) else dict(enumerate(container))
            changed = first_change(before, plain_items(now)) if now or before else None
            if changed is not None:
                return f"item {changed!r} of a {type(container).__name__} changed"
        for owner, before in self.objects:
            changed = first_change(before, plain_items(owner.__dict__))
            if changed is not None:
                return f"{type(owner).__name__}.{changed} changed"
        for items, known in self.lists:
            if len(items) != len(known) or any(
                    b is not None and a is not b for a, b in zip(items, known)):  # fmt: skip
                return "a list of tensors changed"
        return self.findings.change()

    def settle(self) -> None:
        """Plain numbers for symbolic sizes that the body left where others see them."""
        for owner, _ in (*self.objects, *self.modules):
            settle(owner.__dict__)
        for container, _ in self.containers:
            settle(container)
        for space, name, _ in self.globals:
            if is_symbolic(space.get(name)):
                space[name] = plain_values(space[name])
        for cell, _ in self.cells:
            settle_cell(cell)

    def words(self) -> Any:
        """The words of memory behind all that `compare` looks at; raises Unwatchable."""
        from .runtime import watch

        words: watch.Words = []
        for cell, _ in self.cells:
            words += watch.of_cell(cell)
        for space, name, _ in self.globals:
            words += watch.of_entry(space, name)
        for container, _ in self.containers:
            words += (watch.of_dict if isinstance(container, dict) else watch.of_list)(container)
        for owner, _ in self.objects:
            words += watch.of_attributes(owner)
        for items, _ in self.lists:
            words += watch.of_list(items)
        return [*words, *self.findings.words(watch)]

    def watched(self) -> Any:
        """A watch over all that `compare` looks at; None where that is impossible."""
        from .runtime import watch

        try:
            return watch.watch(self.words())
        except watch.Unwatchable:
            return None

    def failure(self) -> str | None:
        """Which value changed since, or None; looks at modules too."""
        found = self.compare()
        if found is not None:
            return found
        for module, before in self.modules:
            changed = first_change(before, module_state(module))
            if changed is not None:
                return f"{type(module).__name__}.{changed} changed"
        self.epoch = epoch.value
        return None


def plain_items(items: dict[Any, Any]) -> dict[Any, Any]:
    return {k: v for k, v in items.items() if isinstance(v, PLAIN)}


def module_state(module: Any) -> dict[str, Any]:
    """Plain attributes of a module, and which objects are registered in it."""
    state = plain_items(module.__dict__)
    for table in TABLES:
        for name, value in module.__dict__.get(table, {}).items():
            state[f"{name}"] = id(value)
    return state


def first_change(before: dict[Any, Any], now: dict[Any, Any]) -> Any:
    if before.keys() != now.keys():
        return next(iter(before.keys() ^ now.keys()))
    for name, value in before.items():
        if not same(value, now[name]):
            return name
    return None


def same(a: Any, b: Any) -> bool:
    return a is b or (type(a) is type(b) and (a == b or (a != a and b != b)))


LIBRARIES = ("wengert", "torch", "numpy", "builtins", "functools", "typing", "math", "contextlib")


def is_library(module: str | None) -> bool:
    return (module or "").split(".")[0] in LIBRARIES


def is_module(value: Any) -> bool:
    attributes = getattr(value, "__dict__", None)
    return isinstance(attributes, dict) and "_parameters" in attributes and "_modules" in attributes


def is_user_object(value: Any) -> bool:
    """Instances of the user's classes; optimizers' settings are run-time numbers instead."""
    if isinstance(value, types.ModuleType | type) or hasattr(value, "param_groups"):
        return False
    return hasattr(value, "__dict__") and not is_library(type(value).__module__)
