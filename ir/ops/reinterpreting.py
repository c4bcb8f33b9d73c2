"""view(dtype): the same bytes as elements of another type. torch keeps no history through it."""

from __future__ import annotations

from typing import Any

from ..op import Op
from ..types import DType, TensorType, int32, type_word
from .kinds import view


def _check(input: Any, dtype: DType) -> None:
    """torch's words for memory that cannot be read as elements of another size."""
    if input.dtype.itemsize == dtype.itemsize:
        return
    end = f"to view {type_word(input.dtype)} as {type_word(dtype)} (different element sizes)"
    if not input.ndim:
        raise RuntimeError(f"self.dim() cannot be 0 {end}")
    eager = hasattr(input, "_array")  # only eager values have strides
    if eager and input.stride(-1) != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {end}, but got {input.stride(-1)}")
    ratio = dtype.itemsize // input.dtype.itemsize
    if not ratio:
        return
    numbers = {"self.size(-1)": input.shape[-1]}
    if eager:
        numbers["self.storage_offset()"] = input.storage_offset()
        numbers.update({f"self.stride({k})": s for k, s in enumerate(input.stride()[:-1])})
    for word, number in numbers.items():
        if number % ratio:
            raise RuntimeError(f"{word} must be divisible by {ratio} {end}, but got {number}")


def _infer(self: TensorType, *, dtype: DType) -> TensorType:
    if not self.shape:
        return TensorType(dtype, ())
    return TensorType(dtype, (
        *self.shape[:-1], self.shape[-1] * self.dtype.itemsize // dtype.itemsize))  # fmt: skip


view_dtype_op: Op = view(
    "view_dtype", "self -> result", lower=None, infer=_infer,
    numpy=lambda x, *, dtype: x.view(dtype.storage),
    put=lambda base, patch, *, dtype: view_dtype_op(patch.contiguous(), dtype=base.dtype),
    samples=lambda rng: [((rng.integers(0, 9, (2, 3)),), {"dtype": int32})],
)  # fmt: skip


def view_dtype(input: Any, dtype: DType) -> Any:
    """`input`'s memory as elements of `dtype`."""
    _check(input, dtype)
    return view_dtype_op(input.detach(), dtype=dtype)
