"""Python functions applied to elements in place: apply_, map_, map2_; slow, as in torch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.types import bfloat16, to_bfloat16
from .convert import escape, method, type_name
from .readers import announce_write, readers
from .tensor import Tensor


def _write(target: Tensor, values: list[Any]) -> Tensor:
    """Writes Python values; they are cast to the tensor's dtype as torch casts them."""
    array = target._array
    if not values:
        return target
    if readers:
        announce_write(array)
    kind = np.float32 if target.dtype is bfloat16 else array.dtype
    made = np.array(values).astype(kind).reshape(array.shape)
    np.copyto(array, to_bfloat16(made) if target.dtype is bfloat16 else made)
    return target


def _check(name: str, *tensors: Tensor) -> None:
    for tensor in tensors:
        if tensor._requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use "
                               f"var.detach().{name}() instead.")  # fmt: skip
    escape(tensors[0], f"{name}()")


def _operand(name: str, target: Tensor, other: Any) -> np.ndarray:
    if not isinstance(other, Tensor) or other.dtype is not target.dtype:
        got = f"torch.{type_name(other.dtype)}" if isinstance(other, Tensor) else type(other)
        raise TypeError(f"{name}: expected torch.{type_name(target.dtype)} for 'other' (got {got})")
    return other.expand(tuple(target.shape))._values_array()


@method
def apply_(self: Tensor, callable: Any) -> Tensor:
    """apply_(callable): replaces each element x by callable(x)."""
    _check("apply_", self)
    return _write(self, [callable(v) for v in self._values_array().ravel().tolist()])


@method
def map_(self: Tensor, tensor: Any, callable: Any) -> Tensor:
    """map_(tensor, callable): replaces each element by callable(element, other element)."""
    _check("map_", self)
    other = _operand("map_", self, tensor)
    mine = self._values_array().ravel().tolist()
    return _write(self, [callable(a, b) for a, b in zip(mine, other.ravel().tolist())])


@method
def map2_(self: Tensor, x: Any, y: Any, callable: Any) -> Tensor:
    """map2_(x, y, callable): as map_, with two other tensors."""
    _check("map2_", self)
    first, second = _operand("map2_", self, x), _operand("map2_", self, y)
    lists = (self._values_array().ravel().tolist(), first.ravel().tolist(), second.ravel().tolist())
    return _write(self, [callable(a, b, c) for a, b, c in zip(*lists)])
