"""Random draws beside their generator: the builder of the draw templates.

The engine is mt19937, in the memory of the generator that a graph is bound to (`ir/generators.py`).
What is drawn of its words is torch's, see Note [Streams] in tracer/sampling.py. Such programs are
made for one process: the engine's address is a word of the launch.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..ir import cephes
from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from .render import identity, render
from .scalar import MEMORY
from .templates_table import template

FIELDS = (("engine", "ptr"), ("out", "ptr"), ("n", "i64"))
BLOCK = 16  # normal numbers are made in blocks of so many
NARROW = 2**28  # ranges of integers below take one word each


class Draw(NamedTuple):
    """How a draw is written: its template, what that depends on, and what a launch is given."""

    template: str
    facts: dict[str, Any]
    parameters: tuple[tuple[str, Any], ...] = ()


def draw_of(node: Node) -> Draw | None:
    """Numbers by numbers, in row-major order, from a generator whose memory is known."""
    attrs, (var,) = node.attributes, node.outputs
    if node.inputs or attrs.get("order") is not None:
        return None
    if not getattr(attrs.get("generator"), "address", 0):
        return None
    return written(attrs["distribution"], var.type.numel, var.dtype.name,
                   attrs.get("parameters", ()))  # fmt: skip


def written(distribution: str, count: int, dtype: str, parameters: tuple[Any, ...]) -> Draw | None:
    """How so many elements are drawn; None where that is left to NumPy."""
    write = WRITERS.get(distribution)
    made: Draw | None = write and write(count, dtype, *parameters)
    return made


def by_elements(kind: str, dtype: str, *parameters: tuple[str, Any], scaled: bool = False) -> Draw:
    facts = {"kind": kind, "dtype": dtype, "scaled": scaled, "memory": MEMORY[dtype]}
    return Draw("draw", facts, parameters)


def bernoulli(count: int, dtype: str, p: float) -> Draw | None:
    return by_elements("bernoulli", dtype, ("p", p)) if (
        dtype in ("bool", "float32", "float64")) else None  # fmt: skip


def uniform(count: int, dtype: str, low: float = 0.0, high: float = 1.0) -> Draw | None:
    if dtype not in ("float32", "float64"):
        return None
    if (low, high) == (0.0, 1.0):
        return by_elements("uniform", dtype)
    kind = np.dtype(dtype).type
    start, end = kind(low), kind(high)
    parameters = {"scale.wide": end - start, "shift.wide": start, "end.wide": end}
    named = ((name, float(value)) for name, value in parameters.items())
    return by_elements("uniform", dtype, *named, scaled=True)


def integers(count: int, dtype: str, low: int, high: int | None) -> Draw | None:
    if dtype != "int64" or high is None or not 0 < high - low < NARROW:
        return None
    return by_elements("integers", dtype, ("extent", high - low), ("low", low))


def permutation(count: int, dtype: str) -> Draw | None:
    return Draw("permutation", {}) if dtype == "int64" else None


def normal(count: int, dtype: str, mean: float = 0.0, std: float = 1.0) -> Draw | None:
    plain = math.isfinite(mean) and math.isfinite(std)
    if dtype != "float32" or count < BLOCK or not plain:
        return None
    parameters = (("std.wide", float(np.float32(std))), ("mean.wide", float(np.float32(mean))))
    return Draw("normal", {"cephes": CEPHES}, parameters)


WRITERS: dict[str, Any] = {"bernoulli": bernoulli, "uniform": uniform, "integers": integers,
                           "permutation": permutation, "normal": normal}  # fmt: skip


def single(value: float) -> str:
    """A constant of single precision as LLVM writes it: the bits of the same double."""
    (bits,) = struct.unpack("Q", struct.pack("d", float(np.float32(value))))
    return f"0x{bits:016X}"


CEPHES = {name: tuple(map(single, value)) if isinstance(value, tuple) else single(value)
          for name, value in vars(cephes).items() if name.isupper()}  # fmt: skip


def module_of(made: Draw) -> Module:
    """The code of a draw, for any number of elements and any generator."""
    fields = FIELDS + tuple((name, "i64" if isinstance(value, int) else "double")
                            for name, value in made.parameters)  # fmt: skip
    whole = identity(made.template, {**made.facts, "fields": fields})
    name = "d" + whole[:20]
    write = partial(render, f"{made.template}.ll.j2", symbol=name, fields=fields, **made.facts)
    return Module(write, whole, (name,))


def words_of(made: Draw) -> list[int]:
    """The parameters in the argument block, after engine, result and count."""
    return [value if isinstance(value, int) else bits_of(value) for _, value in made.parameters]


@template("draw", lambda node: draw_of(node) is not None)
def draw(build: Any, node: Node) -> None:
    """One element after the other: each takes the engine's next words."""
    made = draw_of(node)
    assert made is not None
    attrs, (var,) = node.attributes, node.outputs
    module = module_of(made)
    (name,) = module.symbols
    build.add_module(name, module)
    number, result, count = build.plan.number[node], build.result(var), var.type.numel
    build.infos.append(KernelInfo(name, "draw", f"{count} draws, {attrs['distribution']}",
                                  (number,) if number >= 0 else (), var.type.nbytes))  # fmt: skip
    words = [Word(attrs["generator"].address), result.word, Word(count)]
    words += [Word(value) for value in words_of(made)]
    build.steps.append(Launch(name, tuple(words), int(count > 0), (), (result.buffer,),
                              len(build.infos) - 1))  # fmt: skip


def bits_of(value: float) -> int:
    (bits,) = struct.unpack("q", struct.pack("d", value))
    return int(bits)
