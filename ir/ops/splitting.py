"""Several views at once: unbind, split, chunk and their kin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType, normalize_dim
from ..value import public
from .slices import at, select_op, select_scatter, slice_op, slice_scatter
from .views import zeros


def _stack_grads(grads: tuple[Any, ...], types: Any, dim: int) -> Any:
    present = [zeros(t) if g is None else g for g, t in zip(grads, types)]
    from .joining import stack

    return stack(*present, dim=dim)


def define_unbind() -> Any:
    """unbind has as many outputs as the dimension is long: its rule is joint over them."""
    return define(
        "unbind", "self -> *results", is_view=True, multi_view=True, moves_data=True, kind="view",
        numpy=lambda x, *, dim: tuple(np.moveaxis(x, dim, 0)[k, ...] for k in range(x.shape[dim])),
        infer=lambda self, *, dim: tuple(
            TensorType(self.dtype, self.shape[:dim] + self.shape[dim + 1 :])
            for _ in range(self.shape[dim])),
        put=lambda base, patch, *, position, dim: select_scatter(
            base, patch, dim=dim, index=position),
        lower=Decompose(lambda self, *, dim: tuple(
            select_op(self, dim=dim, index=k) for k in range(self.shape[dim]))),
        vjp=dict(self=lambda grads, results_type, dim: _stack_grads(grads, results_type, dim)),
    )  # fmt: skip


def _pieces(x: np.ndarray, *, sizes: tuple[int, ...], dim: int) -> tuple[np.ndarray, ...]:
    stops = np.cumsum(sizes)
    return tuple(x[at(dim, slice(int(e - n), int(e)))] for n, e in zip(sizes, stops))


def _join_grads(grads: tuple[Any, ...], types: Any, dim: int) -> Any:
    from .joining import cat

    return cat(*[zeros(t) if g is None else g for g, t in zip(grads, types)], dim=dim)


def define_split() -> Any:
    return define(
        "split", "self -> *results", is_view=True, multi_view=True, moves_data=True, kind="view",
        numpy=_pieces,
        infer=lambda self, *, sizes, dim: tuple(
            TensorType(self.dtype, (*self.shape[:dim], n, *self.shape[dim + 1 :])) for n in sizes),
        put=lambda base, patch, *, position, sizes, dim: slice_scatter(
            base, patch, dim=dim, start=sum(sizes[:position]), stop=sum(sizes[: position + 1]),
            step=1),
        lower=Decompose(lambda self, *, sizes, dim: tuple(
            slice_op(self, dim=dim, start=sum(sizes[:k]), stop=sum(sizes[: k + 1]), step=1)
            for k in range(len(sizes)))),
        vjp=dict(self=lambda grads, results_type, dim: _join_grads(grads, results_type, dim)),
    )  # fmt: skip


unbind_op = define_unbind()
split_op = define_split()


@public("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    """unbind(input, dim=0): all slices along a dimension."""
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_op(input, dim=normalize_dim(dim, input.ndim))


@public("split")
def split(input: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """split(input, split_size_or_sections, dim=0)."""
    dim = normalize_dim(dim, input.ndim)
    size = input.shape[dim]
    parts = split_size_or_sections
    if isinstance(parts, int):
        if parts < 0:
            raise RuntimeError(f"split expects split_size be non-negative, but got "
                               f"split_size={parts}")  # fmt: skip
        if parts == 0 and size:
            raise RuntimeError("split expects split_size > 0 for a non-empty dimension")
        count = max(1, -(-size // parts)) if parts else 1
        parts = [min(parts, size - k * parts) for k in range(count)] if parts else [0]
    parts = tuple(int(n) for n in parts)
    if sum(parts) != size or any(n < 0 for n in parts):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(parts)}"
        )
    return split_op(input, sizes=parts, dim=dim)


@public("split_with_sizes")
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """split_with_sizes(input, split_sizes, dim=0)."""
    return split(input, list(split_sizes), dim)


@public("chunk")
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """chunk(input, chunks, dim=0): about equal pieces."""
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = input.shape[normalize_dim(dim, input.ndim)]
    return split(input, max(1, -(-size // chunks)), dim)
