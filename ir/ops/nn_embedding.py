"""Embedding tables: rows looked up by index, alone or summed in bags; one_hot."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..arguments import check_elements, repeated, warn
from ..bind import notify, state
from ..op import Decompose, Template, define
from ..types import TensorType, int64, type_word
from ..value import public
from .accumulate import inside
from .creation import iota
from .gathering import places, scatter_add_op
from .looking import of_count, of_rows
from .nn_common import check_value
from .views import zeros

# Installed by the tracer: a gradient of which only some rows are there, or None for a dense one.
sparse_rows: Callable[..., Any] | None = None

MANY = 16  # up to so often one index may come before adding whole runs is faster

# --- entries -------------------------------------------------------------------------------------


def _sum_rows(rows: np.ndarray, index: np.ndarray, count: int) -> np.ndarray:
    """The sum of the rows that have the same index."""
    total = np.zeros((count, rows.shape[1]), rows.dtype)
    if not index.size:
        return total
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    lengths = np.diff(np.r_[starts, index.size])
    if lengths.max() > MANY:
        total[ordered[starts]] = np.add.reduceat(rows[order], starts, axis=0)
        return total
    rank = np.arange(index.size) - np.repeat(starts, lengths)
    for k in range(int(lengths.max())):  # the k-th row of each index: no index comes twice
        chosen = rank == k
        total[ordered[chosen]] += rows[order[chosen]]
    return total


def _embedding_grad(
    grad: np.ndarray, indices: np.ndarray, *, count: int, padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
) -> np.ndarray:  # fmt: skip
    index = indices.reshape(-1).astype(np.int64, copy=False)
    rows = grad.reshape(index.size, grad.shape[-1])
    if padding_idx >= 0:
        kept = index != padding_idx
        index, rows = index[kept], rows[kept]
    if scale_grad_by_freq and index.size:
        rows = rows / np.bincount(index, minlength=count)[index].astype(rows.dtype)[:, None]
    return _sum_rows(rows, index, count)


def _grad_rule(grad: Any, indices: Any, padding_idx: int) -> Any:
    rows = embedding_op(grad, indices)
    if padding_idx < 0:
        return rows
    return rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)


def _weight_grad(rows: Any, indices: Any, weight_type: TensorType, padding_idx: int,
                 scale_grad_by_freq: bool, sparse: bool) -> Any:  # fmt: skip
    """The table's gradient: rows at their indices, added up unless it is sparse."""
    if sparse and sparse_rows is not None:
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse "
                               "gradients")  # fmt: skip
        found = sparse_rows(rows, indices, weight_type, padding_idx)
        if found is not None:
            return found
    return embedding_grad(rows, indices, count=weight_type.shape[0], padding_idx=padding_idx,
                          scale_grad_by_freq=scale_grad_by_freq)  # fmt: skip


def _lookup_samples(*names: str, **attrs: Any) -> Any:
    def make(rng: np.random.Generator) -> list[Any]:
        arrays = {"weight": rng.standard_normal((5, 3)), "grad": rng.standard_normal((2, 4, 3)),
                  "indices": rng.integers(0, 5, (2, 4))}  # fmt: skip
        return [(tuple(arrays[name] for name in names), attrs)]

    return make


embedding_op = define(
    "embedding", "weight indices -> result", moves_data=True, lower=Template("gather"),
    batch="rest", raises=of_rows,
    numpy=lambda weight, indices, *, padding_idx=-1, scale_grad_by_freq=False, sparse=False: (
        np.take(weight, indices, axis=0)),
    infer=lambda weight, indices, **_: TensorType(weight.dtype, (*indices.shape, weight.shape[1])),
    samples=_lookup_samples("weight", "indices", padding_idx=2),
    vjp=dict(weight=lambda grad, indices, weight_type, padding_idx, scale_grad_by_freq, sparse: (
        _weight_grad(grad, indices, weight_type, padding_idx, scale_grad_by_freq, sparse))),
)  # fmt: skip
embedding_grad: Any = define(
    "embedding_grad", "self indices -> result", numpy=_embedding_grad, lower=Template("scatter"),
    node="EmbeddingDenseBackwardBackward0", samples=_lookup_samples("grad", "indices", count=5),
    infer=lambda self, indices, *, count, **_: TensorType(self.dtype, (count, self.shape[-1])),
    vjp=dict(self=_grad_rule), raises=of_count,
)  # fmt: skip


# --- bags ----------------------------------------------------------------------------------------


def _bag_ids(offsets: np.ndarray, length: int, bags: int) -> np.ndarray:
    """The bag of each index: bags are consecutive, some may be empty."""
    return np.searchsorted(offsets[:bags], np.arange(length), side="right") - 1


def _bag(
    weight: np.ndarray, indices: np.ndarray, offsets: np.ndarray, scale: Any = None, *, bags: int,
    mode: str, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> tuple[np.ndarray, ...]:  # fmt: skip
    """The sum, mean or maximum of the rows of each bag; ids, sizes and rows of maxima."""
    ids = _bag_ids(offsets, indices.size, bags)
    kept = indices != padding_idx if padding_idx >= 0 else slice(None)
    index, own = inside(indices[kept], weight.shape[0]), ids[kept]
    rows = weight[index]
    counts = np.bincount(own, minlength=bags)
    result = np.zeros((bags, weight.shape[1]), weight.dtype)
    chosen = np.full(result.shape, -1, np.int64)
    present = counts > 0
    starts = (np.cumsum(counts) - counts)[present]
    if mode == "max":
        if len(starts):
            result[present] = np.maximum.reduceat(rows, starts, axis=0)
            hits = (rows == result[own]) | np.isnan(rows)
            # the first row that reaches the maximum: later ones are written first
            back, column = np.nonzero(hits[::-1])
            row = len(own) - 1 - back
            chosen[own[row], column] = index[row]
    elif len(starts):
        if scale is not None:
            rows = rows * scale[kept][:, None]
        result[present] = np.add.reduceat(rows, starts, axis=0)
        if mode == "mean":
            result /= np.maximum(counts, 1)[:, None].astype(result.dtype)
    return result, ids, counts, chosen


def _bag_type(
    weight: TensorType, indices: TensorType, offsets: TensorType, scale: Any = None, *, bags: int,
    **_: Any,
) -> Any:  # fmt: skip
    shape = (bags, weight.shape[1])
    return (TensorType(weight.dtype, shape), TensorType(int64, indices.shape),
            TensorType(int64, (bags,)), TensorType(int64, shape))  # fmt: skip


def _bag_weight(grad_result: Any, indices: Any, ids: Any, counts: Any, chosen: Any, scale: Any,
                weight_type: TensorType, mode: str, padding_idx: int,
                scale_grad_by_freq: bool, sparse: bool) -> Any:  # fmt: skip
    if mode == "max":
        empty = chosen < 0
        place = chosen.masked_fill(empty, 0)
        return scatter_add_op(zeros(weight_type), place, grad_result.masked_fill(empty, 0), dim=0)
    if mode == "mean":
        grad_result = grad_result / counts.clamp(min=1).unsqueeze(1).to(grad_result.dtype)
    rows = embedding_op(grad_result, ids)
    if scale is not None:
        rows = rows * scale.unsqueeze(1)
    return _weight_grad(rows, indices, weight_type, padding_idx, scale_grad_by_freq, sparse)


def _bag_scale(grad_result: Any, weight: Any, indices: Any, ids: Any, padding_idx: int) -> Any:
    products = (embedding_op(weight, indices) * embedding_op(grad_result, ids)).sum(1)
    return products.masked_fill(indices == padding_idx, 0) if padding_idx >= 0 else products


def _bag_samples(rng: np.random.Generator) -> list[Any]:
    weight, indices = rng.standard_normal((5, 3)), rng.integers(0, 5, 7)
    offsets = np.array([0, 2, 2, 5])
    return [((weight, indices, offsets, rng.standard_normal(7)), {"bags": 4, "mode": "sum"}),
            ((weight, indices, offsets), {"bags": 4, "mode": "mean", "padding_idx": 2}),
            ((weight, indices, offsets), {"bags": 4, "mode": "max"})]  # fmt: skip


embedding_bag_op = define(
    "embedding_bag", "weight indices offsets scale? -> result ids counts chosen", numpy=_bag,
    infer=_bag_type, samples=_bag_samples, vjp=dict(weight=_bag_weight, scale=_bag_scale),
    raises=of_rows,
)  # fmt: skip

# --- public functions ----------------------------------------------------------------------------


def _check_indices(name: str, indices: Any, weight: Any) -> None:
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{type_word(indices.dtype)}Tensor instead (while checking "
            f"arguments for {name})"
        )
    check_elements(_check_rows, indices, weight.shape[0])


def _check_rows(array: np.ndarray, count: int) -> None:
    if array.min() < 0 or array.max() >= count:
        raise IndexError("index out of range in self")


def _renormalize(weight: Any, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up down to `max_norm`, in place, unseen by autograd."""
    grad_enabled, state.grad_enabled = state.grad_enabled, False
    try:
        table = weight.detach()
        norms = table.norm(norm_type, 1, keepdim=True)
        used = embedding_grad(table.new_ones((math.prod(indices.shape), 1)), indices.reshape(-1),
                              count=weight.shape[0]) > 0  # fmt: skip
        factor = (max_norm / (norms + 1e-7)).where((norms > max_norm).logical_and(used), 1.0)
        table.mul_(factor)
    finally:
        state.grad_enabled = grad_enabled


def _padding(padding_idx: Any, weight: Any, error: Any) -> Any:
    if padding_idx is None:
        return -1
    count = weight.shape[0]
    if not -count <= padding_idx < max(count, 1):
        raise error
    return padding_idx + count if padding_idx < 0 else padding_idx


@public("embedding", spaces="nn.functional", method=False)
def embedding(
    input: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0,
    scale_grad_by_freq=False, sparse=False): rows of `weight`; its gradient may be sparse."""
    padding = _padding(padding_idx, weight,
                       AssertionError("Padding_idx must be within num_embeddings"))  # fmt: skip
    check_value("embedding", weight=weight, indices=input)
    if max_norm is not None:
        _check_indices("embedding", input, weight)
        _renormalize(weight, input, max_norm, norm_type)
    return torch_embedding(weight, input, padding, scale_grad_by_freq, sparse)


@public("embedding", method=False)
def torch_embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:  # fmt: skip
    """embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices("embedding", indices, weight)
    settings = _sparsely(sparse, weight)
    return embedding_op(weight, indices, padding_idx=padding_idx,
                        scale_grad_by_freq=scale_grad_by_freq, **settings)  # fmt: skip


def _sparsely(sparse: bool, weight: Any) -> dict[str, bool]:
    """The attribute of ops whose gradient is to be sparse: those of leaves, and not compiled."""
    if not getattr(weight, "is_leaf", True):
        return {}
    if sparse and state.grad_enabled and getattr(weight, "requires_grad", False):
        notify("sparsely_differentiated")
    return {"sparse": True} if sparse else {}


def _offsets(input: Any, offsets: Any) -> tuple[Any, Any, bool]:
    """Flat indices, offsets and whether these were made here: rows of a matrix are bags."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a"
                             " mini-batch of fixed length sequences. However, found offsets of type"
                             f" {type(offsets)}")  # fmt: skip
        made = iota(size=input.shape[0], start=0, step=input.shape[1], dtype=input.dtype)
        return input.reshape((math.prod(input.shape),)), made, True
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension "
                         f"{input.ndim}")  # fmt: skip
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    check_elements(_check_offsets, offsets, input.shape[0])
    return input, offsets, False


@repeated(lambda value, length: (value[0] != 0) | (value[-1] > length))
def _check_offsets(array: np.ndarray, length: int) -> None:
    if array[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
                           f"to start from position 0. However, got {array[0]}")  # fmt: skip
    if array[-1] > length:
        raise RuntimeError("offsets[-1] can not be greater than input's length "
                           f"({length}) but got offsets[-1] of {array[-1]}")  # fmt: skip


def _check_mode(mode: str, scale_grad_by_freq: bool, sparse: bool, weights: Any) -> None:
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )


@public("embedding_bag", spaces="nn.functional", method=False)
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: Any = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Any = None, include_last_offset: bool = False, padding_idx: Any = None,
) -> Any:  # fmt: skip
    """embedding_bag(input, weight, offsets=None, max_norm=None, norm_type=2,
    scale_grad_by_freq=False, mode='mean', sparse=False, per_sample_weights=None,
    include_last_offset=False, padding_idx=None): sums, means or maxima of bags of rows."""
    if weight.dtype is int64 and input.dtype.is_floating_point:
        warn("Argument order of nn.functional.embedding_bag was changed. Usage "
                      "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
                      "`embedding_bag(input, weight, ...)`.")  # fmt: skip
        weight, input = input, weight
    scale = per_sample_weights
    if scale is not None and tuple(input.shape) != tuple(scale.shape):
        raise ValueError(f"embedding_bag: If per_sample_weights ({scale.shape}) is not None, then "
                         f"it must have the same shape as the input ({input.shape})")  # fmt: skip
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    input, offsets, made = _offsets(input, offsets)
    _check_mode(mode, scale_grad_by_freq, sparse, scale)
    _check_indices("embedding_bag", input, weight)
    if scale is not None:
        scale = scale.reshape((math.prod(scale.shape),))
    if max_norm is not None:
        _renormalize(weight, input, max_norm, norm_type)
    bags = offsets.shape[0] - (1 if include_last_offset and not made else 0)
    padding = _padding(padding_idx, weight, RuntimeError(
        f"padding_idx must be within the number of embeddings, but got {padding_idx}"))  # fmt: skip
    return embedding_bag_op(weight, input.to(int64), offsets.to(int64), scale, bags=bags,
                            mode=mode, padding_idx=padding,
                            scale_grad_by_freq=scale_grad_by_freq,
                            **_sparsely(sparse, weight))[0]  # fmt: skip


# --- one_hot -------------------------------------------------------------------------------------


def _one_hot(indices: np.ndarray, *, count: int) -> Any:
    return (indices[..., None] == np.arange(count)).astype(np.int64, order="C")


one_hot_op = define(
    "one_hot", "self -> result", numpy=_one_hot,
    infer=lambda self, *, count: TensorType(int64, (*self.shape, count)),
    lower=Decompose(lambda self, *, count: (
        places(self, count).unsqueeze(-1) == iota(size=count, dtype=int64)).to(int64)),
    samples=lambda rng: [((rng.integers(0, 4, (2, 3)),), {"count": 4})],
)  # fmt: skip


@public("one_hot", spaces="nn.functional", method=False)
def one_hot(input: Any, num_classes: int = -1) -> Any:
    """one_hot(tensor, num_classes=-1): a 1 at the place each index names."""
    if input.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not math.prod(input.shape):
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return input.new_zeros((*input.shape, num_classes))
    if num_classes == -1:
        num_classes = int(input.max()) + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    check_elements(_check_classes, input, num_classes)
    return one_hot_op(input, count=num_classes)


def _check_classes(array: np.ndarray, count: int) -> None:
    if array.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if array.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
