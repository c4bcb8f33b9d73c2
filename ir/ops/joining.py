"""Joining and rearranging: cat, stack, flip, roll, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, Template, define
from ..types import TensorType, normalize_dim, result_type
from ..value import Value, public
from .slices import select_op, slice_op
from .views import as_int, sizes, unsqueeze_op


def _cat_infer(*tensors: TensorType, dim: int) -> TensorType:
    first = tensors[0].shape
    for k, t in enumerate(tensors[1:], 1):
        if len(t.shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and "
                               f"{len(t.shape)}")  # fmt: skip
        for d, (a, b) in enumerate(zip(first, t.shape)):
            if d != dim and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but "
                    f"got size {b} for tensor number {k} in the list."
                )
    total = sum(t.shape[dim] for t in tensors)
    dtype = tensors[0].dtype
    return TensorType(dtype, (*first[:dim], total, *first[dim + 1 :]))


def _cat_rule(grad: Any, tensors_type: Any, i: int, dim: int) -> Any:
    start = sum(t.shape[dim] for t in tensors_type[:i])
    stop = start + tensors_type[i].shape[dim]
    return slice_op(grad, dim=dim, start=start, stop=stop, step=1)


cat = define(
    "cat", "*tensors -> result", moves_data=True, infer=_cat_infer, lower=Template("concat"),
    numpy=lambda *tensors, dim: np.concatenate(tensors, axis=dim),
    vjp=dict(tensors=_cat_rule),
)  # fmt: skip
stack = define(
    "stack", "*tensors -> result", moves_data=True,
    numpy=lambda *tensors, dim: np.stack(tensors, axis=dim),
    infer=lambda *tensors, dim: TensorType(
        tensors[0].dtype, (*tensors[0].shape[:dim], len(tensors), *tensors[0].shape[dim:])),
    lower=Decompose(lambda *tensors, dim: cat(*[unsqueeze_op(t, dim=dim) for t in tensors],
                                              dim=dim)),
    vjp=dict(tensors=lambda grad, i, dim: select_op(grad, dim=dim, index=i)),
)  # fmt: skip


def tensor_list(name: str, tensors: Any) -> list[Any]:
    """A non-empty list of Values of one dtype, by promotion."""
    if isinstance(tensors, Value) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")  # fmt: skip
    found = list(tensors)
    if not found:
        raise (ValueError if name == "cat" else RuntimeError)(
            f"{name}(): expected a non-empty list of Tensors"
        )
    for k, t in enumerate(found):
        if not isinstance(t, Value):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got "
                            f"{type(t).__name__}")  # fmt: skip
    dtype = result_type(found)
    return [t if t.dtype is dtype else t.to(dtype) for t in found]


@public("cat", "concat", "concatenate", method=False)
def cat_(tensors: Any, dim: int = 0) -> Any:
    """cat(tensors, dim=0): joins along an existing dimension; empty 1-d tensors are skipped."""
    found = tensor_list("cat", tensors)
    kept = [t for t in found if tuple(t.shape) != (0,)] or found[:1]
    for k, t in enumerate(kept):
        if not t.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    dim = normalize_dim(dim, kept[0].ndim)
    _cat_infer(*[t.type_ for t in kept], dim=dim)
    return cat(*kept, dim=dim)


@public("stack", method=False)
def stack_(tensors: Any, dim: int = 0) -> Any:
    """stack(tensors, dim=0): joins along a new dimension."""
    found = tensor_list("stack", tensors)
    first = tuple(found[0].shape)
    for k, t in enumerate(found):
        if tuple(t.shape) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(t.shape)} at entry {k}"
            )
    return stack(*found, dim=normalize_dim(dim, len(first) + 1))


def _cat_with(input: Any, *others: Any, dim: int) -> Any:
    """`input` and `others` joined: cat for derivative rules."""
    return cat(input, *others, dim=dim)


Value.cat_with = _cat_with  # type: ignore[attr-defined]

flip_op = define(
    "flip", "self -> result", moves_data=True, infer=lambda self, *, dims: self,
    numpy=lambda x, *, dims: np.flip(x, dims).copy(), lower=Template("flip"),
    vjp=dict(self=lambda grad, dims: flip_op(grad, dims=dims)),
)  # fmt: skip


@public("flip")
def flip(input: Any, *dims: Any, **named: Any) -> Any:
    """flip(input, dims): reversed along the given dimensions."""
    wanted = tuple(normalize_dim(d, input.ndim) for d in sizes(
        (named["dims"],) if "dims" in named else dims))  # fmt: skip
    if len(set(wanted)) != len(wanted):
        raise RuntimeError(f"dim {wanted[0]} appears multiple times in the list of dims")
    return flip_op(input, dims=wanted)


roll_op = define(
    "roll", "self -> result", moves_data=True, infer=lambda self, **_: self,
    numpy=lambda x, *, shifts, dims: np.roll(x, shifts, dims),
    vjp=dict(self=lambda grad, shifts, dims: roll_op(
        grad, shifts=tuple(-n for n in shifts), dims=dims)),
)  # fmt: skip


@public("roll")
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """roll(input, shifts, dims=None): without dims the tensor is rolled flat."""
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if dims is None or dims == ():
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return roll_op(input.flatten(), shifts=shifts, dims=(0,)).reshape(tuple(input.shape))
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, "
                           f"dims:{len(dims)}")  # fmt: skip
    return roll_op(input, shifts=shifts, dims=tuple(normalize_dim(d, input.ndim) for d in dims))


def _repeat_rule(grad: Any, self_type: TensorType, repeats: Any) -> Any:
    lead = len(repeats) - self_type.ndim
    shape: list[int] = []
    for k, n in enumerate(repeats):
        shape += [n, self_type.shape[k - lead] if k >= lead else 1]
    folded = grad.reshape(tuple(shape)).sum(tuple(range(0, len(shape), 2)))
    return folded.reshape(self_type.shape)


def _repeat_expand(self: Any, *, repeats: Any) -> Any:
    lead = len(repeats) - self.ndim
    shape = (1,) * lead + tuple(self.shape)
    spread = self.view(tuple(n for size in shape for n in (1, size)))
    spread = spread.expand(tuple(n for r, size in zip(repeats, shape) for n in (r, size)))
    return spread.reshape(tuple(r * size for r, size in zip(repeats, shape)))


repeat_op = define(
    "repeat", "self -> result", moves_data=True, numpy=lambda x, *, repeats: np.tile(x, repeats),
    infer=lambda self, *, repeats: TensorType(self.dtype, tuple(
        r * n for r, n in zip(repeats, (1,) * (len(repeats) - self.ndim) + self.shape))),
    lower=Decompose(_repeat_expand), vjp=dict(self=_repeat_rule),
)  # fmt: skip


@public("repeat", spaces="")
def repeat(input: Any, *repeats: Any, **named: Any) -> Any:
    """repeat(*repeats): copies of the tensor along each dimension."""
    wanted = sizes((named["repeats"],) if "repeats" in named else repeats)
    if len(wanted) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")  # fmt: skip
    if any(n < 0 for n in wanted):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(wanted)}")
    return repeat_op(input, repeats=wanted)


__all__ = ["as_int"]
