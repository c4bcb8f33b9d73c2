"""More ways to make tensors: triangle indices, range, buffers, permuted memory."""

from __future__ import annotations

import builtins
import math
import warnings
from typing import Any

import numpy as np

from ..ir.op import TABLE
from ..ir.ops import questions
from ..ir.types import INTEGER, DType, default_dtype, int64, type_word
from .creation import arange, as_dtype, finish, number
from .strided import empty_strided
from .tensor import Size, Tensor, require_cpu

questions.make_size = Size


def _triangle_indices(name: str, keep: Any) -> Any:
    def function(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
        layout: Any = None,
    ) -> Tensor:  # fmt: skip
        require_cpu(device)
        for word, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{word} must be non-negative, got{size}")
        wanted = as_dtype(dtype) or int64
        if wanted.category != INTEGER:
            raise NotImplementedError(f"\"{name}\" not implemented for '{type_word(wanted)}'")
        mask = keep(np.ones((row, col), np.bool_), offset)
        return Tensor._wrap(np.stack(np.nonzero(mask)).astype(wanted.storage), wanted)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(row, col, offset=0): rows and columns of a triangle's elements."
    return function


tril_indices = _triangle_indices("tril_indices", np.tril)
triu_indices = _triangle_indices("triu_indices", np.triu)


def range(
    start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None,
    layout: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """range(start=0, end, step=1): as arange, with the end included (deprecated)."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces "
        "values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    start, end, step = number(start), number(end), number(step)
    count = math.floor((end - start) / step) + 1
    wanted = as_dtype(dtype) or default_dtype()
    return arange(start, start + count * step - step / 2, step, dtype=wanted, device=device,
                  requires_grad=requires_grad)  # fmt: skip


def scalar_tensor(
    s: Any, *, dtype: Any = None, device: Any = None, layout: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """scalar_tensor(s): a tensor without dimensions, of the default dtype unless given."""
    require_cpu(device)
    wanted = as_dtype(dtype) or default_dtype()
    return finish(TABLE["full"](size=(), fill_value=number(s), dtype=wanted), requires_grad)


def frombuffer(
    buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """frombuffer(buffer, *, dtype, count=-1, offset=0): a vector on the buffer's memory."""
    size = memoryview(buffer).nbytes
    if not 0 <= offset < max(size, 1):
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer "
                         f"length ({size} bytes) minus 1")  # fmt: skip
    if count < 0 and (size - offset) % dtype.itemsize:
        raise ValueError(f"buffer length ({size} bytes) after offset ({offset} bytes) must be a "
                         f"multiple of element size ({dtype.itemsize})")  # fmt: skip
    array = np.frombuffer(buffer, dtype.storage, count, offset)
    return finish(Tensor._wrap(array, dtype), requires_grad)


def empty_permuted(size: Any, physical_layout: Any, **more: Any) -> Tensor:
    """empty_permuted(size, physical_layout): dense memory whose dimensions lie in this order."""
    size, order = tuple(size), tuple(physical_layout)
    if sorted(order) != list(builtins.range(len(size))):
        raise RuntimeError(f"Number of dimensions in size does not match the length of the "
                           f"physical_layout: {list(size)} and {list(order)}")  # fmt: skip
    stride, step = [0] * len(size), 1
    for d in reversed(order):
        stride[d], step = step, step * size[d]
    return empty_strided(size, stride, **more)
