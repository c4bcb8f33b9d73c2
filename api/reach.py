"""What a body can reach: the Python values that its code names, and how each is guarded.

Values are found by looking at code: closure cells and globals, of the function and of the functions
it names; items of containers; attributes of objects, classes and Python modules.

Note [Packages]
    A body that calls something of a large package (plots, tables, symbols) can reach most of its
    code, which took many seconds to look through. Nearly always something is met there that keeps
    the body in Python: then the rest of installed packages is not looked at, nor is it beyond
    MAX_INSTALLED functions. Code of the user's own always is.

Note [Large arrays]
    Comparing a large array at every call would take longer than most calls. A body that names one
    runs in Python at every call. One that lies in a container, such as a dict of settings and data
    of which the body reads the settings, is taken to stay as it is: docs/compile.md says so.
"""

from __future__ import annotations

import array
import collections
import functools
import itertools
import random
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from .effects import problems_in
from .guards import (
    Absent,
    Attributes,
    ClassBody,
    Code,
    Contents,
    Float,
    Guard,
    Items,
    Members,
    OptimizerState,
    Value,
)
from .ir.op import Op
from .ir.places import is_ours
from .named import Everything, Names, Owner
from .odd_places import enter_standard, follow
from .places import Cell, Entry, Findings, Item, Slot
from .plain import is_built_in, is_installed, is_library, is_plain, is_pythons, space_of
from .quiet_code import codes_in, globals_read, set_by_methods
from .reach_optimizers import visit_optimizer
from .surroundings import Surroundings, module_hooks
from .tracer.tensor import Tensor
from .varying import Varying

MAX_OBJECTS = 100_000
MAX_INSTALLED = 3_000
MAX_NESTED = 40
MAX_ITEMS = 4096  # of one list
MAX_BYTES = 4096  # of an array
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
REGISTERED = ("_parameters", "_buffers", "_modules")
CONTENTS = (set, bytearray, array.array, np.ndarray)
CACHES = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary)  # hold nothing by themselves
GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)
CONSTRUCTORS = ("__init__", "__new__", "__post_init__")
WRAPPED = {property: "fget", staticmethod: "__func__", classmethod: "__func__",
           functools.cached_property: "func"}  # fmt: skip


class Reach:
    """Walks from a function, others that run with it, and its arguments to all that can be
    reached."""

    def __init__(self, function: Any, leaves: list[Any], varying: Varying | None = None,
                 beside: Sequence[Any] = ()):  # fmt: skip
        self.varying = Varying() if varying is None else varying
        self.floats: list[tuple[Any, float]] = []  # where they lie, and what they are
        self.guards: list[Guard] = []
        self.absent: dict[int, Absent] = {}  # by the id of globals
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.optimizer_states: dict[int, OptimizerState] = {}  # by id of the optimizer
        self.groups: list[tuple[dict[str, Any], str, Any]] = []  # options of optimizers
        self.findings = Findings()
        self.problems: list[str] = []
        self.seen: set[int] = set()
        self.keep: list[Any] = []  # so that no id in `seen` is used again
        self.names = Names()
        self.owners: list[Owner] = []
        self.installed = 0  # functions and classes of packages
        self.nested, self.later = 0, list[Any]()  # Python's stack is not endless
        self.depth = 0  # of containers that are being looked through
        self.replaceable: set[int] = set()  # ids of buffers that methods set
        self.named: set[int] = set()  # ids of classes that code names: it may make objects of them
        self.guards.append(Surroundings(self.names))
        self.visit(function)
        self.visit_all((*beside, *module_hooks()))
        self.catch_up()
        # arguments that the body also reaches by a name of its own
        self.reached = [k for k, leaf in enumerate(leaves)
                        if id(leaf) in self.seen and not is_plain(leaf)]  # fmt: skip
        self.visit_all(leaf for leaf in leaves if not isinstance(leaf, Tensor))
        self.follow_names()
        for guard in self.guards:
            guard.begin()

    def follow_names(self) -> None:
        """Code found by one name may name more of what was met before."""
        self.catch_up()
        size = None
        while size != (size := (len(self.names.known), self.names.all, len(self.owners))):
            for owner in list(self.owners):
                for name, value in owner.unmet():
                    owner.enter(owner.space, name, value)
            self.catch_up()

    # --- values of all kinds ---

    def visit(self, value: Any) -> None:
        if is_plain(value) or id(value) in self.seen:
            return
        if len(self.seen) > MAX_OBJECTS:
            self.problem(f"the body can reach more than {MAX_OBJECTS:,} objects")
            return
        if self.nested > MAX_NESTED:
            self.later.append(value)
            return
        self.seen.add(id(value))
        self.keep.append(value)
        self.nested += 1
        self.visit_kind(value)
        self.nested -= 1

    def catch_up(self) -> None:
        """Visits what was too far from where the search began."""
        while self.later:
            self.visit(self.later.pop())

    def visit_kind(self, value: Any) -> None:
        if isinstance(value, Tensor):
            if value.__dict__:
                self.guards.append(Attributes(value, self.names))
        elif isinstance(value, types.FunctionType):
            self.visit_function(value)
        elif isinstance(value, type):
            self.visit_class(value)
        elif isinstance(value, types.ModuleType):
            self.visit_python_module(value)
        elif isinstance(value, types.MethodType):
            self.visit_all((value.__self__, value.__func__))
        elif isinstance(value, types.BuiltinMethodType):
            self.visit(value.__self__)
        elif isinstance(value, functools.partial):
            self.visit_all((value.func, *value.args, value.keywords))
        else:
            self.visit_object(value)

    def visit_all(self, values: Any) -> None:
        for item in list(values):
            self.visit(item)

    def find(self, place: Any, value: Any) -> None:
        """A value that the body reads at a place of its own."""
        if not is_plain(value):
            self.findings.add(place, value)
            if isinstance(value, type):
                self.named.add(id(value))
            self.visit(value)
            return
        is_float = type(value) is float and place.writable
        if is_float:
            self.floats.append((place, value))
        if not place.covered:
            varies = is_float and self.varying.has(place)
            self.guards.append((Float if varies else Value)(place, value))

    def problem(self, reason: str) -> None:
        self.problems.append(reason)

    # --- code ---

    def visit_function(self, function: types.FunctionType) -> None:
        self.visit(getattr(function, "__wrapped__", None))
        if is_library(function.__module__):
            if is_pythons(function.__module__):  # `singledispatch` closes over functions of users
                self.visit_closure(function, but=CACHES)
            return
        if is_installed(function.__code__.co_filename):
            if not self.problems:
                self.problems += itertools.islice(problems_in(function), 1)
            if self.has_enough(function.__code__.co_filename):
                return
        self.guards += [Code(function), Attributes(function, self.names)]
        self.owners.append(Owner(function.__dict__, self.names, self.enter_attribute))
        self.visit_closure(function)
        self.visit_names(function.__code__, function.__globals__)
        self.visit_all(function.__defaults__ or ())
        self.visit_all((function.__kwdefaults__ or {}).values())

    def has_enough(self, file: Any) -> bool:
        """Is it of no use to look at code in this file? See Note [Packages]."""
        if not is_installed(file):
            return False
        self.installed += 1
        if self.installed == MAX_INSTALLED:
            self.problem(f"the body can reach more than {MAX_INSTALLED:,} functions of packages "
                         f"({file}); call them outside")  # fmt: skip
        return bool(self.problems)

    def visit_closure(self, function: types.FunctionType, but: Any = ()) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not filled yet
                continue
            if not isinstance(value, but):
                self.find(Cell(cell, name), value)

    def visit_names(self, code: types.CodeType, space: dict[str, Any]) -> None:
        for part in codes_in(code):
            self.names.add(part)
            for name in globals_read(part):
                if name in space:
                    self.enter_global(space, name, space[name])
                elif isinstance(value := self.absent_from(space).add(name), types.FunctionType):
                    self.visit(value)  # somebody replaced one of Python's own

    def absent_from(self, space: dict[str, Any]) -> Absent:
        found = self.absent.get(id(space))
        if found is None:
            found = self.absent[id(space)] = Absent(space)
            self.guards.append(found)
        return found

    def enter_global(self, space: dict[str, Any], name: str, value: Any) -> None:
        self.find(Entry(space, name, False), value)

    def functions(self) -> list[types.FunctionType]:
        """The user's functions in sight. What wraps one of them may have its name and module."""
        return [f for f in self.keep
                if isinstance(f, types.FunctionType) and not is_library(f.__module__)
                and not is_ours(f.__code__.co_filename)]  # fmt: skip

    # --- classes, Python modules ---

    def visit_class(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is not cls:
                self.visit(base)
        space = space_of(cls)
        if is_library(cls.__module__):
            if "forward" in space:  # code that a user may replace for all modules of a kind
                self.find(Entry(space, "forward", False), space["forward"])
            return
        if self.has_enough(getattr(sys.modules.get(cls.__module__), "__file__", None)):
            return
        self.visit(type(cls))
        self.guards.append(ClassBody(cls, space, self.names))
        enter = functools.partial(self.enter_class, cls)
        self.owners.append(Owner(space, self.names, enter))

    def enter_class(self, cls: type, space: dict[str, Any], name: str, value: Any) -> None:
        if name in CONSTRUCTORS and id(cls) not in self.named:
            return
        inner = WRAPPED.get(type(value))
        value = value if inner is None else getattr(value, inner)
        if isinstance(value, types.FunctionType):
            self.visit(value)
        elif name[:2] != "__":
            self.find(Entry(space, name, True, writable=False), value)

    def visit_python_module(self, module: types.ModuleType) -> None:
        enter: Any = self.enter_global
        if is_library(module.__name__):
            if not is_pythons(module.__name__):
                return
            enter = functools.partial(enter_standard, self)
        self.owners.append(Owner(module.__dict__, self.names.known, enter))

    # --- objects ---

    def visit_object(self, value: Any) -> None:
        if isinstance(value, GENERATORS):
            self.problem("the body draws random numbers of Python's or NumPy's; draw with the "
                         "library's random functions")  # fmt: skip
        elif hasattr(type(value), "__next__"):
            self.problem(f"the body can reach an iterator (a {type(value).__name__}), whose next "
                         "value differs at each call; pass the value")  # fmt: skip
        elif isinstance(value, Op) or follow(self, value):
            return  # entries of the catalogue note how often they were called
        elif isinstance(value, CONTENTS):
            self.visit_contents(value)
        elif isinstance(value, list | tuple | frozenset | dict | collections.deque):
            self.visit_container(value)
        elif is_optimizer(value):
            visit_optimizer(self, value)
        elif has_attribute(value, "function") and has_attribute(value, "cache_clear"):
            self.visit(value.function)  # of a compiled function
        else:
            self.visit_attributes(value)
        if isinstance(value, list | tuple | dict):
            self.visit_attributes(value)

    def visit_attributes(self, value: Any) -> None:
        kind = type(value)
        if is_built_in(kind):
            return
        self.visit(kind)
        names: Any = Everything() if made_by_library(kind) else self.names
        slots = {s: getattr(value, s) for s in slots_of(kind) if hasattr(value, s)}
        if slots:
            enter = functools.partial(self.enter_slot, value)
            self.owners.append(Owner(slots, names, enter))
        if is_module(value):
            self.visit_module(value, names)
        elif hasattr(value, "__dict__"):
            varying = self.varying.at(value.__dict__)
            self.guards.append(Attributes(value, names, varying))
            self.owners.append(Owner(value.__dict__, names, self.enter_attribute))

    def enter_slot(self, owner: Any, slots: Any, name: str, value: Any) -> None:
        self.find(Slot(owner, name), value)

    def enter_attribute(self, space: dict[str, Any], name: str, value: Any) -> None:
        self.find(Entry(space, name, True), value)

    def visit_module(self, module: Any, names: Any) -> None:
        self.modules.append(module)
        self.owners.append(Owner(module.__dict__, names, self.enter_module))
        for table in REGISTERED:
            but = self.enter_buffers(module) if table == "_buffers" else ()
            self.guards.append(Members(module.__dict__[table], but=but))
        for table in ("_modules", *HOOKS):
            self.visit_all((module.__dict__.get(table) or {}).values())
        tensors = (*module._parameters.values(), *module._buffers.values())
        self.visit_all(t for t in tensors if t is not None and t.__dict__)

    def enter_buffers(self, module: Any) -> set[str]:
        """Buffers that methods may replace are found at their places, as other tensors are."""
        buffers = module._buffers
        replaced = set_by_methods(type(module)) & buffers.keys() if buffers else set()
        replaced = {name for name in replaced if isinstance(buffers[name], Tensor)}
        for name in sorted(replaced):
            self.replaceable.add(id(buffers[name]))
            self.find(Entry(buffers, name, True), buffers[name])
        return replaced

    def enter_module(self, space: dict[str, Any], name: str, value: Any) -> None:
        if name not in internal_names():
            self.find(Entry(space, name, True), value)

    def own(self, space: dict[str, Any], enter: Any) -> None:
        """`enter` is called with what lies there under names that code in sight has."""
        self.owners.append(Owner(space, self.names, enter))

    # --- containers ---

    def visit_container(self, value: Any) -> None:
        self.depth += 1
        self.visit_items(value)
        self.depth -= 1

    def visit_items(self, value: Any) -> None:
        if isinstance(value, dict):
            self.guards.append(Items(value, self.varying.at(value)))
            for name, item in dict(value).items():  # a copy at once: threads may add meanwhile
                self.find(Entry(value, name, True), item)
        elif isinstance(value, list | collections.deque):
            if len(value) > MAX_ITEMS:
                kind = type(value).__name__
                self.problem(f"the body can reach a {kind} of {len(value):,} items; pass a tensor")
                return
            self.guards.append(Items(value, self.varying.at(value)))
            for k, item in enumerate([*value]):
                self.find(Item(value, k), item)
        else:
            self.visit_all(value)

    def visit_contents(self, value: Any) -> None:
        size = value.nbytes if isinstance(value, np.ndarray) else len(value)
        if size > MAX_BYTES and self.depth and isinstance(value, np.ndarray):
            return  # see Note [Large arrays]
        if size > MAX_BYTES or getattr(value, "dtype", None) == np.dtype(object):
            self.problem(f"the body can reach a large {type(value).__name__}; pass a tensor")
            return
        self.guards.append(Contents(value))
        if isinstance(value, set):
            self.visit_all(value)


@functools.cache
def internal_names() -> frozenset[str]:
    """The tables of a module, which tell of changes by epochs."""
    from .nn import Module

    return frozenset(vars(Module()))


def is_module(value: Any) -> bool:
    attributes = getattr(value, "__dict__", None)
    return isinstance(attributes, dict) and "_parameters" in attributes and "_modules" in attributes


def has_attribute(value: Any, name: str) -> bool:
    """As `hasattr`, but without running code of the user's, such as a `__getattr__`."""
    return name in getattr(value, "__dict__", ()) or hasattr(type(value), name)


def is_optimizer(value: Any) -> bool:
    return has_attribute(value, "param_groups") and has_attribute(value, "state")


def made_by_library(kind: type) -> bool:
    """Does code that is not in sight run on its objects? That of `Module` itself is known."""
    return any(is_library(base.__module__) and base.__qualname__ not in ("object", "Module")
               for base in kind.__mro__)  # fmt: skip


def slots_of(kind: type) -> list[str]:
    """The slots that the user's classes have."""
    found: list[str] = []
    for base in kind.__mro__:
        slots = () if is_library(base.__module__) else base.__dict__.get("__slots__", ())
        found += (slots,) if isinstance(slots, str) else slots
    return [s for s in found if s not in ("__dict__", "__weakref__")]
