"""Shape and layout of a tensor: sizes, strides, contiguity, transposes by attribute."""

from __future__ import annotations

from typing import Any

from ..ir.arguments import format_order, warn_once
from ..ir.bind import notify
from ..ir.op import TABLE
from ..ir.types import normalize_dim
from ..ir.value import Value
from .convert import method
from .tensor import Size, Tensor


def size(self: Any, dim: Any = None) -> Any:
    """The shape, or the size of one dimension."""
    if dim is None:
        return self.shape
    return self.shape[normalize_dim(dim, self.ndim)]


def numel(self: Any) -> int:
    """How many elements."""
    return Size(self.shape).numel()


for _function in (size, numel):
    setattr(Value, _function.__name__, _function)
Value.nelement = numel  # type: ignore[attr-defined]
Value.dim = Value.ndimension = lambda self: self.ndim  # type: ignore[attr-defined]
Value.is_floating_point = lambda self: self.dtype.is_floating_point  # type: ignore[attr-defined]
Value.is_complex = lambda self: self.dtype.is_complex  # type: ignore[attr-defined]
Value.is_signed = lambda self: self.dtype.is_signed  # type: ignore[attr-defined]
Value.element_size = lambda self: self.dtype.itemsize  # type: ignore[attr-defined]


def element_strides(tensor: Tensor) -> tuple[int, ...]:
    """Strides in elements; those of size-0 and size-1 dimensions as torch reports them."""
    if is_contiguous(tensor):
        strides, step = [], 1
        for n in reversed(tensor.shape):
            strides.append(step)
            step *= max(n, 1)
        return tuple(reversed(strides))
    notify("strides_asked", tensor)
    return tuple(s // tensor._array.itemsize for s in tensor._array.strides)


@method
def stride(self: Tensor, dim: Any = None) -> Any:
    """Distance in elements between neighbours along each dimension."""
    strides = element_strides(self)
    return strides if dim is None else strides[normalize_dim(dim, len(strides))]


@method
def storage_offset(self: Tensor) -> int:
    """Where the first element lies in the storage, in elements."""
    if self._array.size == 0:
        return 0
    notify("strides_asked", self)
    notify("fact_asked", self, "storage_offset")
    root = self.storage_.root
    here = self._array.__array_interface__["data"][0]
    return (here - root.__array_interface__["data"][0]) // self._array.itemsize


@method
def data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    notify("fact_asked", self, "data_ptr")
    return self._array.__array_interface__["data"][0] if self._array.size else 0


@method
def is_contiguous(self: Tensor, memory_format: Any = None) -> bool:
    """Are the elements in the format's order (row-major unless given) without gaps?"""
    notify("layout_asked", self)
    try:
        order = format_order(memory_format, self._array.ndim)
    except RuntimeError:  # a format of tensors of another rank
        return False
    if order is None:
        return self._array.flags.c_contiguous
    return self._array.transpose(order).flags.c_contiguous


@method
def contiguous(self: Tensor, memory_format: Any = None) -> Tensor:
    """The tensor itself if contiguous, else a copy in the format's order."""
    order = format_order(memory_format, self._array.ndim)
    if is_contiguous(self, memory_format):
        return self
    return TABLE["contiguous"](self) if order is None else TABLE["contiguous"](self, order=order)


@method
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the slowest to the fastest in memory."""
    strides = element_strides(self)
    return tuple(sorted(range(len(strides)), key=lambda d: (-strides[d], d)))


IDENTITY = "Tensor.{} is deprecated on 0-D tensors. This function is the identity in these cases."


@property
def T(self: Any) -> Any:
    """The tensor with its dimensions reversed."""
    if self.ndim == 0:
        warn_once(IDENTITY.format("T"))
    elif self.ndim != 2:
        warn_once("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is "
                  "deprecated and it will throw an error in a future release. Consider `x.mT` to "
                  "transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` "
                  "to reverse the dimensions of a tensor.")  # fmt: skip
    return self.permute(tuple(range(self.ndim))[::-1])


@property
def mT(self: Any) -> Any:
    """The last two dimensions swapped."""
    if self.ndim == 0:
        warn_once(IDENTITY.format("mT"))
        return self
    if self.ndim < 2:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got "
                           f"{self.ndim}-D tensor.")  # fmt: skip
    return self.transpose(-2, -1)


Value.T, Value.mT = T, mT  # type: ignore[attr-defined]
