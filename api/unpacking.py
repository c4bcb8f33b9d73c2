"""Taking the arguments of a call apart, and putting results together, by code for one structure.

`unpacker(structure)` is a function of (args, kwargs) that gives the leaves in the order of
`flatten`, or None where the arguments have another structure. `packing(structure, ...)` is the text
of an expression that puts leaves together.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from .ir.texts import function_of
from .pytree import rebuild, split


def AS_GIVEN(args: Any, kwargs: Any) -> Any:
    """Of calls with positional leaves only."""
    return None if kwargs else args


def unpacker(structure: Any) -> Any:
    """See the module's text; None where a container is of another kind than those known here."""
    _, args, kwargs = structure
    if len(kwargs) == 2 and all(part is None for part in args[1:]):
        return AS_GIVEN
    writer = Writer()
    try:
        writer.take("args", args, known=True)
        writer.take("kwargs", kwargs, known=True)
    except KeyError:
        return None
    return writer.function()


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


class Writer:
    """Writes the lines that take containers apart."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.constants: dict[str, Any] = {}
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
            self.check(f"tuple({value}) != {self.constant(names)}" if names else value)
            self.assign(variables, f"{value}.values()")
        elif issubclass(kind, tuple | list):
            self.check(f"len({value}) != {len(parts)}")
            self.assign(variables, value)
        elif dataclasses.is_dataclass(kind) and not issubclass(kind, dict):
            self.check(f"len({value}.__dict__) != {len(names)}")
            self.assign(variables, ", ".join(f"{value}.{name}" for name in names) + ",")
        else:
            raise KeyError(kind)
        for variable, part in zip(variables, parts):
            self.take(variable, part)

    def check(self, wrong: str) -> None:
        self.lines.append(f"    if {wrong}: return None")

    def assign(self, variables: list[str], value: str) -> None:
        if variables:
            self.lines.append(f"    {', '.join(variables)}, = {value}")

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return name

    def function(self) -> Any:
        leaves = "".join(f"{leaf}, " for leaf in self.leaves)
        body = "\n".join([*self.lines, f"    return ({leaves})"])
        return function_of(f"def unpack(args, kwargs):\n{body}", "<wengert unpack>", self.constants)
