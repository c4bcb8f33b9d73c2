"""Running sums and products along a dimension: the builder of the scan template."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from ..ir.scalar import HALVES
from .reader import KernelReader
from .render import identity, render
from .scalar import MEMORY, REGISTER
from .templates_table import template

COMBINE = {"cumsum": ("add", 0), "cumprod": ("mul", 1)}


class Scan:
    """Context of scan.ll.j2."""

    fields = (("in", "ptr"), ("out", "ptr"), ("n", "i64"), ("inner", "i64"))

    def __init__(self, op: str, dtype: str):
        method, start = COMBINE[op]
        s = KernelReader(dtype)
        self.memory, self.register = MEMORY[dtype], REGISTER[dtype]
        x = s.load("%x.p", dtype)
        total = getattr(s, method)(s.argument("%total", dtype), x)
        s.store(total, "%y.p")
        self.start = s.const(start, dtype).value.text
        self.next = total.value.text
        self.body = s.text()

    def write(self, name: str) -> str:
        return render("scan.ll.j2", scan=self, symbol=name)


def can(node: Node) -> bool:
    return node.op.name in COMBINE and node.outputs[0].dtype.name not in ("bool", *HALVES)


@template("scan", can, contiguous=True)
def scan(build: Any, node: Node) -> None:
    """cumsum and cumprod: sequential along the dimension, as NumPy does them."""
    shape, dim = node.outputs[0].shape, node.attributes["dim"]
    operand, result = build.operand(node.inputs[0]), build.result(node.outputs[0])
    outer, n = (math.prod(shape[:dim]), shape[dim]) if shape else (1, 1)
    inner = math.prod(shape[dim + 1 :])
    skeleton = Scan(node.op.name, node.outputs[0].dtype.name)
    whole = identity("scan", vars(skeleton))
    name = "s" + whole[:20]
    build.add_module(name, Module(partial(skeleton.write, name), whole, (name,)))
    number = build.plan.number[node]
    build.infos.append(KernelInfo(
        name, "scan", f"{node.op.name} of {outer}x{n}x{inner} along the middle",
        (number,) if number >= 0 else (), 2 * operand.type.nbytes, operand.type.numel,
    ))  # fmt: skip
    words = (operand.word, result.word, Word(n), Word(inner))
    chunks = outer if n * inner else 0
    build.steps.append(Launch(name, words, chunks, (operand.buffer,), (result.buffer,),
                              len(build.infos) - 1))  # fmt: skip
