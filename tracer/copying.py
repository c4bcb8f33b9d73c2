"""Copies of tensors: `copy`, `deepcopy` and pickles.

Tensors that share memory share it in their deep copies too. A pickle holds a tensor's own elements
only, in the order they lie in memory (`torch.save` keeps storages).
"""

from __future__ import annotations

import copy as copy_module
from typing import Any

import numpy as np

from ..ir.ops.layouts import order_of
from ..ir.types import DType
from .convert import escape, method
from .memory import flat_memory
from .storage import Storage
from .tensor import Tensor

INTERNAL = {"_retains"}  # attributes that belong to a tensor's history


def own_attributes(tensor: Tensor) -> dict[str, Any]:
    """What the user attached to the tensor."""
    return {name: value for name, value in tensor.__dict__.items() if name not in INTERNAL}


def same_place(array: np.ndarray, flat: np.ndarray, copied: np.ndarray) -> np.ndarray:
    """The view of `copied` that lies in it as `array` lies in `flat`."""
    if not array.size:
        return array.copy()
    offset = array.__array_interface__["data"][0] - flat.__array_interface__["data"][0]
    return np.ndarray(array.shape, array.dtype, copied, offset, array.strides)


@method
def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if self.grad_fn is not None:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    escape(self, "deepcopy()")
    array, storage = self._array, self.storage_  # the elements first: they may be pending
    flat = flat_memory(storage, np.dtype(np.uint8))
    if id(storage) not in memo:
        memo[id(storage)] = Storage(flat.copy())
    copied = memo[id(storage)]
    fresh = self.__class__._wrap(same_place(array, flat, copied.root), self.dtype)
    fresh._storage, fresh._requires_grad = copied, self._requires_grad
    memo[id(self)] = fresh
    if self._grad is not None:
        fresh._grad = copy_module.deepcopy(self._grad, memo)
    fresh.__dict__.update(copy_module.deepcopy(own_attributes(self), memo))
    return fresh


@method
def __copy__(self: Tensor) -> Tensor:
    array = self._array  # first: what is pending has its own class only then
    fresh = self.__class__._wrap(array, self.dtype)
    fresh._storage = self.storage_
    fresh._requires_grad = self._requires_grad
    return fresh


@method
def __reduce_ex__(self: Tensor, protocol: int) -> Any:
    escape(self, "a pickle")
    order = order_of(self) or tuple(range(self._array.ndim))
    elements = np.ascontiguousarray(self._array.transpose(order)).reshape(
        [self._array.shape[d] for d in order]
    )
    facts = (self.__class__, elements, order, self.dtype, self._requires_grad)
    return rebuild, (*facts, own_attributes(self))


def rebuild(cls: Any, elements: np.ndarray, order: tuple[int, ...], dtype: DType,
            requires_grad: bool, extra: dict[str, Any]) -> Tensor:  # fmt: skip
    """The tensor a pickle describes."""
    if not elements.flags.writeable:
        elements = elements.copy()
    fresh = cls._wrap(elements.transpose(np.argsort(order)), dtype)
    fresh._requires_grad = requires_grad
    fresh.__dict__.update(extra)
    return fresh
