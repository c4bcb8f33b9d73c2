"""Stores that pass by the caches: which they are, and the second body of a kernel that has some.

Note [Streamed stores]
    A core that stores to a line first reads it, unless it is told to write around its caches. What
    a kernel stores is not in them any more when the next one reads it, if it moves more than they
    hold. So large results are streamed: `x * w + b` of 4 million floats takes 0.8 of the time on
    two threads, 0.75 on one, and what reads the result takes the same. (Below `MOVED` the reader
    would wait: 1.2 times as long for results of 4 MB.)
    Such stores must be aligned. Results that the library allocates are, arrays of others may not
    be, so the kernel has two bodies and looks at the addresses of its call.
"""

from __future__ import annotations

import re
from typing import Any

from .kernel import LOAD, STORE
from .nest import Nest
from .target import Target

MOVED = 1 << 25  # bytes of all arrays of a kernel
LARGE = 1 << 22  # bytes of a result
ALIGNED = 16  # what memory is aligned to by malloc, and what stores to be streamed must be
MARK = "\0stream\0"  # after a store that may be streamed, until the text is written
FENCE = "@llvm.x86.sse.sfence()"  # others see streamed stores in any order, up to here
METADATA = "!0 = !{i32 1}\n"


def streamed(nest: Nest, axis: int, wide: int, buffer_of: Any, target: Target) -> frozenset[int]:
    """The stores of a nest that are streamed; see Note [Streamed stores]."""
    kernel = nest.kernel
    if target.name == "neon" or nest.form == "column" or nest.pieces > 1 or not nest.loops:
        return frozenset()
    arrays = {buffer_of(a.var): a.var.type.nbytes for a in kernel.accesses()}
    if sum(arrays.values()) < MOVED:
        return frozenset()
    read = {buffer_of(i.access.var) for i in kernel.instrs if i.kind == LOAD}  # type: ignore
    found = set()
    for i, instr in enumerate(kernel.instrs):
        if instr.kind != STORE or instr.access.dynamic:  # type: ignore[union-attr]
            continue
        var, strides = instr.access.var, nest.strides[i]  # type: ignore[union-attr]
        steps = [wide, *(s for d, s in enumerate(strides) if d != axis)]
        aligned = not any(s * var.dtype.itemsize % ALIGNED for s in steps)
        large = var.type.nbytes >= LARGE and buffer_of(var) not in read
        if large and aligned and strides[axis] == 1:
            found.add(i)
    return frozenset(found)


def two_bodies(text: str, name: str, pointers: tuple[str, ...]) -> str:
    """The text with its body a second time, where the marked stores are streamed."""
    call = f"  call void @{name}.body("
    plain = text[text.index(f"define internal void @{name}.body(") :]
    body = plain.replace(f"@{name}.body(", f"@{name}.streamed(")
    body = re.sub(rf"align \d+{MARK}", f"align {ALIGNED}, !nontemporal !0", body)
    body = body.replace("  ret void\n", f"  call void {FENCE}\n  ret void\n")
    made = text[text.index(call) : text.index("\n", text.index(call)) + 1]
    text = text.replace(made, choice(pointers, made.replace(".body(", ".streamed(")) + made)
    return f"{text.replace(MARK, '')}{body}declare void {FENCE}\n{METADATA}"


def choice(pointers: tuple[str, ...], call: str) -> str:
    """Lines that make a call and return, if all these addresses are aligned."""
    lines, bits = "", "0"
    for k, pointer in enumerate(dict.fromkeys(pointers)):
        lines += f"  %address{k} = ptrtoint ptr {pointer} to i64\n"
        lines += f"  %bits{k} = or i64 {bits}, %address{k}\n"
        bits = f"%bits{k}"
    return lines + (
        f"  %bits = and i64 {bits}, {ALIGNED - 1}\n  %aligned = icmp eq i64 %bits, 0\n"
        f"  br i1 %aligned, label %stream, label %store\n"
        f"stream:\n{call}  ret void\nstore:\n"
    )
