"""Large tensors: eager execution asks for a native kernel before it calls NumPy.

Note [Large calls]
    A call one of whose operands has `LARGE` elements or more is offered to native kernels
    (api/eager_kernels.py, installed here because the tracer may not see the compiler); so is the
    derivative of a call, whole, where it gets or saved such a tensor. What is declined (layouts,
    dtypes, ops without a kernel) runs by NumPy, which also stands in where kernels are off.

    The choice depends on the operands' sizes, dtypes and layouts, so that one call has one result,
    run after run. Ops that round at most once are exempt: they give the same bits either way, and
    are left to NumPy until something else has paid for loading the compiler.

    Sums, differences and products are NumPy's at any size: its loops are as fast as memory (13 us
    for 65,536 elements, 0.2 ms for a million), and a kernel gains nothing for its call.

    65,536 elements are 30 to 80 us of NumPy's time; a native call costs 5 to 15 us beside its
    arithmetic. Ops with `many_passes` (softmax, norms, gelu) have kernels from `SEVERAL` elements
    on: 4,096 are 23 to 80 us of NumPy's time, and 12 to 23 of a kernel's. Matrix products are
    judged by their multiplications instead: `MANY` are about as long, and a weight of many elements
    may meet a few rows only.

    A call that is being recorded is made this way once: from then on the compiled graph computes
    it. So a kernel of its own must pay for its compilation, some 10 ms, at once: only what is
    `2 ** RECORDED` times as large has one.

`WENGERT_EAGER_KERNELS` sets the number of elements; 0 turns native kernels off.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from numpy import ndarray

from ..ir.bind import state

LARGE = int(os.environ.get("WENGERT_EAGER_KERNELS", 1 << 16)) or sys.maxsize
SEVERAL = LARGE >> 4
MANY = LARGE << 6
RECORDED = 7


def _decline(*call: Any) -> Any:
    return NotImplemented


class Kernels:
    """What large calls are offered to; both answer NotImplemented where they decline.

    `forward(op, arrays, attrs)` gives what the op's NumPy evaluation would, `backward(node, grads)`
    what the node's puller would.
    """

    forward: Any = staticmethod(_decline)
    backward: Any = staticmethod(_decline)


def limit_of(op: Any) -> int:
    """From how many elements on a call of `op` is large, if it is no product."""
    return SEVERAL if op.many_passes else LARGE


def is_large(op: Any, arrays: Any) -> bool:
    """Is a call of `op` large?"""
    if op.kind == "product":
        work = multiplications(arrays[-2].size, arrays[-1].shape)
        return work >= MANY and (work >> RECORDED >= MANY or not is_recorded())
    limit = limit_of(op)
    return any_large(arrays, limit) and (any_large(arrays, limit << RECORDED) or not is_recorded())


def multiplications(size: int, shape: tuple[int, ...]) -> int:
    """How many a matrix product makes whose operands have a size and a shape; vectors have few."""
    return size * shape[-1] if len(shape) > 1 else 0


def is_large_type(op: Any, types: Any) -> bool:
    """Is a call of `op` on operands of these types (or None) large?"""
    if op.kind == "product":
        return multiplications(types[-2].numel, types[-1].shape) >= MANY
    limit = limit_of(op)
    return any(t is not None and t.numel >= limit for t in types)


def is_recorded() -> bool:
    """Is there an interpreter that looks on as ops run?"""
    return state.top is not state.bottom and state.top is not state.marking


def any_large(arrays: Any, limit: int) -> bool:
    """Is one of the operands (arrays, numbers, None) large?"""
    for array in arrays:  # noqa: SIM110  any() takes three times as long
        if array.__class__ is ndarray and array.size >= limit:
            return True
    return False
