"""Kernels of single numbers: what takes long is done for several of them at once, in one vector.

An optimizer has two powers for each parameter, of numbers that differ. One by one they take longer
than the update of a small parameter does; in the lanes of a vector all of them take as long as one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .classify import COSTLY, cost
from .kernel import APPLY, STORE, Instr
from .lines import Lines
from .reader import KernelReader, evaluate
from .scalar import REGISTER, Scalar

Known = dict[int, Scalar]


def need_abreast(lines: Lines, effects: list[int], known: Known) -> None:
    """Emits the effects of a kernel without loops, and all they need."""
    instrs = lines.kernel.instrs
    needed = lines.closure(effects, known)
    for level in levels(needed, instrs):
        lines.need([i for i in level if not is_costly(instrs[i])], known)
        groups: dict[Any, list[int]] = {}
        for i in level:
            if is_costly(instrs[i]):
                groups.setdefault(likeness(i, instrs), []).append(i)
        for group in groups.values():
            most = lines.target.lanes(REGISTER[instrs[group[0]].dtype])
            for k in range(0, len(group), most):
                apply_abreast(lines, group[k : k + most], known)
    lines.need(effects, known)


def is_costly(instr: Instr) -> bool:
    is_float = REGISTER[instr.dtype] in ("float", "double")
    return is_float and instr.kind == APPLY and cost(instr.node) >= COSTLY  # type: ignore[arg-type]


def levels(needed: list[int], instrs: list[Instr]) -> Iterator[list[int]]:
    """The instructions but stores, by how many costly ones come before them."""
    depth: dict[int, int] = {}
    for i in needed:
        operands = [o for o in instrs[i].operands if o in depth]
        depth[i] = max((depth[o] + is_costly(instrs[o]) for o in operands), default=0)  # type: ignore
    for level in range(max(depth.values(), default=-1) + 1):
        yield [i for i in needed if depth[i] == level and instrs[i].kind != STORE]


def likeness(i: int, instrs: list[Instr]) -> Any:
    """The same for instructions that can be the lanes of one."""
    instr = instrs[i]
    node = instr.node
    operands = tuple(None if o is None else instrs[o].dtype for o in instr.operands)
    return node.op.name, node.attrs, instr.dtype, operands  # type: ignore[union-attr]


def apply_abreast(lines: Lines, group: list[int], known: Known) -> None:
    """The same op of several numbers; lanes that are left do what the last one does."""
    if len(group) == 1:
        lines.need(group, known)
        return
    instrs = [lines.kernel.instrs[i] for i in group]
    lanes = 1 << (len(group) - 1).bit_length()
    vector = lines.reader(lanes)
    with vector.at(group[0]):
        operands = []
        for numbers in zip(*(instr.operands for instr in instrs)):
            values = [None if o is None else known[o] for o in numbers]
            operands.append(None if values[0] is None else packed(vector, values))
        result = evaluate(vector, instrs[0], operands)
        for lane, i in enumerate(group):
            element = result.value.element
            text = f"extractelement {vector.m.type(element)} {result.value.text}, i32 {lane}"
            known[i] = Scalar(lines.s.m.emit(text, element), result.dtype)


def packed(vector: KernelReader, values: list[Any]) -> Scalar:
    """Numbers as the lanes of a vector."""
    m, (first, *_) = vector.m, values
    if all(x == first for x in values) and first.value.constant is not None:
        return vector.const(first.value.constant, first.dtype)
    element, text = first.value.element, "poison"
    for lane in range(m.lanes):
        x = values[min(lane, len(values) - 1)].value.text
        text = m.emit(f"insertelement {m.type(element)} {text}, {element} {x}, i32 {lane}",
                      element).text  # fmt: skip
    return Scalar(m.argument(text, element), first.dtype)
