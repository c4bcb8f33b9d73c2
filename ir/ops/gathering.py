"""gather, scatter and their kin: one index per element along a dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Template, define
from ..types import TensorType, int64, normalize_dim
from ..value import Value, public
from .slices import slice_op
from .views import zeros


def along(index: np.ndarray, dim: int) -> tuple[Any, ...]:
    """The open grid of NumPy indices that `index` addresses along `dim`."""
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)]) if index.ndim else []
    if grid:
        grid[dim] = index
    return tuple(grid)


def _gather(x: np.ndarray, index: np.ndarray, *, dim: int) -> np.ndarray:
    if not x.ndim or not index.ndim:
        return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    return x[along(index, dim)]


gather_op = define(
    "gather", "self index -> result", moves_data=True, numpy=_gather, lower=Template("gather"),
    infer=lambda self, index, *, dim: TensorType(self.dtype, index.shape),
    vjp=dict(self=lambda grad, self_type, index, dim: scatter_add_op(
        zeros(self_type), index, grad, dim=dim)),
)  # fmt: skip


def _scatter(combine: Any) -> Any:
    def evaluate(x: Any, index: Any, src: Any, *, dim: int) -> Any:
        result = np.array(x)
        flat = result.reshape(1) if not result.ndim else result
        index = index.reshape(1) if not index.ndim else index
        src = src.reshape(1) if not src.ndim else src
        part = src[tuple(slice(n) for n in index.shape)]
        combine(flat, along(index, dim), part)
        return result

    return evaluate


def _assign(target: np.ndarray, place: Any, values: np.ndarray) -> None:
    target[place] = values


def _window(grad: Any, index: Any, src_type: TensorType, dim: int) -> Any:
    """The gradient of a scatter's source: gathered, and zero where `index` is smaller than it."""
    part = gather_op(grad, index, dim=dim)
    if tuple(part.shape) == src_type.shape:
        return part
    result = zeros(TensorType(part.dtype, src_type.shape))
    return put_corner(result, part)


def put_corner(base: Any, part: Any) -> Any:
    """`part` written at the beginning of each dimension of `base`."""
    from .views import slice_scatter

    def nested(outer: Any, dim: int) -> Any:
        if dim == outer.ndim:
            return part
        inner = slice_op(outer, dim=dim, start=0, stop=part.shape[dim], step=1)
        return slice_scatter(outer, nested(inner, dim + 1), dim=dim, start=0,
                             stop=part.shape[dim], step=1)  # fmt: skip

    return nested(base, 0)


scatter_op = define(
    "scatter", "self index src -> result", moves_data=True, numpy=_scatter(_assign),
    infer=lambda self, index, src, *, dim: self, lower=Template("scatter"),
    vjp=dict(self=lambda grad, index, dim: grad.scatter(dim, index, 0),
             src=lambda grad, index, src_type, dim: _window(grad, index, src_type, dim)),
)  # fmt: skip
scatter_add_op = define(
    "scatter_add", "self index src -> result", numpy=_scatter(np.add.at),
    infer=lambda self, index, src, *, dim: self, lower=Template("scatter"),
    vjp=dict(self=lambda grad: grad,
             src=lambda grad, index, src_type, dim: _window(grad, index, src_type, dim)),
)  # fmt: skip


def check_index(name: str, input: Any, dim: int, index: Any) -> tuple[int, Any]:
    """Checks a gather/scatter index against its tensor; int64 afterwards."""
    dim = normalize_dim(dim, input.ndim)
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype int64 for index")
    if max(1, index.ndim) != max(1, input.ndim):
        raise RuntimeError(f"Index tensor must have the same number of dimensions as "
                           f"{'input' if name == 'gather' else 'self'} tensor")  # fmt: skip
    array = getattr(index, "_array", None)
    size = input.shape[dim] if input.ndim else 1
    if array is not None and array.size:
        low, high = int(array.min()), int(array.max())
        if low < 0 or high >= size:
            bad = low if low < 0 else high
            raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
    return dim, index if index.dtype is int64 else index.to(int64)


@public("gather")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """gather(input, dim, index)."""
    dim, index = check_index("gather", input, dim, index)
    for d in range(index.ndim):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                f"larger than self {list(input.shape)} apart from dimension {dim}"
            )
    return gather_op(input, index, dim=dim)


def scatter_source(name: str, input: Any, index: Any, src: Any) -> Any:
    if not isinstance(src, Value):
        return input.new_full(tuple(index.shape), src)
    if src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if any(a > b for a, b in zip(index.shape, src.shape)):
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than src "
                           f"{list(src.shape)}")  # fmt: skip
    return src


@public("scatter_add", inplace=True)
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """scatter_add(input, dim, index, src)."""
    dim, index = check_index("scatter", input, dim, index)
    src = scatter_source("scatter", input, index, src)
    return scatter_add_op(input, index, src, dim=dim)
