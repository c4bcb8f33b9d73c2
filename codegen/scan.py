"""Running sums, products and extrema along a dimension: the builder of the scan template."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..ir.graph import Node
from ..ir.op import TABLE
from ..ir.program import KernelInfo, Launch, Module, Word
from ..ir.scalar import HALVES
from .prelude import prelude
from .reader import KernelReader
from .render import identity, render
from .scalar import MEMORY, REGISTER
from .target import Target
from .templates_table import template

# By op, or by what a `running` op says: the pointwise op that combines, and what it starts from.
COMBINE = {
    "cumsum": ("add", 0),
    "cumprod": ("mul", 1),
    "logcumsumexp": ("logaddexp", "lowest"),
    "maximum": ("maximum", "lowest"),
    "minimum": ("minimum", "highest"),
}


class Scan:
    """Context of scan.ll.j2."""

    fields = (("in", "ptr"), ("out", "ptr"), ("n", "i64"), ("inner", "i64"))

    def __init__(self, combine: str, dtype: str):
        name, start = COMBINE[combine]
        s = KernelReader(dtype)
        self.memory, self.register = MEMORY[dtype], REGISTER[dtype]
        x = s.load("%x.p", dtype)
        total = TABLE[name].lower.emit(s, s.argument("%total", dtype), x)
        s.store(total, "%y.p")
        self.start = s.start_of(start, dtype).value.text
        self.next = total.value.text
        self.body, self.calls = s.text(), s.calls

    def write(self, name: str, target: Target) -> str:
        return render("scan.ll.j2", scan=self, symbol=name) + prelude(self.calls, target)


def combine_of(node: Node) -> str:
    return node.attributes.get("combine", node.op.name)  # type: ignore[no-any-return]


def can(node: Node) -> bool:
    return combine_of(node) in COMBINE and node.outputs[0].dtype.name not in ("bool", *HALVES)


@template("scan", can, contiguous=True)
def scan(build: Any, node: Node) -> None:
    """Sequential along the dimension, as NumPy does it."""
    shape, dim = node.outputs[0].shape, node.attributes["dim"]
    operand, result = build.operand(node.inputs[0]), build.result(node.outputs[0])
    outer, n = (math.prod(shape[:dim]), shape[dim]) if shape else (1, 1)
    inner = math.prod(shape[dim + 1 :])
    skeleton = Scan(combine_of(node), node.outputs[0].dtype.name)
    whole = identity("scan", vars(skeleton), build.target if skeleton.calls else None)
    name = "s" + whole[:20]
    write = partial(skeleton.write, name, build.target)
    build.add_module(name, Module(write, whole, (name,)))
    number = build.plan.number[node]
    build.infos.append(KernelInfo(
        name, "scan", f"{node.op.name} of {outer}x{n}x{inner} along the middle",
        (number,) if number >= 0 else (), 2 * operand.type.nbytes, operand.type.numel,
    ))  # fmt: skip
    words = (operand.word, result.word, Word(n), Word(inner))
    chunks = outer if n * inner else 0
    build.steps.append(Launch(name, words, chunks, (operand.buffer,), (result.buffer,),
                              len(build.infos) - 1))  # fmt: skip
