"""Operands in the dtype they are computed in, and arrays from one dtype to another."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.op import Op
from ..ir.types import FLOAT, DType, bfloat16, from_bfloat16, to_bfloat16
from .quiet import quiet, quietly, restore
from .scalars import RunTimeNumber
from .tensor import Tensor


def common_dtype(op: Op, inputs: tuple[Any, ...]) -> DType | None:
    """The dtype operands are computed in, or None when they are all of it already."""
    first: DType | None = None
    floor = 0
    for value in inputs:
        if isinstance(value, Tensor):
            if first is None:
                first = value.dtype
            elif value.dtype is not first:
                return op.promote(inputs)
        elif value is not None:
            # bool 0, int 1, float 2, complex 3: a number may raise the category of the result
            floor = max(floor, _NUMBER_CATEGORY.get(type(value), 3))
    if first is not None and first.category >= FLOAT and floor <= first.category:
        return None
    wanted = op.promote(inputs)
    return None if wanted is first and floor == 0 else wanted


_NUMBER_CATEGORY = {bool: 0, int: 1, float: 2, complex: 3}


def convert_operand(value: Any, dtype: DType) -> Any:
    """An operand as an array of `dtype`'s storage."""
    if value is None:
        return None
    if not isinstance(value, Tensor):
        return quietly(np.asarray(value).astype, dtype.compute)
    array = value._array
    if value.dtype is dtype:
        return array
    return cast_array(array, value.dtype, dtype)


def widened_operand(op: Op, position: int, value: Any, dtype: DType | None) -> Any:
    """An operand beside 16-bit floats, in float32; see Note [Numbers beside halves].

    `dtype` is what promotion gives, None for ops that do not promote.
    """
    if isinstance(value, Tensor) and type(value) is not RunTimeNumber:
        array = value._array
        if dtype is None:
            return compute_array(array, value.dtype)
        if op.reads_exactly(position, value, dtype):
            return compute_array(array, value.dtype).astype(dtype.compute)
        return compute_array(convert_operand(value, dtype), dtype)
    number = getattr(value, "_array", value)
    if value is None or dtype is None:
        return number
    number = quietly(np.asarray(number).astype, dtype.compute)
    exact = op.exact_second and position == 1
    return number if exact else compute_array(round_to(number, dtype), dtype)


def cast_array(array: np.ndarray, source: DType, target: DType) -> np.ndarray:
    """Converts between storages; complex to real drops the imaginary part as torch does."""
    if source is target:
        return array
    if source is bfloat16:
        array = from_bfloat16(array)
    if target is bfloat16:
        if array.dtype.kind == "c":
            array = array.real
        return to_bfloat16(array.astype(np.float32))
    token = quiet()
    try:
        if array.dtype.kind == "c" and target.category != 3 and target.category != 0:
            array = array.real
        return array.astype(target.storage)
    finally:
        restore(token)


def compute_array(array: Any, dtype: DType) -> Any:
    """A half-precision array widened to float32."""
    if dtype is bfloat16:
        return from_bfloat16(array)
    return array.astype(np.float32) if dtype.name == "float16" else array


def round_to(array: np.ndarray, dtype: DType) -> np.ndarray:
    if dtype is bfloat16:
        return to_bfloat16(array)
    return quietly(array.astype, dtype.storage, "K", "unsafe", True, False)
