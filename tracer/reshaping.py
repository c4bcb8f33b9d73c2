"""In-place changes of a tensor's shape and strides: t_, squeeze_, as_strided_, resize_, set_.

The elements stay where they are: the tensor looks at its memory in another way. Its history gets
the view op's node, under the number torch gives in-place forms; a view's chain gets one more step.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any

import numpy as np

from ..ir.arguments import must_be
from ..ir.bind import notify, state
from ..ir.ops import strided as strided_ops
from ..ir.ops import views
from ..ir.ops.accumulate import strides_of
from ..ir.ops.kinds import require_value
from ..ir.types import c_word, type_word
from ..ir.value import Value
from .convert import escape, method
from .inplace import bump, check_history, shadow, take_history
from .memory import TypedStorage, UntypedStorage, flat_memory
from .referrers import referrers
from .storage import Storage, View
from .tape import OpNode
from .tensor import Tensor
from .unseen import base_of, forget_base


def look_anew(target: Tensor, function: Any, args: Any, kwargs: Any, forms: int) -> Tensor:
    """`target.function_(...)` for a view function; torch numbers its node `forms` higher."""
    tracked = state.grad_enabled and target.requires_grad
    if tracked:
        check_history(target)
    base_of(target)  # which is made of `target` as that is now
    may_have_views = target._view is None and target._storage is not None
    follows = getattr(state.top, "follows", None)
    followed = follows is not None and follows(target)
    if not followed:
        escape(target, f"{function.__name__.rstrip('_')}_()")
    before = shadow(target, copied=False) if tracked else target._twin()
    if tracked:  # as_strided_ counts from where the memory begins
        before._storage = Storage(target.storage_.root)
    if followed:
        notify("aliased", target, before)
    result = function(before, *args, **kwargs)
    storage = target.storage_
    bump(storage)
    if may_have_views:
        keep_views(target, result._view.chain[-1])
    target._array = result._array
    view = target._view
    if view is not None:
        chain = (*view.chain, *result._view.chain)
        target._view = View(view.base, chain, storage.version, view.origin)
    if tracked:
        node = result._node
        name = type(node).__name__
        node.__class__ = renamed(type(node), f"{name[:-1]}{int(name[-1]) + forms}")
        take_history(target, (node, result._nr))
    if followed:
        notify("looked_anew", target, result)
    return target


def keep_views(target: Tensor, step: Any) -> None:
    """What was viewed of `target` is found by way of what it was before `step`."""
    op, attrs, _ = step
    if op in (views.transpose_op, views.t_op):
        back = step  # its own inverse
    elif "stride" in attrs:
        size, stride, start = tuple(target.shape), target.stride(), -attrs["offset"]
        back = op, dict(size=size, stride=stride, offset=start, base_stride=attrs["stride"]), 0
    else:
        back = views.view_op, {"size": tuple(target.shape)}, 0  # some sizes of 1 came or went
    for view in referrers([target]):
        if type(view) is View and view.base is target:
            view.chain = (back, *view.chain)


@functools.cache
def renamed(cls: Any, name: str) -> type:
    """The node class of the same op under another name."""
    return type(name, (OpNode,), {"__slots__": (), "__module__": "builtins", "op": cls.op})


def _inplace_view(name: str, function: Any, forms: int = 1) -> None:
    def twin(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return look_anew(self, function, args, kwargs, forms)

    twin.__name__ = twin.__qualname__ = name
    twin.__doc__ = f"In-place version of `{name[:-1]}`: the shape changes, not the elements."
    setattr(Tensor, name, twin)


_inplace_view("t_", views.t)
_inplace_view("transpose_", views.transpose)
_inplace_view("swapaxes_", views.transpose)
_inplace_view("swapdims_", views.transpose)
_inplace_view("unsqueeze_", views.unsqueeze)
_inplace_view("squeeze_", views.squeeze, forms=3)
_inplace_view("as_strided_", strided_ops.as_strided)


@method
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """fill_diagonal_(fill_value, wrap=False): in tall matrices the diagonal may begin again."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    height, width = self.shape[:2]
    size, step, start = min(height, width), sum(self.stride()), self.storage_offset()
    self.as_strided((size,), (step,), start).fill_(fill_value)
    if wrap and self.ndim == 2 and height > width + 1:
        rest = -(-self.numel() // (width + 1)) - size
        start += self.stride(0) * (width + 1)
        self.as_strided((rest,), (step,), start).fill_(fill_value)
    return self


# --- other sizes, other memory -------------------------------------------------------------------


def _as_size(size: Any) -> tuple[int, ...]:
    wanted = views.sizes(tuple(size))
    if any(n < 0 for n in wanted):
        raise RuntimeError(f"requested resize to {list(wanted)}: sizes must not be negative")
    return wanted


@method
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """resize_(*sizes): other sizes on the same storage, which grows where it must."""
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    wanted = _as_size(size)
    escape(self, "resize_()")
    before, storage = self._array, self.storage_  # the elements first: they may be pending
    bump(storage)
    if wanted == before.shape:
        return self
    start, count = self.storage_offset(), math.prod(wanted)
    memory = flat_memory(storage, self.dtype.storage)
    if start + count > memory.size:
        grown = np.zeros(start + count, memory.dtype)
        grown[: memory.size] = memory
        storage.root = memory = grown
    self._array = memory[start : start + count].reshape(wanted)
    return self


@method
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """resize_as_(tensor): resize_(tensor.size())."""
    require_value("resize_as_", the_template, "the_template")
    return self.resize_(tuple(the_template.shape))


def resize(self: Any, *sizes: Any) -> Any:
    """resize(*sizes): as view, for tensors of as many elements (deprecated)."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    wanted = _as_size(sizes)
    if math.prod(wanted) != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, wanted))} ({math.prod(wanted)} elements in "
            f"total), but the given tensor has a size of {'x'.join(map(str, self.shape))} "
            f"({self.numel()} elements). autograd's resize can only change the shape of a given "
            "tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(wanted)


def resize_as(self: Any, tensor: Any) -> Any:
    """resize_as(tensor): resize(tensor.size()) (deprecated)."""
    require_value("resize_as", tensor, "tensor")
    return resize(self, tuple(tensor.shape))


Value.resize, Value.resize_as = resize, resize_as  # type: ignore[attr-defined]


@method
def set_(
    self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """set_(source=None, storage_offset=0, size=None, stride=None): looks at another storage."""
    if self.requires_grad and state.grad_enabled:
        check_history(self)
    escape(self, "set_()")
    if isinstance(source, Tensor):
        if source.dtype is not self.dtype:
            raise RuntimeError(f"Could not set tensor of type {source.dtype.name} to a tensor of "
                               f"type {self.dtype.name}")  # fmt: skip
        storage, array = source.storage_, source._array
    elif source is None:
        array = np.zeros(0, self.dtype.storage)
        storage = Storage(array)
    elif isinstance(source, TypedStorage | UntypedStorage):
        storage, array = source._storage, None
    else:
        raise must_be("set_", "source", "Tensor or Storage", source, 1)
    if array is None or size is not None:
        array = _looking_at(self, source, storage, storage_offset, size, stride)
    self._array, self._storage, self._view = array, storage, None
    forget_base(self)
    return self


def _looking_at(
    self: Tensor, source: Any, storage: Storage, start: int, size: Any, stride: Any
) -> np.ndarray:
    if isinstance(source, TypedStorage) and source.dtype is not self.dtype:
        raise RuntimeError(
            f"Expected a Storage of type {c_word(self.dtype)} or an UntypedStorage, "
            f"but got type {type_word(source.dtype)} for argument 1 'storage'"
        )
    memory = flat_memory(storage, self.dtype.storage)
    size = (memory.size - start,) if size is None else _as_size((tuple(size),))
    stride = tuple(strides_of(size)) if stride is None else tuple(stride)
    last = start + sum((n - 1) * s for n, s in zip(size, stride))
    if math.prod(size) and not 0 <= last < memory.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{start} are out of bounds for storage of size {memory.nbytes}"
        )
    return strided_ops.strided_array(memory, size, stride, start)


@method
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """is_set_to(tensor): the same storage, offset, sizes and strides?"""
    require_value("is_set_to", tensor, "tensor")
    return (self.storage_.pointer == tensor.storage_.pointer
            and self.storage_offset() == tensor.storage_offset()
            and self.shape == tensor.shape and self.stride() == tensor.stride())  # fmt: skip
