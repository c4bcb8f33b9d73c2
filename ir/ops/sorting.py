"""Order: sort, argsort, topk, kthvalue, median, mode. NaN counts as the largest value."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arguments import must_be
from ..op import Template, define
from ..types import BOOL, COMPLEX, TensorType, int64, no_kernel, normalize_dim
from ..value import public
from .extrema import value_at_index_vjp
from .kinds import reduced_shape
from .reduce import check_tensor
from .results import named_result
from .views import zeros


def ordered(x: np.ndarray, dim: int, descending: bool = False) -> np.ndarray:
    """Indices that sort `x` along `dim`; equal elements keep their order."""
    if not x.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - backwards, dim)


def picked(x: np.ndarray, indices: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The values at `indices` along `dim`, and the indices."""
    if not x.ndim:
        return x.copy(), indices.astype(np.int64)
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    return np.take_along_axis(x, indices, dim), indices


def dim_samples(**more: Any) -> Any:
    """Samples of ops along a dimension."""
    return lambda rng: [((rng.standard_normal((3, 5)),), {"dim": d, **more}) for d in (0, 1)]


# --- sorting -------------------------------------------------------------------------------------


def _sort(x: np.ndarray, *, dim: int, descending: bool = False, stable: bool = False) -> Any:
    return picked(x, ordered(x, dim, descending), dim)


def spread_values_rule(grad: Any, indices: Any, self_type: TensorType, dim: int) -> Any:
    """Each gradient goes back to the element its value was taken from."""
    if not self_type.shape:
        return grad
    return zeros(TensorType(grad.dtype, self_type.shape)).scatter(dim, indices, grad)


sort_op = define(
    "sort", "self -> values indices", numpy=_sort, lower=Template("sort"),
    infer=lambda self, **_: (self, TensorType(int64, self.shape)),
    node=lambda attrs: f"SortBackward{int(bool(attrs.get('stable')))}",
    vjp=dict(self=lambda grad_values, indices, self_type, dim: spread_values_rule(
        grad_values, indices, self_type, dim)),
    samples=lambda rng: [*dim_samples()(rng), *dim_samples(descending=True)(rng)],
)  # fmt: skip
argsort_op = define(
    "argsort", "self -> result", infer=lambda self, **_: TensorType(int64, self.shape),
    lower=Template("sort"),
    numpy=lambda x, *, dim, descending=False: np.array(ordered(x, dim, descending), order="C"),
    samples=dim_samples(),
)  # fmt: skip


def _check_sortable(name: str, input: Any) -> None:
    check_tensor(name, input)
    if input.dtype.is_complex:
        raise RuntimeError(f"{name}: Sort does not support complex dtypes on CPU")


def _check_kernel(kernel: str, input: Any, refused: tuple[int, ...]) -> None:
    """torch's error for dtypes a kernel lacks, raised where there are elements."""
    if input.dtype.category in refused and input.numel():
        raise no_kernel(kernel, input.dtype)


@public("sort")
def sort(input: Any, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    """sort(input, dim=-1, descending=False, *, stable=False): values and indices."""
    _check_sortable("sort", input)
    dim = normalize_dim(dim, input.ndim)
    attrs = {} if stable is None else {"stable": True}
    result = sort_op(input, dim=dim, descending=bool(descending), **attrs)
    return named_result("sort values indices", result)


@public("argsort", out="none")
def argsort(input: Any, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """argsort(input, dim=-1, descending=False, *, stable=False)."""
    _check_sortable("argsort", input)
    return argsort_op(input, dim=normalize_dim(dim, input.ndim), descending=bool(descending))


@public("msort")
def msort(input: Any) -> Any:
    """msort(input): sorted along the first dimension."""
    return sort(input, 0)[0]


# --- the k largest -------------------------------------------------------------------------------


MANY = 512  # elements of a line from which partitioning pays


def _topk(
    x: np.ndarray, *, k: int, dim: int, largest: bool = True, sorted: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    chosen = _partitioned(x, k, dim, largest)
    if chosen is None:
        return picked(x, ordered(x, dim, largest)[(slice(None),) * dim + (slice(k),)], dim)
    order = ordered(np.take_along_axis(x, chosen, dim), dim, largest)
    return picked(x, np.take_along_axis(chosen, order, dim), dim)


def _partitioned(x: np.ndarray, k: int, dim: int, largest: bool) -> Any:
    """The places of the k first, without their order, where few of many are wanted; None where
    that is no gain, or where equals are left out: sorting takes the first of these."""
    size = x.shape[dim]
    if size < MANY or k * 8 > size or k == 0:
        return None
    lead = (slice(None),) * dim
    if largest:
        chosen = np.argpartition(x, size - k, axis=dim)[lead + (slice(size - k, size),)]
        outside = x < np.take_along_axis(x, chosen, dim).min(dim, keepdims=True)
    else:
        chosen = np.argpartition(x, k - 1, axis=dim)[lead + (slice(k),)]
        outside = ~(x <= np.take_along_axis(x, chosen, dim).max(dim, keepdims=True))
    exact = x.size - np.count_nonzero(outside) == chosen.size
    return np.sort(chosen, axis=dim) if exact else None


def _topk_infer(self: TensorType, *, k: int, dim: int, **_: Any) -> tuple[TensorType, TensorType]:
    shape = (*self.shape[:dim], k, *self.shape[dim + 1 :]) if self.shape else ()
    return TensorType(self.dtype, shape), TensorType(int64, shape)


topk_op = define(
    "topk", "self -> values indices", numpy=_topk, infer=_topk_infer, lower=Template("sort"),
    vjp=dict(self=lambda grad_values, indices, self_type, dim: spread_values_rule(
        grad_values, indices, self_type, dim)),
    samples=lambda rng: [*dim_samples(k=2)(rng), *dim_samples(k=3, largest=False)(rng)],
)  # fmt: skip


@public("topk")
def topk(
    input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Any:  # fmt: skip
    """topk(input, k, dim=-1, largest=True, sorted=True)."""
    _check_sortable("topk", input)
    if input.dtype.category == BOOL:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    dim = normalize_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    result = topk_op(input, k=int(k), dim=dim, largest=bool(largest), sorted=bool(sorted))
    return named_result("topk values indices", result)


# --- one element by its rank ---------------------------------------------------------------------


def _at_rank(x: np.ndarray, order: np.ndarray, rank: Any, dim: int, keepdim: bool) -> Any:
    """Values and indices of the elements that stand at `rank` of a sorted dimension."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    shape = reduced_shape(x.shape, (dim,), True)
    places = np.broadcast_to(np.asarray(rank), shape)
    values, indices = picked(x, np.take_along_axis(order, places, dim), dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def _place_of_rank(x: np.ndarray, rank: int, dim: int) -> Any:
    """Where the element of a rank is, equals in their order; there is no NaN."""
    value = np.take(np.partition(x, rank, axis=dim), [rank], axis=dim)
    before = rank - np.count_nonzero(x < value, axis=dim, keepdims=True)
    return np.argmax(np.cumsum(x == value, axis=dim) > before, axis=dim, keepdims=True)


def _of_rank(x: np.ndarray, rank: int, dim: int, keepdim: bool) -> Any:
    if x.ndim and x.shape[dim] >= MANY and not (x.dtype.kind == "f" and np.isnan(x).any()):
        return _at_rank(x, _place_of_rank(x, rank, dim), 0, dim, keepdim)
    return _at_rank(x, ordered(x, dim), rank, dim, keepdim)


def _kthvalue(x: np.ndarray, *, k: int, dim: int, keepdim: bool = False) -> Any:
    return _of_rank(x, k - 1, dim, keepdim)


def _median_dim(x: np.ndarray, *, dim: int, keepdim: bool = False) -> Any:
    rank = (x.shape[dim] - 1) // 2 if x.ndim else 0
    if not x.ndim or x.dtype.kind != "f" or not np.isnan(x).any():
        return _of_rank(x, rank, dim, keepdim)
    missing = np.add.reduce(np.isnan(x), axis=dim, keepdims=True, dtype=np.int64)
    ranks = np.where(missing > 0, x.shape[dim] - missing, rank)  # NaN wins: the first one
    return _at_rank(x, ordered(x, dim), ranks, dim, keepdim)


def _nanmedian_dim(x: np.ndarray, *, dim: int, keepdim: bool = False) -> Any:
    rank: Any = (x.shape[dim] - 1) // 2 if x.ndim else 0
    if x.dtype.kind == "f" and x.ndim:
        present = np.add.reduce(~np.isnan(x), axis=dim, keepdims=True, dtype=np.int64)
        rank = np.maximum(present - 1, 0) // 2
    return _at_rank(x, ordered(x, dim), rank, dim, keepdim)


def _mode(x: np.ndarray, *, dim: int, keepdim: bool = False) -> Any:
    """The most frequent value, the smallest of several; its last occurrence."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    order = ordered(x, dim)
    lines = np.moveaxis(np.take_along_axis(x, order, dim), dim, -1)
    steps = np.arange(lines.shape[-1])
    starts = np.ones(lines.shape, np.bool_)
    starts[..., 1:] = lines[..., 1:] != lines[..., :-1]
    begun = np.maximum.accumulate(np.where(starts, steps, 0), axis=-1)
    rank = np.argmax(steps - begun, axis=-1)
    return _at_rank(x, order, np.expand_dims(rank, dim), dim, keepdim)


def _ranked_infer(self: TensorType, *, dim: int, keepdim: bool = False, **_: Any) -> Any:
    shape = reduced_shape(self.shape, (dim,), keepdim) if self.shape else ()
    return TensorType(self.dtype, shape), TensorType(int64, shape)


def _ranked(name: str, evaluate: Any, node: str, **sample: Any) -> Any:
    """An op that picks one element of each line, with its index."""
    return define(
        name, "self -> values indices", numpy=evaluate, infer=_ranked_infer, node=node,
        lower=Template("sort"),
        vjp=dict(self=lambda grad_values, indices, self_type, dim, keepdim: value_at_index_vjp(
            grad_values, indices, self_type, dim, keepdim)),
        samples=lambda rng: [*dim_samples(**sample)(rng),
                             *dim_samples(keepdim=True, **sample)(rng)],
    )  # fmt: skip


kthvalue_op = _ranked("kthvalue", _kthvalue, "KthvalueBackward0", k=2)
median_dim = _ranked("median_dim", _median_dim, "MedianBackward1")
nanmedian_dim = _ranked("nanmedian_dim", _nanmedian_dim, "NanmedianBackward1")
mode_op = _ranked("mode", _mode, "ModeBackward0")


def check_dim(name: str, input: Any, dim: Any) -> int:
    """One dimension that is not empty."""
    check_tensor(name, input)
    if not isinstance(dim, int):
        raise must_be(name, "dim", "int", dim)
    wrapped = normalize_dim(dim, input.ndim)
    if input.ndim and input.shape[wrapped] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {wrapped} to have non-zero size.")
    return wrapped


@public("kthvalue")
def kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """kthvalue(input, k, dim=-1, keepdim=False): the k-th smallest."""
    dim = check_dim("kthvalue", input, dim)
    _check_kernel("kthvalue_cpu", input, (BOOL, COMPLEX))
    if not 1 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    result = kthvalue_op(input, k=int(k), dim=dim, keepdim=keepdim)
    return named_result("kthvalue values indices", result)


@public("mode")
def mode(input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """mode(input, dim=-1, keepdim=False): the most frequent value."""
    dim = check_dim("mode", input, dim)
    _check_kernel("mode_cpu", input, (COMPLEX,))
    return named_result("mode values indices", mode_op(input, dim=dim, keepdim=keepdim))


# --- the median of all ---------------------------------------------------------------------------


def _median_all(along: Any) -> Any:
    def evaluate(x: np.ndarray) -> Any:
        if x.size:
            return along(x.reshape(-1), dim=0)[0]
        kind = x.dtype.kind
        empty = np.iinfo(x.dtype).min if kind in "iu" else kind == "b" or np.nan
        return np.asarray(empty, x.dtype)

    return evaluate


def shared_by_equals_rule(grad: Any, self: Any, result: Any) -> Any:
    """All elements equal to the result share the gradient; NaN counts as equal to NaN."""
    mask = self.eq(result).logical_or(self.isnan().logical_and(result.isnan()))
    return mask * (grad / mask.sum())


def _median_function(name: str, along: Any, along_op: Any) -> Any:
    whole = define(
        name, "self -> result", numpy=_median_all(along), vjp=dict(self=shared_by_equals_rule),
        infer=lambda self: TensorType(self.dtype, ()), lower=Template("sort"),
        samples=lambda rng: [((rng.standard_normal((3, 5)),), {})],
    )  # fmt: skip

    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            check_tensor(name, input)
            _check_kernel("median_cpu", input, (BOOL, COMPLEX))
            return whole(input)
        dim = check_dim(name, input, dim)
        _check_kernel("median_out", input, (BOOL, COMPLEX))
        result = along_op(input, dim=dim, keepdim=keepdim)
        return named_result(f"{name} values indices", result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(input), or {name}(input, dim, keepdim=False) with indices."
    return public(name)(function)


median = _median_function("median", _median_dim, median_dim)
nanmedian = _median_function("nanmedian", _nanmedian_dim, nanmedian_dim)
