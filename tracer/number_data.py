"""Tensors of numbers that are known at run time only: `torch.tensor([lr, 2 * lr])` in a recording.

Such numbers are data as they are beside tensors. Where each would be an op of its own in a long
list, or where the dtype holds whole numbers, their values are asked for.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..ir.bind import state
from ..ir.op import TABLE
from ..ir.ops.creation import filled
from ..ir.types import FLOAT, DType, default_dtype
from .data import from_data
from .scalars import NUMBERS, RunTimeNumber, plain_number
from .tensor import Tensor

MOST = 64  # run-time numbers in one tensor


def tensor_of(data: Any, dtype: DType | None) -> Tensor:
    """A tensor of a number, nested sequences, or an array, always copied."""
    if state.top is state.bottom:
        return from_data(data, dtype)
    wanted = dtype or default_dtype()
    found: list[Any] = []
    shape = shape_of_numbers(data, found)
    run_time = sum(type(item) is RunTimeNumber for item in found)
    if shape is None or not 0 < run_time <= MOST or wanted.category != FLOAT:
        return from_data(plain_number(data), dtype)
    return joined(found, shape, wanted)


def shape_of_numbers(data: Any, found: list[Any]) -> tuple[int, ...] | None:
    """The shape of nested sequences of numbers, which go into `found`; None of anything else."""
    if type(data) not in (tuple, list):
        found.append(data)
        return () if type(data) is RunTimeNumber or type(data) in NUMBERS else None
    inner = {shape_of_numbers(item, found) for item in data}
    only = inner.pop() if len(inner) == 1 else None
    return None if only is None else (len(data), *only)


def joined(numbers: list[Any], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """One tensor of its own of all numbers, in order."""
    if not shape:
        return filled("tensor", (), numbers[0], dtype)  # type: ignore[no-any-return]
    parts: list[Tensor] = []
    for given, items in groupby(numbers, lambda item: type(item) is RunTimeNumber):
        if given:
            parts.extend(item.to(dtype).expand((1,)) for item in items)
        else:
            parts.append(from_data(list(items), dtype))
    row = TABLE["cat"](*parts, dim=0)
    return row if len(shape) == 1 else row.view(shape).clone()  # type: ignore[no-any-return]
