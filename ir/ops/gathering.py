"""gather, scatter and their kin: one index per element along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements, warn_once
from ..op import Decompose, Op, Template, define
from ..types import TensorType, broadcast_shapes, int64, normalize_dim
from ..value import Value, public
from .accumulate import assign_at, combine_at, positions_along, reduce_at
from .compare import where
from .creation import iota
from .kinds import no_derivative
from .looking import along_dim
from .slices import slice_op, slice_scatter
from .views import zeros


def gather_samples(rng: np.random.Generator) -> list[Any]:
    """A tensor and an index that is smaller in one dimension."""
    x = rng.standard_normal((3, 4))
    return [((x, rng.integers(0, 3, (2, 4))), {"dim": 0}),
            ((x, rng.integers(0, 4, (3, 5))), {"dim": 1})]  # fmt: skip


def scatter_samples(rng: np.random.Generator) -> list[Any]:
    """A tensor, an index with repetitions and a source."""
    x, src = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    return [((x, rng.permutation(3)[:2, None] + np.zeros((1, 4), np.int64), src[:2]), {"dim": 0}),
            ((x, np.array([[0, 2], [3, 1]]), src), {"dim": 1})]  # fmt: skip


def _gather(x: np.ndarray, index: np.ndarray, *, dim: int) -> Any:
    if not x.ndim or not index.ndim:
        return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    if index.shape[:dim] + index.shape[dim + 1 :] == x.shape[:dim] + x.shape[dim + 1 :]:
        return np.take_along_axis(x, index, dim)
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = index
    return x[tuple(grid)]


gather_op = define(
    "gather", "self index -> result", moves_data=True, numpy=_gather, lower=Template("gather"),
    batch="shift", raises=along_dim,
    infer=lambda self, index, *, dim: TensorType(self.dtype, index.shape), samples=gather_samples,
    vjp=dict(self=lambda grad, self_type, index, dim: scatter_add_op(
        zeros(TensorType(grad.dtype, self_type.shape)), index, grad, dim=dim)),
)  # fmt: skip


def _require(x: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    if wrong.any():
        raise IndexError("an element is refused")
    return x


def _require_expand(self: Any, wrong: Any) -> Any:
    """Each element taken out of a row of one: where it is wrong, out of the row after that."""
    line = (1, math.prod(self.shape))
    index = wrong.expand(tuple(self.shape)).reshape(line).to(int64)
    return gather_op(self.reshape(line), index, dim=0).reshape(tuple(self.shape))


# The value itself, for a check of elements that a graph repeats; see `arguments.repeated`. Where
# one is wrong the compiled program stops, and eager code raises.
require = define(
    "require", "self wrong -> result", moves_data=True, numpy=_require,
    infer=lambda self, wrong: self, lower=Decompose(_require_expand),
    samples=lambda rng: [((rng.standard_normal((2, 3)), np.zeros((2, 3), np.bool_)), {}),
                         ((rng.standard_normal(3), np.zeros((), np.bool_)), {})],
    vjp=dict(self=lambda grad: grad),
)  # fmt: skip


def places(index: Any, size: int) -> Any:
    """The index itself, checked: for code that does not look, or counts negative ones from the end.

    What a compiled program refuses is then raised by eager code, in torch's words.
    """
    flat = index.view((math.prod(index.shape),))
    return gather_op(iota(size=size, dtype=int64), flat, dim=0).view(tuple(index.shape))


def corner(value: Any, shape: tuple[int, ...]) -> Any:
    """The part of `value` at the beginning of each dimension that has `shape`."""
    for dim, n in enumerate(shape):
        if value.shape[dim] != n:
            value = slice_op(value, dim=dim, start=0, stop=n, step=1)
    return value


def put_corner(base: Any, part: Any) -> Any:
    """`part` written at the beginning of each dimension of `base`."""
    if tuple(base.shape) == tuple(part.shape):
        return part

    def nested(outer: Any, dim: int) -> Any:
        if dim == outer.ndim:
            return part
        inner = slice_op(outer, dim=dim, start=0, stop=part.shape[dim], step=1)
        return slice_scatter(outer, nested(inner, dim + 1), dim=dim, start=0,
                             stop=part.shape[dim], step=1)  # fmt: skip

    return nested(base, 0)


def window(part: Any, src_type: TensorType) -> Any:
    """The gradient of a source that is larger than its index: zero where nothing was read."""
    if tuple(part.shape) == src_type.shape:
        return part
    return put_corner(zeros(TensorType(part.dtype, src_type.shape)), part)


def _source_rule(grad: Any, index: Any, src_type: TensorType, dim: int) -> Any:
    return window(gather_op(grad, index, dim=dim), src_type)


def _corner_of(src: np.ndarray, index: np.ndarray) -> np.ndarray:
    return src[tuple(slice(n) for n in index.shape)] if src.ndim else src


scatter_op = define(
    "scatter", "self index src -> result", moves_data=True, batch="shift", raises=along_dim,
    numpy=lambda x, index, src, *, dim: assign_at(
        x, positions_along(x.shape, index, dim), _corner_of(src, index)),
    infer=lambda self, index, src, *, dim: self, lower=Template("scatter"),
    samples=scatter_samples,
    vjp=dict(self=lambda grad, index, dim: scatter_value(grad, index, dim=dim, value=0),
             src=lambda grad, index, src_type, dim: _source_rule(grad, index, src_type, dim)),
)  # fmt: skip
scatter_value: Op = define(
    "scatter_value", "self index -> result", node="ScatterBackward1",
    numpy=lambda x, index, *, dim, value: assign_at(
        x, positions_along(x.shape, index, dim), np.asarray(value).astype(x.dtype)),
    infer=lambda self, index, **_: self,
    lower=Decompose(lambda self, index, *, dim, value: scatter_op(
        self, index, self.new_full(tuple(index.shape), value), dim=dim)),
    samples=lambda rng: [(inputs[:2], {**attrs, "value": 2.5})
                         for inputs, attrs in scatter_samples(rng)],
    vjp=dict(self=lambda grad, index, dim: scatter_value(grad, index, dim=dim, value=0)),
)  # fmt: skip
scatter_add_op: Op = define(
    "scatter_add", "self index src -> result", batch="shift", raises=along_dim,
    numpy=lambda x, index, src, *, dim: combine_at(
        np.add, x, positions_along(x.shape, index, dim), _corner_of(src, index)),
    infer=lambda self, index, src, *, dim: self, lower=Template("scatter"),
    samples=scatter_samples,
    vjp=dict(self=lambda grad: grad,
             src=lambda grad, index, src_type, dim: _source_rule(grad, index, src_type, dim)),
)  # fmt: skip


scatter_combined = define(
    "scatter_combined", "self index src -> result", node="NotImplemented", raises=along_dim,
    numpy=lambda x, index, src, *, dim, reduce: reduce_at(
        x, positions_along(x.shape, index, dim), _corner_of(src, index), reduce, True),
    infer=lambda self, index, src, **_: self,
    samples=lambda rng: [(inputs, {**attrs, "reduce": "prod"})
                         for inputs, attrs in scatter_samples(rng)],
    vjp=dict.fromkeys(("self", "src"), no_derivative(
        "derivative for aten::scatter with reduce= is not implemented; use scatter_reduce or "
        "scatter_add")),
)  # fmt: skip


# --- scatter_reduce ------------------------------------------------------------------------------


def _scatter_reduce(
    x: Any, index: Any, src: Any, *, dim: int, reduce: str, include_self: bool = True
) -> Any:
    return reduce_at(x, positions_along(x.shape, index, dim), _corner_of(src, index), reduce,
                     include_self)  # fmt: skip


def _reduce_mean_rule(
    grad: Any, index: Any, src: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    count = grad.new_full(grad.shape, int(include_self))
    count = scatter_add_op(count, index, src.new_full(index.shape, 1), dim=dim)
    share = grad / count.masked_fill(count.eq(0), 1)
    return share, gather_op(share, index, dim=dim)


def _reduce_extremum_rule(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int
) -> tuple[Any, Any]:
    """All elements that tie for the extremum share the gradient."""
    self_hit = self.eq(result).to(grad.dtype)
    src_hit = src.eq(gather_op(result, index, dim=dim)).to(grad.dtype)
    share = grad / scatter_add_op(self_hit, index, src_hit, dim=dim)
    return self_hit * share, src_hit * gather_op(share, index, dim=dim)


def _reduce_prod_rule(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """The product of the others; where one factor alone is zero it is left out, not divided by."""
    attrs = dict(dim=dim, reduce="prod", include_self=include_self)
    nonzero_self = self.masked_fill(self.eq(0), 1)
    grad_self = grad * scatter_reduce_op(nonzero_self, index, src, **attrs) / nonzero_self
    zero = src.eq(0)
    zeros_met = scatter_add_op(self.new_zeros(self.shape), index, zero.to(self.dtype), dim=dim)
    only_zero = zero.logical_and(gather_op(zeros_met, index, dim=dim).eq(1))
    without = scatter_reduce_op(self, index, src.masked_fill(only_zero, 1), **attrs)
    by_quotient = gather_op(grad * result, index, dim=dim) / src.masked_fill(zero, 1)
    return grad_self, gather_op(grad * without, index, dim=dim).where(only_zero, by_quotient)


def reduce_rule(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, reduce: str,
    include_self: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """Gradients of self and of the part of src that was read; shared with index_reduce."""
    if reduce == "sum":
        parts = grad, gather_op(grad, index, dim=dim)
    elif reduce == "mean":
        parts = _reduce_mean_rule(grad, index, src, dim, include_self)
    elif reduce == "prod":
        parts = _reduce_prod_rule(grad, self, index, src, result, dim, include_self)
    else:
        parts = _reduce_extremum_rule(grad, self, index, src, result, dim)
    if not include_self:
        parts = scatter_value(parts[0], index, dim=dim, value=0), parts[1]
    return parts


def _scatter_reduce_rule(
    grad: Any, self: Any, index: Any, src: Any, result: Any, dim: int, reduce: str,
    include_self: bool,
) -> tuple[Any, Any]:  # fmt: skip
    part = corner(src, tuple(index.shape))
    grad_self, grad_part = reduce_rule(grad, self, index, part, result, dim, reduce, include_self)
    return grad_self, window(grad_part, src.type_)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
scatter_reduce_op = define(
    "scatter_reduce", "self index src -> result", numpy=_scatter_reduce, raises=along_dim,
    infer=lambda self, index, src, **_: self, vjp={("self", "src"): _scatter_reduce_rule},
    samples=lambda rng: [
        (inputs, {**attrs, "reduce": reduce, "include_self": include})
        for inputs, attrs in scatter_samples(rng) for reduce in REDUCTIONS
        for include in (True, False)],
)  # fmt: skip


# --- public functions ----------------------------------------------------------------------------


def check_index(name: str, input: Any, dim: int, index: Any) -> tuple[int, Any]:
    """Checks a gather/scatter index against its tensor; int64 afterwards."""
    dim = normalize_dim(dim, input.ndim)
    if index.dtype.name not in ("int64", "int32") and index.numel():
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if max(1, index.ndim) != max(1, input.ndim) and index.numel():
        raise RuntimeError(f"Index tensor must have the same number of dimensions as "
                           f"{'input' if name == 'gather' else 'self'} tensor")  # fmt: skip
    check_range(index, dim, input.shape[dim] if input.ndim else 1)
    return dim, index if index.dtype is int64 else index.to(int64)


def check_range(index: Any, dim: int, size: int) -> None:
    """RuntimeError for an eager index outside of [0, size)."""
    check_elements(_check_range, index, dim, size)


def _check_range(array: np.ndarray, dim: int, size: int) -> None:
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= size:
        bad = low if low < 0 else high
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")


def check_extent(input: Any, dim: int, index: Any) -> None:
    for d in range(min(index.ndim, input.ndim)):
        if d != dim and index.shape[d] > input.shape[d]:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                f"larger than self {list(input.shape)} apart from dimension {dim}"
            )


@public("gather", overlap="apart")
def gather(input: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """gather(input, dim, index)."""
    dim, index = check_index("gather", input, dim, index)
    check_extent(input, dim, index)
    return gather_op(input, index, dim=dim)


def scatter_source(name: str, input: Any, dim: int, index: Any, src: Any) -> Any:
    """A scatter's source, checked against index and tensor."""
    if src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if max(1, src.ndim) != max(1, index.ndim) and index.numel():
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if any(a > b for a, b in zip(index.shape, src.shape)):
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(input.shape)} "
            f"apart from dimension {dim} and to be no larger size than src {list(src.shape)}"
        )
    check_extent(input, dim, index)
    return src


@public("scatter_add", inplace=True, overlap="apart")
def scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    """scatter_add(input, dim, index, src)."""
    dim, index = check_index("scatter", input, dim, index)
    src = scatter_source("scatter", input, dim, index, src)
    if not index.numel() and index.ndim != input.ndim:
        return input.clone()
    return scatter_add_op(input, index, src, dim=dim)


@public("scatter", inplace=True, overlap="apart")
def scatter(
    input: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """scatter(input, dim, index, src, *, reduce=None); `src` may be a number."""
    dim, index = check_index("scatter", input, dim, index)
    src = value if src is None else src
    if getattr(src, "wrapped", False):
        src = float(src)  # a number that is known at run time
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(src, Value):
        src = scatter_source("scatter", input, dim, index, src)
    elif index.numel() and any(
        d != dim and a > b for d, (a, b) in enumerate(zip(index.shape, input.shape))
    ):
        raise RuntimeError(f"Expected index {list(index.shape)} to be no larger than self "
                           f"{list(input.shape)} apart from dimension {dim}")  # fmt: skip
    if not index.numel() and index.ndim != input.ndim:
        return input.clone()
    if reduce is not None:
        if isinstance(src, Value):
            warn_once("The reduce argument of torch.scatter with Tensor src is deprecated and will "
                      "be removed in a future PyTorch release. Use torch.scatter_reduce instead "
                      "for more reduction options.")  # fmt: skip
        else:
            src = input.new_full(tuple(index.shape), src)
        combine = {"add": "sum", "multiply": "prod"}[reduce]
        return scatter_combined(input, index, src, dim=dim, reduce=combine)
    if isinstance(src, Value):
        return scatter_op(input, index, src, dim=dim)
    return scatter_value(input, index, dim=dim, value=src)


@public("scatter_reduce", inplace=True, overlap="apart")
def scatter_reduce(
    input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """scatter_reduce(input, dim, index, src, reduce, *, include_self=True)."""
    if reduce not in REDUCTIONS:
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got "
                           f"{reduce}")  # fmt: skip
    dim, index = check_index("scatter", input, dim, index)
    src = scatter_source("scatter", input, dim, index, src)
    if not index.numel() and index.ndim != input.ndim:
        return input.clone()
    return scatter_reduce_op(input, index, src, dim=dim, reduce=reduce, include_self=include_self)


@public("take_along_dim")
def take_along_dim(input: Any, indices: Any, dim: Any = None) -> Any:
    """take_along_dim(input, indices, dim=None): gather, with broadcasting."""
    if indices.dtype is not int64:
        raise RuntimeError("torch.take_along_dim(): dtype of indices should be Long but got "
                           f"{indices.dtype.name}")  # fmt: skip
    if dim is None:
        return take_along_dim(input.reshape(-1), indices.reshape(-1), 0)
    if input.ndim != indices.ndim:
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number "
                           f"of dimensions, but got {input.ndim} dimensions for input, and "
                           f"{indices.ndim} dimensions for indices")  # fmt: skip
    dim = normalize_dim(dim, input.ndim)
    have, want = list(input.shape), list(indices.shape)
    mine, asked = have[dim], want[dim]
    indices = where(indices < 0, indices + mine, indices)
    have[dim] = want[dim] = 1
    common = list(broadcast_shapes(tuple(have), tuple(want)))
    spread = input.expand([*common[:dim], mine, *common[dim + 1 :]])
    return gather(spread, dim, indices.expand([*common[:dim], asked, *common[dim + 1 :]]))
