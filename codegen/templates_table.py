"""Ops with loop skeletons of their own: which there are, and what builds their launches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..ir.graph import Node
from ..ir.program import KernelInfo, Launch, Module, Word
from ..ir.types import TensorType
from . import gemm
from .affine import strides_of
from .classify import CONTIGUOUS, TEMPLATES
from .gemm_core import FIELDS
from .gemm_fold import Fold, merged
from .gemm_shared import shared_modules
from .kernel import describe
from .prelude import prelude
from .private import numel
from .render import identity
from .target import Target


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


def template(name: str, can: Callable[[Node], bool], contiguous: bool = False,
             ) -> Callable[..., Any]:  # fmt: skip
    """Registers the builder of a template and which nodes it takes; `contiguous`: with operands
    in row-major order only."""

    def enter(build: Callable[[Any, Node], None]) -> Callable[[Any, Node], None]:
        TEMPLATES[name] = can
        BUILDERS[name] = build
        if contiguous:
            CONTIGUOUS.add(name)
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
    text = f"{p.m}x{p.k} @ {p.k}x{p.n} batch {p.batch} strides {p.a} {p.b} {p.c} {p.dtype}"
    return text if p.fold is None else f"{text} k {p.fold.k} columns {p.fold.columns}"


def described(node: Node, a: Operand, b: Operand) -> gemm.Matmul:
    """A product node as data; folded where k or the columns are several dimensions."""
    shape, dtype = node.outputs[0].shape, node.outputs[0].dtype.name
    lead, inner, steps = len(shape) - 2, node.attributes.get("inner", 1), strides_of(shape)
    m, n = shape[lead:]
    batch = tuple(zip(shape[:lead], a.strides, b.strides, steps))
    summed, beside = b.type.shape[lead : lead + inner], b.type.shape[lead + inner :]
    k = merged(tuple(zip(summed, a.strides[lead + 1 :], b.strides[lead:])))
    columns = merged(tuple(zip(beside, b.strides[lead + inner :])))
    fold = Fold(k, columns, n) if len(k) > 1 or len(columns) > 1 else None
    (_, k_of_a, k_of_b), (_, column) = (*k, (1, 1, 1))[0], (*columns, (1, 1))[0]
    return gemm.Matmul("product", dtype, m, n, numel(summed), (a.strides[lead], k_of_a),
                       (k_of_b, column), steps[lead:], batch, fold=fold)  # fmt: skip


@template("matmul", lambda node: node.outputs[0].dtype.name in gemm.ELEMENT)
def matmul(build: Any, node: Node, tail: Any = None) -> None:
    """Products with any strides and batch; `tail`, a codegen.tail.Tail, is done on the way out."""
    a, b = (build.operand(v) for v in node.inputs)
    c = build.result(node.outputs[0] if tail is None else tail.result)
    if c.type.numel == 0:
        return
    product = described(node, a, b)
    extras: list[Operand] = []
    if tail is not None:
        product = replace(product, epilogue=tail.epilogue())
        extras = [Operand(build.buffer_of(v), v.type, (), offset) for v, offset in tail.names()]
    launch_product(build, node, product, tail, [a, b, c, *extras])


def launch_product(build: Any, node: Node, product: gemm.Matmul, tail: Any,
                   operands: list[Operand]) -> None:  # fmt: skip
    then, calls = product.epilogue.probe(product.dtype) if product.epilogue else ("", False)
    in_place = any(o.buffer == operands[2].buffer for o in operands[3:])
    whole = identity(replace(product, epilogue=None), then, len(operands), in_place, build.target)
    name = "g" + whole[:20]
    kernel = gemm.emit(replace(product, name=f"{name}.product"), build.target,
                       gemm.choose(product, build.target, in_place))  # fmt: skip
    element = gemm.ELEMENT[product.dtype]
    for module in shared_modules(element, kernel.imports, build.target):
        build.add_module(module.symbols[0], module)
    work = Word(0, build.scratch(max(64, kernel.workspace), "work"))
    light = not calls  # math functions of a tail want the whole optimiser
    if isinstance(kernel.kernel, gemm.Packed) and kernel.kernel.items == 1:
        name = enter_alone(build, kernel.kernel, then, light)
        words = core_words(kernel, operands, work)
    else:
        write = partial(product_text, name, kernel, len(operands) + 1, build.target)
        build.add_module(name, Module(write, whole, (name,), kernel.imports, light))
        words = (*(o.word for o in operands), work)
    build.infos.append(product_info(build, name, node, product, tail, kernel.kind, operands))
    reads = tuple(o.buffer for k, o in enumerate(operands) if k != 2)
    build.steps.append(Launch(name, words, 1, reads, (operands[2].buffer, work.buffer),
                              len(build.infos) - 1))  # fmt: skip


def enter_alone(build: Any, packed: gemm.Packed, then: str, light: bool) -> str:
    """The symbol that does a single packed product: the core, or an entry that adds an epilogue,
    which products of many shapes share."""
    if packed.epilogue is None:
        return packed.symbol
    whole = identity("alone", packed.symbol, packed.product.swapped, packed.extras, then,
                     packed.adds, build.target)  # fmt: skip
    name = "g" + whole[:20]
    write = partial(alone_text, name, packed, build.target)
    build.add_module(name, Module(write, whole, (name,), (packed.symbol,), light))
    return name


def alone_text(name: str, packed: gemm.Packed, target: Target) -> str:
    text = packed.alone(name) + gemm.declarations({packed.symbol})
    return text + prelude(packed.calls, target)


def core_words(kernel: gemm.KernelText, operands: list[Operand], work: Word) -> tuple[Word, ...]:
    """The core's argument block, then the batch's number and what an epilogue reads."""
    known = {f"%{name}": o.word for name, o in zip(kernel.parameters, operands)}
    known["%work"] = work
    words = [known.get(value, Word(0)) if kind == "ptr" else Word(int(value))
             for _, kind, value in kernel.kernel.arguments]  # fmt: skip
    own = [Word(0)] * (len(FIELDS) - len(words))
    return (*words, *own, Word(0), *(o.word for o in operands[3:]))


def product_text(name: str, kernel: gemm.KernelText, count: int, target: Target) -> str:
    declared = gemm.declarations(set(kernel.imports))
    return kernel.text + declared + prelude(kernel.calls, target) + entry(name, kernel.name, count)


def product_info(build: Any, name: str, node: Node, product: gemm.Matmul, tail: Any, kind: str,
                 operands: list[Operand]) -> KernelInfo:  # fmt: skip
    number = build.plan.number[node]
    nodes = {number, *(tail.kernel.nodes if tail else ())} - {-1}
    text = f"{node.op.name} {describe_product(product)} ({kind})"
    if product.epilogue is not None:
        text += "\nthen " + describe(tail.kernel, build.name_of)
    traffic = sum(o.type.nbytes for o in operands)
    return KernelInfo(name, "matmul", text, tuple(sorted(nodes)), traffic,
                      product.flops * product.items)  # fmt: skip
