"""Taking the arguments of a call apart, and putting results together, by code for one structure.

`taking_apart(structure)` has the lines that do so, for a function of (args, kwargs);
`unpacker(structure)` is such a function, that gives the leaves in the order of `flatten`, or None
where the arguments have another structure. `packing(structure, ...)` is the text of an expression
that puts leaves together.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .ir.texts import function_of
from .pytree import rebuild, split
from .runtime.entering import Container, Taking


def taking_apart(structure: Any) -> Writer | None:
    """None where a container is of another kind than those known here."""
    _, args, kwargs = structure
    writer = Writer()
    try:
        writer.take("args", args, known=True)
        writer.take("kwargs", kwargs, known=True)
        writer.taking = natively(args, kwargs)
    except UnknownContainer:
        return None
    return writer


def natively(args: Any, kwargs: Any) -> Taking | None:
    """The same for native code; None where keys are other than strings."""
    found = container(args), container(kwargs)
    return None if found[0] is None or found[1] is None else Taking(*found)


def container(structure: Any) -> Container | None:
    kind, (names, parts) = structure[0], split(structure)
    members = [part if part is None else container(part) for part in parts]
    if any(part is not None and member is None for part, member in zip(parts, members)):
        return None
    if not all(type(name) is str for name in names or ()):
        return None
    return Container(kind, tuple(members), tuple(map(sys.intern, names or ())))


def unpacker(structure: Any) -> Any:
    """See the module's text; None as for `taking_apart`."""
    writer = taking_apart(structure)
    if writer is None:
        return None
    leaves = "".join(f"{leaf}, " for leaf in writer.leaves)
    return writer.function("unpack", None, [*writer.lines, f"return ({leaves})"])


def packing(structure: Any, leaves: Iterator[str], constant: Any) -> str:
    """An expression that does what `unflatten` does with the values of others.

    `constant` names values that it uses.
    """
    if structure is None:
        return next(leaves)
    kind, (names, parts) = structure[0], split(structure)
    items = [packing(part, leaves, constant) for part in parts]
    listed = "".join(f"{item}, " for item in items)
    if kind is dict:
        return "{" + ", ".join(f"{constant(n)}: {item}" for n, item in zip(names, items)) + "}"
    if kind in (tuple, list):
        return f"({listed})" if kind is tuple else f"[{listed}]"
    return f"{constant(rebuild)}({constant(kind)}, {constant(names)}, [{listed}])"


def builder(kind: Any, names: Any, count: int) -> Any:
    """A function that does what `rebuild` does with so many members."""
    if names is None and hasattr(kind, "_make"):
        return kind
    if not is_record(kind, names):
        return lambda *items: rebuild(kind, names, [*items])
    given = [f"a{k}" for k in range(count)]
    lines = ["made = new(kind)", *(f"put(made, {name!r}, {a})" for name, a in zip(names, given)),
             "return made"]  # fmt: skip
    text = "\n    ".join([f"def build({', '.join(given)}):", *lines])
    space = {"new": kind.__new__, "kind": kind, "put": object.__setattr__}
    return function_of(text, "<wengert build>", space)


def is_record(kind: Any, names: Any) -> bool:
    """Is it a dataclass whose objects have their members as attributes, and nothing else?"""
    return names is not None and dataclasses.is_dataclass(kind) and not issubclass(kind, dict)


class UnknownContainer(Exception):
    """A container is of another kind than those known here."""


class Writer:
    """Writes the lines that take containers apart, and names constants.

    Where a container is another, the lines return `missing`.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.constants: dict[str, Any] = {}
        self.taking: Taking | None = None  # the same for native code, where that can
        self.names: Iterator[str] = (f"v{k}" for k in itertools.count())

    def take(self, value: str, structure: Any, known: bool = False) -> None:
        """Takes apart what a variable holds; `known`: its class is."""
        if structure is None:
            self.leaves.append(value)
            return
        kind, (names, parts) = structure[0], split(structure)
        if not known:
            self.check(f"{value}.__class__ is not {self.constant(kind)}")
        variables = [next(self.names) for _ in parts]
        if kind is dict:
            self.check_odd(value, names)
            if len(names) == 1:  # quicker
                name = self.constant(names[0])
                self.check(f"len({value}) != 1 or {name} not in {value}")
                self.assign(variables, f"{value}[{name}],")
            else:
                self.check(f"tuple({value}) != {self.constant(names)}" if names else value)
                self.assign(variables, f"{value}.values()")
        elif issubclass(kind, tuple | list):
            self.check(f"len({value}) != {len(parts)}")
            self.assign(variables, value)
        elif dataclasses.is_dataclass(kind) and not issubclass(kind, dict):
            if kind.__dictoffset__:
                self.check(f"len({value}.__dict__) != {len(names)}")
            self.assign(variables, ", ".join(f"{value}.{name}" for name in names) + ",")
        else:
            raise UnknownContainer(kind)
        for variable, part in zip(variables, parts):
            self.take(variable, part)

    def check_odd(self, value: str, names: tuple[Any, ...]) -> None:
        """Keys of other classes may be equal: `True`, `1` and `1.0`."""
        if all(type(name) is str for name in names):
            return
        if any(isinstance(name, float | complex | np.generic | tuple | frozenset)
               for name in names):  # fmt: skip
            raise UnknownContainer(dict)
        self.check(f"tuple(map(type, {value})) != {self.constant(tuple(map(type, names)))}")

    def check(self, wrong: str) -> None:
        self.lines.append(f"if {wrong}: return missing")

    def assign(self, variables: list[str], value: str) -> None:
        if variables:
            self.lines.append(f"{', '.join(variables)}, = {value}")

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def function(self, name: str, missing: Any, lines: list[str],
                 given: Sequence[str] = ("args", "kwargs"), **names: Any) -> Any:  # fmt: skip
        """The function of `given` with these lines, which may use `names`."""
        text = "\n    ".join([f"def {name}({', '.join(given)}):", *lines])
        space = {**self.constants, **names, "missing": missing}
        return function_of(text, f"<wengert {name}>", space)
