"""Ops with loop skeletons of their own: which there are, and what builds their launches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from ..ir.types import TensorType
from . import gemm
from .classify import TEMPLATES
from .gemm_core import core_symbol, core_text
from .prelude import prelude


@dataclass(frozen=True)
class Operand:
    """A strided part of a buffer; strides and offset in elements."""

    buffer: int
    type: TensorType
    strides: tuple[int, ...]
    offset: int

    @property
    def word(self) -> Word:
        return Word(self.offset * self.type.dtype.itemsize, self.buffer)


BUILDERS: dict[str, Callable[[Any, Node], None]] = {}


def template(name: str, can: Callable[[Node], bool]) -> Callable[..., Any]:
    """Registers the builder of a template and which nodes it takes."""

    def enter(build: Callable[[Any, Node], None]) -> Callable[[Any, Node], None]:
        TEMPLATES[name] = can
        BUILDERS[name] = build
        return build

    return enter


# --- matrix products -----------------------------------------------------------------------------

ENTRY = """define void @{name}(ptr %args, i64 %chunk) nounwind {{
{loads}  call void @{inner}({arguments})
  ret void
}}
"""


def entry(name: str, inner: str, count: int) -> str:
    """A function that takes `count` pointers from its argument block and calls `inner`."""
    loads = "".join(
        f"  %p{k} = getelementptr inbounds ptr, ptr %args, i64 {k}\n"
        f"  %x{k} = load ptr, ptr %p{k}, align 8\n" for k in range(count)
    )  # fmt: skip
    listed = ", ".join(f"ptr %x{k}" for k in range(count))
    return ENTRY.format(name=name, inner=inner, loads=loads, arguments=listed)


def describe_product(p: gemm.Matmul) -> str:
    return f"{p.m}x{p.k} @ {p.k}x{p.n} batch {p.batch} strides {p.a} {p.b} {p.c} {p.dtype}"


@template("matmul", lambda node: node.outputs[0].dtype.name in gemm.ELEMENT)
def matmul(build: Any, node: Node) -> None:
    """mm and bmm with any strides."""
    a, b = (build.operand(v) for v in node.inputs)
    c = build.result(node.outputs[0])
    m, k = a.type.shape[-2:]
    n = b.type.shape[-1]
    batch = tuple(zip(a.type.shape[:-2], a.strides, b.strides, c.strides))
    product = gemm.Matmul("product", a.type.dtype.name, m, n, k, a.strides[-2:], b.strides[-2:],
                          c.strides[-2:], batch)  # fmt: skip
    name = "g" + hashlib.sha256(repr((product, build.target)).encode()).hexdigest()[:20]
    if c.type.numel == 0:
        return
    launch_product(build, node, product, name, (a, b, c))


def launch_product(build: Any, node: Node, product: gemm.Matmul, name: str,
                   operands: tuple[Operand, ...]) -> None:  # fmt: skip
    kernel = gemm.emit(replace(product, name=f"{name}.product"), build.target)
    text = (
        kernel.text + gemm.declarations(set(kernel.imports)) + prelude(kernel.calls, build.target)
    )
    text += entry(name, kernel.name, len(operands) + 1)
    element = gemm.ELEMENT[product.dtype]
    if core_symbol(element) in kernel.imports:
        core = Module(core_text(element, build.target), (core_symbol(element),),
                      ("wengert_parallel",), True, True)  # fmt: skip
        build.modules.setdefault(core_symbol(element), core)
    build.modules.setdefault(name, Module(text, (name,), kernel.imports, True))
    work = build.scratch(max(64, kernel.workspace), "work")
    number = build.plan.number[node]
    build.infos.append(KernelInfo(
        name, "matmul", f"{node.op.name} {describe_product(product)} ({kernel.kind})",
        (number,) if number >= 0 else (), sum(o.type.nbytes for o in operands),
        product.flops * product.items,
    ))  # fmt: skip
    words = (*(o.word for o in operands), Word(0, work))
    reads = tuple(o.buffer for o in operands if o is not operands[2])
    build.steps.append(Launch(name, words, 1, reads, (operands[2].buffer, work),
                              len(build.infos) - 1))  # fmt: skip
