"""Several views at once: unbind, split, chunk and their kin."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..op import Decompose, define, same
from ..types import TensorType, normalize_dim
from ..value import Value, public
from .slices import at, select_op, select_scatter, slice_bounds, slice_op, slice_scatter
from .views import as_int, zeros


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
        samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dim": d}) for d in (0, 1)],
        vjp=dict(self=lambda grads, results_type, dim: _stack_grads(grads, results_type, dim)),
    )  # fmt: skip


def _join_grads(grads: tuple[Any, ...], types: Any, dim: int) -> Any:
    from .joining import cat

    return cat(*[zeros(t) if g is None else g for g, t in zip(grads, types)], dim=dim)


def equal_sizes(size: int, split_size: int, dim: int) -> tuple[int, ...]:
    """The sizes of pieces of `split_size`, the last one smaller where it must be."""
    if not split_size:
        return (0,)
    count = max(1, -(-size // split_size))
    return tuple(min(split_size, size - k * split_size) for k in range(count))


def given_sizes(size: int, split_sizes: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """The sizes of pieces as they are asked for, if they cover the dimension."""
    if any(n < 0 for n in split_sizes):
        raise RuntimeError("split_with_sizes expects split_sizes have only non-negative entries, "
                           f"but got split_sizes={list(split_sizes)}")  # fmt: skip
    if sum(split_sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size "
            f"at dimension {dim}), but got split_sizes={list(split_sizes)}"
        )
    return split_sizes


def bounds(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Where each piece begins and ends."""
    stops = list(itertools.accumulate(sizes))
    return [(stop - size, stop) for size, stop in zip(sizes, stops)]


def _split_op(name: str, attribute: str, sizes_of: Any, copies: bool = False) -> Any:
    """split by one size or by several; the unsafe forms are copies, not views."""

    def places(shape: Any, attrs: dict[str, Any]) -> list[tuple[int, int]]:
        return bounds(sizes_of(shape[attrs["dim"]], attrs[attribute], attrs["dim"]))

    def pieces(x: np.ndarray, **attrs: Any) -> tuple[np.ndarray, ...]:
        parts = [x[at(attrs["dim"], slice(*b))] for b in places(x.shape, attrs)]
        return tuple(p.copy() for p in parts) if copies else tuple(parts)

    def infer(self: TensorType, **attrs: Any) -> tuple[TensorType, ...]:
        dim, shape = attrs["dim"], self.shape
        return tuple(TensorType(self.dtype, (*shape[:dim], stop - start, *shape[dim + 1 :]))
                     for start, stop in places(shape, attrs))  # fmt: skip

    def put(base: Any, patch: Any, *, position: int, **attrs: Any) -> Any:
        start, stop = places(base.shape, attrs)[position]
        return slice_scatter(base, patch, dim=attrs["dim"], start=start, stop=stop, step=1)

    def expand(self: Any, **attrs: Any) -> tuple[Any, ...]:
        return tuple(slice_op(self, dim=attrs["dim"], start=start, stop=stop, step=1)
                     for start, stop in places(self.shape, attrs))  # fmt: skip

    # an op's attributes are the keywords of its evaluation
    def by_size(x: np.ndarray, *, split_size: int, dim: int) -> Any:
        return pieces(x, split_size=split_size, dim=dim)

    def by_sizes(x: np.ndarray, *, split_sizes: Any, dim: int) -> Any:
        return pieces(x, split_sizes=split_sizes, dim=dim)

    numpy: Any = by_size if attribute == "split_size" else by_sizes
    facts: dict[str, Any] = {} if copies else {"is_view": True, "multi_view": True, "put": put}
    sample = {"split_size": 2, "split_sizes": (1, 3)}[attribute]
    return define(
        name, "self -> *results", moves_data=True, kind="view", numpy=numpy, infer=infer,
        lower=Decompose(expand), shown=same(attribute, "self_sym_sizes"),
        samples=lambda rng: [((rng.standard_normal((3, 4)),), {attribute: sample, "dim": 1})],
        vjp=dict(self=lambda grads, results_type, dim: _join_grads(grads, results_type, dim)),
        **facts,
    )  # fmt: skip


unbind_op = define_unbind()
split_op = _split_op("split", "split_size", equal_sizes)
split_sizes_op = _split_op("split_with_sizes", "split_sizes", given_sizes)
unsafe_split_op = _split_op("unsafe_split", "split_size", equal_sizes, copies=True)
unsafe_sizes_op = _split_op("unsafe_split_with_sizes", "split_sizes", given_sizes, copies=True)


@public("unbind")
def unbind(input: Any, dim: int = 0) -> Any:
    """unbind(input, dim=0): all slices along a dimension."""
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_op(input, dim=normalize_dim(dim, input.ndim))


def _check_size(input: Any, split_size: int, dim: int) -> int:
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size="
                           f"{split_size}")  # fmt: skip
    dim = normalize_dim(dim, input.ndim)
    size = input.shape[dim]
    if split_size == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension "
                           f"size of {size}")  # fmt: skip
    return dim


def _size_attributes(input: Any, split_sizes: Any, dim: int) -> dict[str, Any]:
    """The attributes of a split by sizes, which the op itself compares with its input."""
    if not input.ndim:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    return {"split_sizes": tuple(as_int(n) for n in split_sizes),
            "dim": normalize_dim(dim, input.ndim)}  # fmt: skip


@public("split")
def split(tensor: Any, split_size_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    """split(tensor, split_size_or_sections, dim=0)."""
    parts = named.get("split_size", split_size_or_sections)
    if isinstance(parts, list | tuple):
        return split_with_sizes(tensor, parts, dim)
    parts = as_int(parts)
    return split_op(tensor, split_size=parts, dim=_check_size(tensor, parts, dim))


@public("split_with_sizes")
def split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """split_with_sizes(input, split_sizes, dim=0)."""
    return split_sizes_op(input, **_size_attributes(input, split_sizes, dim))


@public("unsafe_split")
def unsafe_split(input: Any, split_size: int, dim: int = 0) -> Any:
    """unsafe_split(input, split_size, dim=0): pieces that are not views."""
    return unsafe_split_op(input, split_size=split_size, dim=_check_size(input, split_size, dim))


@public("unsafe_split_with_sizes")
def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: int = 0) -> Any:
    """unsafe_split_with_sizes(input, split_sizes, dim=0): pieces that are not views."""
    return unsafe_sizes_op(input, **_size_attributes(input, split_sizes, dim))


def _chunk_size(input: Any, chunks: int, dim: int) -> Any:
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    return -(-input.shape[normalize_dim(dim, input.ndim)] // chunks)


@public("chunk")
def chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """chunk(input, chunks, dim=0): about equal pieces."""
    size = _chunk_size(input, chunks, dim)
    return split(input, size, dim) if size else split_with_sizes(input, [0] * chunks, dim)


@public("unsafe_chunk")
def unsafe_chunk(input: Any, chunks: int, dim: int = 0) -> Any:
    """unsafe_chunk(input, chunks, dim=0): about equal pieces that are not views."""
    size = _chunk_size(input, chunks, dim)
    return unsafe_split(input, size, dim) if size else (
        unsafe_split_with_sizes(input, [0] * chunks, dim))  # fmt: skip


# --- numpy's way to split ------------------------------------------------------------------------


@public("tensor_split")
def tensor_split(input: Any, indices_or_sections: Any = None, dim: int = 0, **named: Any) -> Any:
    """tensor_split(input, indices_or_sections, dim=0): at indices, or into so many sections."""
    where = next(iter(named.values()), indices_or_sections)
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a "
                           "tensor with 0 dims")  # fmt: skip
    dim = normalize_dim(dim, input.ndim)
    size = input.shape[dim]
    if isinstance(where, Value):
        if where.ndim > 1:
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to be a zero-"
                               "dimensional or one-dimensional tensor, but got a tensor with "
                               f"{where.ndim} dims")  # fmt: skip
        where = where.tolist()
    if not isinstance(where, list | tuple):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        least, extra = divmod(size, as_int(where))
        pieces = bounds((least + 1,) * extra + (least,) * (where - extra))
    else:
        marks = [slice_bounds(None, k, None, size)[1] for k in where]
        pieces = list(zip([0, *marks], [*marks, size]))
    return tuple(slice_op(input, dim=dim, start=start, stop=max(start, stop), step=1)
                 for start, stop in pieces)  # fmt: skip


def _axis_split(name: str, least: int, axis: int) -> Any:
    def function(input: Any, indices_or_sections: Any = None, *more: Any, **named: Any) -> Any:
        where = next(iter(named.values()), indices_or_sections)
        where = (where, *more) if more else where
        if input.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, "
                               f"but got a tensor with {input.ndim} dimensions!")  # fmt: skip
        dim = 0 if input.ndim == 1 else axis
        if isinstance(where, int) and (where <= 0 or input.shape[dim] % where):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                f"dimension {input.shape[dim]} is not divisible by the split_size {where}!"
            )
        return tensor_split(input, where, dim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input, indices_or_sections): tensor_split along a fixed dimension."
    return public(name)(function)


hsplit = _axis_split("hsplit", 1, 1)
vsplit = _axis_split("vsplit", 2, 0)
dsplit = _axis_split("dsplit", 3, 2)
