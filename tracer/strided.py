"""How a tensor lies in memory: layout and device facts, new tensors like this one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..ir.arguments import as_dtype
from ..ir.ops.strided import strided_array
from ..ir.types import default_dtype
from .convert import method
from .creation import finish, legacy_tensor
from .number_data import tensor_of
from .placing import placed
from .scalars import is_tensor
from .tensor import Tensor, require_cpu


class layout:
    """How elements are laid out; only `strided` exists here."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):
    """The order of elements that copies are asked to have."""

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
Tensor.layout = property(lambda self: strided)  # type: ignore[attr-defined]


@method
def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """new_tensor(data): a copy of `data` of this tensor's dtype."""
    require_cpu(device)
    wanted = as_dtype(dtype) or self.dtype
    if is_tensor(data):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach()."
            "clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        return finish(data.detach().clone().to(wanted), requires_grad)
    return finish(tensor_of(data, wanted), requires_grad)


@placed
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """empty_strided(size, stride): memory of these strides, filled with zeros."""
    require_cpu(device)
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of "
                           f"strides ({len(stride)})")  # fmt: skip
    count = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride))
    if any(s < 0 for s in stride) or count >> 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and "
                           f"strides={list(stride)}; give smaller or positive ones")  # fmt: skip
    wanted = as_dtype(dtype) or default_dtype()
    memory = np.zeros(count, wanted.storage)
    return finish(Tensor._wrap(strided_array(memory, size, stride, 0), wanted), requires_grad)


@method
def new_empty_strided(
    self: Tensor, size: Any, stride: Any, *, dtype: Any = None, **more: Any
) -> Any:
    """new_empty_strided(size, stride): of this tensor's dtype."""
    return empty_strided(size, stride, dtype=as_dtype(dtype) or self.dtype, **more)


@method
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """new(*sizes) or new(data): the legacy constructor, of this tensor's dtype."""
    if len(args) == 1 and isinstance(args[0], list | tuple) and type(args[0]).__name__ != "Size":
        return tensor_of(args[0], self.dtype)
    return legacy_tensor(Tensor, args, kwargs).to(self.dtype)
