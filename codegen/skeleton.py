"""What the nest templates see: loops and parts as data, and how a kernel is launched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Carried:
    """A value that a loop carries from turn to turn."""

    name: str
    type: str
    start: str
    next: str


@dataclass
class Loop:
    """A loop of the template: ready lines at the beginning and at the end of its body."""

    name: str
    low: str
    high: str
    step: str = "1"
    body: str = ""
    after: str = ""
    metadata: str = ""
    carried: list[Carried] = field(default_factory=list)


@dataclass
class Part:
    """Loops inside each other, and lines around them."""

    before: str = ""
    loops: list[Loop] = field(default_factory=list)
    after: str = ""


@dataclass(frozen=True)
class Parameter:
    name: str
    type: str


@dataclass(frozen=True)
class Argument:
    """A word of a launch: a number, or the buffer of a Var plus an offset in bytes."""

    value: int
    var: Any = None


@dataclass(frozen=True)
class Emitted:
    """A kernel, how to write its text (`identity` stands for it) and how to launch it."""

    name: str
    write: Callable[[], str]
    identity: str
    arguments: tuple[Argument, ...]
    chunks: int
    light: bool = False
