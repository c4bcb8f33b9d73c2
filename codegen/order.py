"""Sorting and searching along lines: the builders of the templates `order` and `search`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from ..ir.scalar import FLOATS, SIGNED
from .llvm import Emitter, Value
from .reader import KernelReader
from .render import identity, render
from .scalar import ITEMSIZE, MEMORY
from .templates_table import Operand, template

INFINITY = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F80_0000,
            "float64": 0x7FF0_0000_0000_0000}  # fmt: skip
CHUNKS, FEW_CHUNKS = 64, 8
AMPLE = 1 << 24  # bytes of work space that more than FEW_CHUNKS may take


def sort_key(m: Emitter, raw: Value, dtype: str, descending: bool) -> Value:
    """An unsigned integer that sorts as the element with these bits does: -0.0 as 0.0, NaN as
    the largest, whatever its sign."""
    bits = int(raw.element[1:])
    top = 1 << (bits - 1)
    key = raw
    if dtype in FLOATS:
        size = raw & (top - 1)
        key = m.select(raw < 0, m.invert(raw), raw ^ top)
        key = m.select(m.compare("eq", size, 0), top, key)
        key = m.select(size > INFINITY[dtype], -1, key)
    elif dtype in SIGNED:
        key = raw ^ top
    return m.invert(key) if descending else key


class Order:
    """Context of order.ll.j2."""

    fields = (("in", "ptr"), ("out", "ptr"), ("work", "ptr"), ("n", "i64"), ("inner", "i64"),
              ("start", "i64"), ("stop", "i64"), ("lines", "i64"), ("each", "i64"),
              ("room", "i64"))  # fmt: skip

    def __init__(self, dtype: str, descending: bool):
        self.size = ITEMSIZE[MEMORY[dtype]]
        self.bits = 8 * self.size
        self.key = self.raw = f"i{self.bits}"
        self.byte = -1 if self.bits == 8 else 255
        self.short = 16 * self.size  # up to here, counting bytes takes longer than insertion
        self.single = 32  # the same, where one element is wanted
        self.few = 16  # of a long line too, where most elements are not among them
        m = Emitter()
        raw = m.emit(f"load {self.raw}, ptr %x.p, align {self.size}", self.raw)
        self.read_key = sort_key(m, raw, dtype, descending).text
        self.read = m.text()

    def widen(self, name: str) -> str:
        return f"zext {self.key} {name} to i64" if self.bits < 64 else f"add i64 {name}, 0"

    def narrow(self, name: str) -> str:
        return f"trunc i64 {name} to {self.key}" if self.bits < 64 else f"add i64 {name}, 0"

    def room(self, n: int) -> int:
        """Bytes to sort a line in: its keys and places, twice."""
        return -(-2 * n * (self.size + 4) // 64) * 64

    def write(self, name: str) -> str:
        return render("order.ll.j2", order=self, symbol=name)


class Search:
    """Context of search.ll.j2."""

    fields = (("in", "ptr"), ("values", "ptr"), ("out", "ptr"), ("n", "i64"), ("per", "i64"),
              ("count", "i64"), ("each", "i64"))  # fmt: skip

    def __init__(self, dtype: str, result: str, right: bool):
        self.memory, self.result = MEMORY[dtype], MEMORY[result]
        s = KernelReader(dtype)
        x = s.load("%x.p", dtype)
        self.read = s.text()
        s.lines.clear()
        middle = s.load("%m.p", dtype)
        self.stays = (s.gt if right else s.ge)(middle, x).value.text
        self.compare = s.text()
        self.narrowed = ("add i64 %low, 0" if self.result == "i64"
                         else f"trunc i64 %low to {self.result}")  # fmt: skip

    def write(self, name: str) -> str:
        return render("search.ll.j2", search=self, symbol=name)


def launch(build: Any, node: Node, skeleton: Any, text: str, words: tuple[Word, ...], chunks: int,
           reads: list[Operand], writes: list[int]) -> None:  # fmt: skip
    whole = identity(type(skeleton).__name__, vars(skeleton))
    name = "o" + whole[:20]
    build.add_module(name, Module(partial(skeleton.write, name), whole, (name,)))
    number = build.plan.number[node]
    traffic = sum(v.type.nbytes for v in (*node.present(), *node.outputs))
    build.infos.append(KernelInfo(name, node.op.name, text, (number,) if number >= 0 else (),
                                  traffic, reads[0].type.numel))  # fmt: skip
    build.steps.append(Launch(name, words, chunks, tuple(r.buffer for r in reads), tuple(writes),
                              len(build.infos) - 1))  # fmt: skip


@template("order", lambda node: True, contiguous=True)
def order(build: Any, node: Node) -> None:
    """Part of the order of lines, from `start` up to `stop`, as places in them."""
    a = node.attributes
    x, result = build.operand(node.inputs[0]), build.result(node.outputs[0])
    shape, dim = x.type.shape, a["dim"]
    n, inner = shape[dim], math.prod(shape[dim + 1 :])
    lines = math.prod(shape[:dim]) * inner
    skeleton = Order(x.type.dtype.name, a["descending"])
    room = skeleton.room(n)
    each = -(-lines // min(CHUNKS, max(FEW_CHUNKS, AMPLE // room)))
    chunks = -(-lines // each)
    work = build.scratch(chunks * room, "work")
    numbers = (n, inner, a["start"], a["stop"], lines, each, room)
    words = (x.word, result.word, Word(0, work), *map(Word, numbers))
    ranks = f"ranks {a['start']} to {a['stop']} of {n}"
    launch(build, node, skeleton, f"order of {lines} lines, {ranks}", words, chunks, [x],
           [result.buffer, work])  # fmt: skip


@template("search", lambda node: True, contiguous=True)
def search(build: Any, node: Node) -> None:
    """For each value, how many of its sorted line come before it."""
    lines, values = (build.operand(v) for v in node.inputs)
    result = build.result(node.outputs[0])
    n, count = lines.type.shape[-1], values.type.numel
    per = count if len(lines.type.shape) == 1 else values.type.shape[-1]
    each = max(1024, -(-count // CHUNKS))
    skeleton = Search(lines.type.dtype.name, result.type.dtype.name, node.attributes["right"])
    words = (lines.word, values.word, result.word, *map(Word, (n, per, count, each)))
    launch(build, node, skeleton, f"search of {count} values in lines of {n}", words,
           -(-count // each), [lines, values], [result.buffer])  # fmt: skip
