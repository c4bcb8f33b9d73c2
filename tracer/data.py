"""Python data as tensors: numbers, nested sequences and arrays, with torch's errors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ..ir.bind import notify
from ..ir.types import (
    BY_NAME,
    FLOAT,
    DType,
    bfloat16,
    default_complex,
    default_dtype,
    from_numpy_dtype,
    int64,
    promote_types,
    to_bfloat16,
)
from .eager import cast_array
from .quiet import quietly
from .tensor import Tensor

_SEQUENCES = (list, tuple)


def from_data(data: Any, dtype: DType | None) -> Tensor:
    """A tensor of a number, nested sequences, or an array, always copied."""
    made = Tensor._wrap(*array_of(data, dtype))
    notify("made", made)
    return made


def array_of(data: Any, dtype: DType | None) -> tuple[np.ndarray, DType]:
    """The data in memory of its own, and its dtype."""
    if isinstance(data, np.ndarray | np.generic):
        notify("from_array")
        source = check_array(data)
        array = np.array(data, dtype=source.storage, order="C")
        if dtype is None:
            return array, source
        return cast_array(array, source, dtype).reshape(array.shape), dtype
    if hasattr(data, "__array__") and not isinstance(data, _SEQUENCES):
        return array_of(np.asarray(data), dtype)
    values = plain(data)
    inferred = dtype or element_dtype(data) or infer_dtype(values)
    if inferred is bfloat16:
        return to_bfloat16(build(values, np.dtype(np.float32))), bfloat16
    return build(values, inferred.storage), inferred


def check_array(array: Any) -> DType:
    """The dtype of an array that can be a tensor's memory."""
    dtype = from_numpy_dtype(array.dtype)
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if not array.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. "
                         "Conversion between byte orders is currently not supported.")  # fmt: skip
    return dtype


def plain(data: Any) -> Any:
    """Nested lists of Python numbers; arrays inside become lists, tensors are numbers."""
    if isinstance(data, _SEQUENCES):
        if any(isinstance(item, str) for item in data):
            if not isinstance(data[0], str):
                raise TypeError("new(): invalid data type 'str'; use numbers")
            raise ValueError("too many dimensions 'str'")
        return [plain(item) for item in data]
    if isinstance(data, Tensor):
        if data.numel() != 1:
            if data.dtype.category < FLOAT:
                raise TypeError(
                    "only integer tensors of a single element can be converted to an index"
                )
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    if isinstance(data, np.ndarray | np.generic):
        return data.tolist()
    if isinstance(data, bool | int | float | complex):
        return data
    if hasattr(data, "__index__"):
        return data.__index__()
    if (
        hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, str | bytes | dict)
    ):
        return [plain(data[k]) for k in range(len(data))]
    if isinstance(data, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'; use numbers")
    raise RuntimeError(f"Could not infer dtype of {type(data).__name__}; use numbers, arrays, or "
                       "sequences of them")  # fmt: skip


def element_dtype(data: Any) -> DType | None:
    """The common dtype of sequences that hold tensors or NumPy numbers; None if they do not."""
    typed: list[DType] = []
    stack, numbers = [data], set()
    while stack:
        item = stack.pop()
        if isinstance(item, _SEQUENCES):
            stack.extend(item)
        elif isinstance(item, Tensor | np.ndarray | np.generic):
            typed.append(item.dtype if isinstance(item, Tensor) else from_numpy_dtype(item.dtype))
        elif isinstance(item, int | float | complex):
            numbers.add(item.__class__(0))
    return functools.reduce(promote_types, [*typed, *map(infer_dtype, numbers)]) if typed else None


def infer_dtype(values: Any) -> DType:
    """bool, int64, the default float or complex, by the highest kind of number in it."""
    highest = -1
    stack = [values]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        else:
            kind = 0 if isinstance(item, bool) else 1 if isinstance(item, int) else (
                2 if isinstance(item, float) else 3)  # fmt: skip
            highest = max(highest, kind)
    if highest < 0 or highest == 2:
        return default_dtype()
    return (BY_NAME["bool"], int64, None, default_complex())[highest]


def build(values: Any, storage: np.dtype) -> np.ndarray:
    """An array of nested lists; errors in torch's words."""
    counts = storage.kind in "iu"
    try:
        found = np.array(values) if counts else quietly(np.array, values, storage)
    except ValueError as error:
        check_ragged(values, 0)
        raise TypeError(f"cannot make a tensor of this data: {error}") from None
    except TypeError:
        check_ragged(values, 0)
        raise TypeError("must be real number, not complex") from None
    return whole(found, storage) if counts else found


def whole(found: np.ndarray, storage: np.dtype) -> np.ndarray:
    """Numbers as whole ones; negative ones may wrap around in an unsigned type, as in C."""
    if found.dtype.kind == "O" or (found.dtype.kind == "u" and storage == np.int64):
        raise ValueError("Overflow when unpacking long long; use floats or smaller numbers")
    low, high = np.iinfo(storage).min, np.iinfo(storage).max
    if low == 0 and found.dtype.kind == "i":
        low = -high
    if found.dtype.kind != "b" and not ((found >= low) & (found <= high)).all():
        raise RuntimeError(f"value cannot be converted to type {storage.name} without overflow")
    return found.astype(storage)


def check_ragged(values: Any, depth: int) -> None:
    """torch's error for sequences of unequal lengths."""
    if not isinstance(values, list) or not values:
        return
    lengths = {len(v) if isinstance(v, list) else None for v in values}
    if len(lengths) > 1:
        first = len(values[0]) if isinstance(values[0], list) else None
        if first is None:
            raise TypeError("must be real number, not list")
        odd = next(v for v in values if not isinstance(v, list) or len(v) != first)
        if not isinstance(odd, list):
            raise TypeError(f"expected sequence of length {first} at dim {depth + 1}")
        raise ValueError(f"expected sequence of length {first} at dim {depth + 1} (got {len(odd)})")
    for value in values:
        check_ragged(value, depth + 1)
