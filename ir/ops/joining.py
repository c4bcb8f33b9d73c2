"""Joining and rearranging: cat, stack, flip, roll, rot90, repeat, repeat_interleave."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import check_elements
from ..op import Decompose, Op, Template, define
from ..pull import sum_to_shape
from ..types import INTEGER, TensorType, no_kernel, normalize_dim, result_type
from ..value import Value, public
from .kinds import accumulate_type
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


def _cat_rule(grad: Any, tensors_type: Any, needs: Any, dim: int) -> list[Any]:
    parts, start = [], 0
    for type_, needed in zip(tensors_type, needs):
        stop = start + type_.shape[dim]
        parts.append(slice_op(grad, dim=dim, start=start, stop=stop, step=1) if needed else None)
        start = stop
    return parts


def _cat(*tensors: np.ndarray, dim: int) -> np.ndarray:
    """Contiguous, whatever the order of the parts' elements."""
    if all(t.flags.c_contiguous for t in tensors):
        return np.concatenate(tensors, axis=dim)
    shape = list(tensors[0].shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    return np.concatenate(tensors, axis=dim, out=np.empty(shape, tensors[0].dtype))


cat = define(
    "cat", "*tensors -> result", moves_data=True, infer=_cat_infer, lower=Template("concat"),
    batch="shift", numpy=_cat,
    samples=lambda rng: [((rng.standard_normal((3, 2)), rng.standard_normal((3, 1))), {"dim": 1})],
    vjp={("tensors",): _cat_rule},
)  # fmt: skip
stack = define(
    "stack", "*tensors -> result", moves_data=True, batch="shift",
    numpy=lambda *tensors, dim: _cat(*(np.expand_dims(t, dim) for t in tensors), dim=dim),
    infer=lambda *tensors, dim: TensorType(
        tensors[0].dtype, (*tensors[0].shape[:dim], len(tensors), *tensors[0].shape[dim:])),
    lower=Decompose(lambda *tensors, dim: cat(*[unsqueeze_op(t, dim=dim) for t in tensors],
                                              dim=dim)),
    samples=lambda rng: [((rng.standard_normal(3), rng.standard_normal(3)),
        {"dim": d}) for d in (0, 1)],
    vjp={("tensors",): lambda grad, needs, dim: _slices(grad, needs, dim)},
)  # fmt: skip


def _slices(grad: Any, needs: Any, dim: int) -> list[Any]:
    return [select_op(grad, dim=dim, index=k) if needed else None
            for k, needed in enumerate(needs)]  # fmt: skip


# The outputs of an LSTM's steps, under the name of the fused layer that torch runs on the CPU.
lstm_outputs = define(
    "lstm_outputs", "*tensors -> result", moves_data=True, batch="decompose",
    node="MkldnnRnnLayerBackward0",
    numpy=lambda *tensors: np.stack(tensors),
    infer=lambda *tensors: TensorType(tensors[0].dtype, (len(tensors), *tensors[0].shape)),
    lower=Decompose(lambda *tensors: stack(*tensors, dim=0)),
    samples=lambda rng: [((rng.standard_normal(3), rng.standard_normal(3)), {})],
    vjp={("tensors",): lambda grad, needs: _slices(grad, needs, 0)},
)  # fmt: skip


def tensor_list(name: str, tensors: Any) -> list[Any]:
    """A non-empty list of Values of one dtype, by promotion."""
    if isinstance(tensors, Value) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
                        f"{type(tensors).__name__}")  # fmt: skip
    found = list(tensors)
    if not found:
        if name == "cat":
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    for k, t in enumerate(found):
        if not isinstance(t, Value):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got "
                            f"{type(t).__name__}")  # fmt: skip
    dtype = result_type(found)
    return [t if t.dtype is dtype else t.to(dtype) for t in found]


@public("cat", "concat", "concatenate", method=False, out="cast")
def cat_(tensors: Any, dim: int = 0) -> Any:
    """cat(tensors, dim=0): joins along an existing dimension; empty 1-d tensors fit anywhere."""
    found = tensor_list("cat", tensors)
    kept = [t for t in found if tuple(t.shape) != (0,)] or found[:1]
    for k, t in enumerate(kept):
        if not t.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    first = tuple(kept[0].shape)
    dim = normalize_dim(dim, len(first))
    nothing = (*first[:dim], 0, *first[dim + 1 :])
    found = [t.view(nothing) if tuple(t.shape) == (0,) else t for t in found]
    _cat_infer(*[t.type_ for t in found], dim=dim)
    return cat(*found, dim=dim)


@public("stack", method=False, out="cast")
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

flip_op: Op = define(
    "flip", "self -> result", moves_data=True, infer=lambda self, *, dims: self,
    numpy=lambda x, *, dims: np.flip(x, dims).copy(), lower=Template("flip"),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"dims": d}) for d in ((0,), (0, 1))],
    vjp=dict(self=lambda grad, dims: flip_op(grad, dims=dims)),
)  # fmt: skip


@public("flip")
def flip(input: Any, *dims: Any, **named: Any) -> Any:
    """flip(input, dims): reversed along the given dimensions."""
    wanted = tuple(normalize_dim(d, input.ndim) for d in sizes(
        (named["dims"],) if "dims" in named else dims))  # fmt: skip
    if len(set(wanted)) != len(wanted):
        raise RuntimeError(f"dim {wanted[0]} appears multiple times in the list of dims")
    return flip_op(input, dims=wanted if input.ndim else ())


roll_op: Op = define(
    "roll", "self -> result", moves_data=True, infer=lambda self, **_: self,
    numpy=lambda x, *, shifts, dims: np.roll(
        np.asarray(x, order="C"), shifts if dims else shifts[0], dims or None),
    samples=lambda rng: [((rng.standard_normal((3, 4)),),
        {"shifts": (1,), "dims": d}) for d in ((), (1,))],
    vjp=dict(self=lambda grad, shifts, dims: roll_op(
        grad, shifts=tuple(-n for n in shifts), dims=dims)),
)  # fmt: skip


@public("roll", out="none")
def roll(input: Any, shifts: Any, dims: Any = None) -> Any:
    """roll(input, shifts, dims=None): without dims the tensor is rolled flat."""
    shifts = (as_int(shifts),) if hasattr(shifts, "__index__") else tuple(shifts)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        if len(shifts) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return roll_op(input, shifts=shifts, dims=())
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(dims) != len(shifts):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, "
                           f"dims:{len(dims)}")  # fmt: skip
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
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
    lower=Decompose(_repeat_expand),
    samples=lambda rng: [((rng.standard_normal((3, 4)),), {"repeats": (2, 1, 3)})],
    vjp=dict(self=_repeat_rule),
)  # fmt: skip


@public("repeat", spaces="")
def repeat(input: Any, *repeats: Any, **named: Any) -> Any:
    """repeat(*repeats): copies of the tensor along each dimension."""
    if not repeats and "repeats" not in named:
        raise TypeError('repeat() missing 1 required positional arguments: "repeats"')
    wanted = sizes((named["repeats"],) if "repeats" in named else repeats)
    if len(wanted) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of "
                           "dimensions of tensor")  # fmt: skip
    if any(n < 0 for n in wanted):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(wanted)}")
    return repeat_op(input, repeats=wanted)


# --- turning and repeating -----------------------------------------------------------------------


def _rot90_expand(self: Any, *, k: int, dims: tuple[int, int]) -> Any:
    if k % 4 == 2:
        return flip_op(self, dims=dims)
    if k % 4 == 1:
        return flip_op(self, dims=(dims[1],)).transpose(*dims)
    return flip_op(self, dims=(dims[0],)).transpose(*dims) if k % 4 else self


rot90_op: Op = define(
    "rot90", "self -> result", moves_data=True,
    numpy=lambda x, *, k, dims: np.array(np.rot90(x, k, dims), order="C"),
    infer=lambda self, *, k, dims: TensorType(
        self.dtype, self.shape if k % 2 == 0 else tuple(
            self.shape[{dims[0]: dims[1], dims[1]: dims[0]}.get(d, d)] for d in range(self.ndim))),
    lower=Decompose(_rot90_expand),
    samples=lambda rng: [((rng.standard_normal((2, 3)),), {"k": k, "dims": (0, 1)})
                         for k in range(4)],
    vjp=dict(self=lambda grad, k, dims: rot90_op(grad, k=-k, dims=dims)),
)  # fmt: skip


@public("rot90")
def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """rot90(input, k=1, dims=(0, 1)): turned by 90 degrees k times, from dims[0] to dims[1]."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    first, second = (normalize_dim(d, input.ndim) for d in dims)
    if first == second:
        raise RuntimeError("expected rotation dims to be different, but got dim0 = "
                           f"{dims[0]} and dim1 = {dims[1]}")  # fmt: skip
    return rot90_op(input, k=int(k), dims=(first, second))


@public("fliplr")
def fliplr(input: Any) -> Any:
    """fliplr(input): reversed along the second dimension."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


@public("flipud")
def flipud(input: Any) -> Any:
    """flipud(input): reversed along the first dimension."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@public("tile", out="none")
def tile(input: Any, *dims: Any, **named: Any) -> Any:
    """tile(input, dims): as repeat, where missing dims count as 1."""
    wanted = sizes((named["dims"],) if "dims" in named else dims)
    return repeat(input, (1,) * (input.ndim - len(wanted)) + wanted)


repeat_index = define(
    "repeat_index", "repeats -> result", data_shape=True, raises=True,
    numpy=lambda repeats: np.repeat(np.arange(len(repeats)), repeats),
    samples=lambda rng: [((np.array([2, 0, 1]),), {})],
)  # fmt: skip


def _counts_as_index(repeats: Any) -> Any:
    """How often to take each element, as the indices to take."""
    if repeats.dtype.category != INTEGER:
        raise no_kernel("repeat_interleave_cpu", repeats.dtype)
    check_elements(_check_counts, repeats)
    return repeat_index(repeats)


def _check_counts(array: np.ndarray) -> None:
    if array.min() < 0:
        raise RuntimeError("repeats can not be negative")


@public("repeat_interleave")
def repeat_interleave(
    input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None
) -> Any:
    """repeat_interleave(input, repeats, dim=None): each element so many times in a row."""
    if repeats is None:
        return _counts_as_index(input)
    if dim is None:
        input, dim = input.flatten(), 0
    if not input.ndim:
        input = input.reshape((1,))
    dim = normalize_dim(dim, input.ndim)
    size = input.shape[dim]
    if isinstance(repeats, Value):
        if repeats.numel() == 1:
            repeats = repeats.reshape((1,)).expand((size,))
        elif repeats.ndim != 1 or repeats.shape[0] != size:
            raise RuntimeError("repeats must have the same size as input along dim, but got "
                               f"repeats.size(0) = {repeats.shape[0]} and input.size({dim}) = "
                               f"{size}")  # fmt: skip
        return input.index_select(dim, _counts_as_index(repeats))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = tuple(input.shape)
    spread = input.unsqueeze(dim + 1).expand((*shape[: dim + 1], repeats, *shape[dim + 1 :]))
    return spread.clone().view((*shape[:dim], size * repeats, *shape[dim + 1 :]))


@public("sum_to_size", spaces="")
def sum_to_size(input: Any, *size: Any, **named: Any) -> Any:
    """sum_to_size(*size): summed to a shape that broadcasts to this one."""
    wanted = sizes((named["size"],) if "size" in named else size)
    have = tuple(input.shape)
    lead = len(have) - len(wanted)
    if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, have[lead:])):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(have)}}}.")
    if wanted == have and have:
        return input
    wide = accumulate_type(input.dtype)
    return sum_to_shape(input if input.dtype is wide else input.to(wide), wanted)
