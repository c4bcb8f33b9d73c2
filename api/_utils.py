"""`torch._utils`: helpers of torch's that programs import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import cat
from .tracer.tensor import Tensor


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """All elements of tensors of one dtype, one after another."""
    return cat([tensor.contiguous().view(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """Views of what `_flatten_dense_tensors` made, with the shapes of `tensors`."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors))


def _take_tensors(tensors: Any, size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type that together have at most `size_limit` bytes."""
    waiting: dict[str, list[Tensor]] = {}
    sizes: dict[str, int] = {}
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        if waiting.get(kind) and sizes[kind] + size > size_limit:
            yield waiting.pop(kind)
        if kind not in waiting:
            waiting[kind], sizes[kind] = [], 0
        waiting[kind].append(tensor)
        sizes[kind] += size
    yield from waiting.values()
