"""Random draws beside their generator: the builder of the draw template.

The engine is mt19937, in the memory of the generator that a graph is bound to (`ir/generators.py`).
What is drawn of its words is torch's, see Note [Streams] in tracer/sampling.py. Such programs are
made for one process: the engine's address is a word of the launch.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any

from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from .render import identity, render
from .scalar import MEMORY
from .templates_table import template

FIELDS = (("engine", "ptr"), ("out", "ptr"), ("n", "i64"), ("p", "double"))
KINDS = {("bernoulli", "bool"), ("bernoulli", "float32"), ("bernoulli", "float64"),
         ("uniform", "float32"), ("uniform", "float64")}  # fmt: skip


def can(node: Node) -> bool:
    """Numbers by numbers, in row-major order, from a generator whose memory is known."""
    attrs = node.attributes
    kind = attrs["distribution"], node.outputs[0].dtype.name
    plain = kind[0] == "bernoulli" or attrs.get("parameters", ()) in ((), (0.0, 1.0))
    return (kind in KINDS and plain and not node.inputs and attrs.get("order") is None
            and bool(getattr(attrs.get("generator"), "address", 0)))  # fmt: skip


@template("draw", can)
def draw(build: Any, node: Node) -> None:
    """One element after the other: each takes the engine's next words."""
    attrs, (var,) = node.attributes, node.outputs
    kind, dtype = attrs["distribution"], var.dtype.name
    whole = identity("draw", {"kind": kind, "dtype": dtype})
    name = "d" + whole[:20]
    write = partial(render, "draw.ll.j2", symbol=name, kind=kind, dtype=dtype,
                    memory=MEMORY[dtype], fields=FIELDS)  # fmt: skip
    build.add_module(name, Module(write, whole, (name,)))
    number, result, count = build.plan.number[node], build.result(var), var.type.numel
    build.infos.append(KernelInfo(name, "draw", f"{count} draws, {kind}",
                                  (number,) if number >= 0 else (), var.type.nbytes))  # fmt: skip
    parameters = attrs.get("parameters", ()) if kind == "bernoulli" else ()
    (bits,) = struct.unpack("q", struct.pack("d", *(parameters or (0.0,))))
    words = (Word(attrs["generator"].address), result.word, Word(count), Word(bits))
    build.steps.append(Launch(name, words, int(count > 0), (), (result.buffer,),
                              len(build.infos) - 1))  # fmt: skip
