"""Losses over classes, which are dimension 1 (or 0 alone): nll, multi margin, multilabel margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType
from .creation import iota
from .gathering import gather_op, scatter_op
from .nn_common import floats_only, formally, in_one_go, reduce_loss, spread_loss
from .totals import add_up
from .views import zeros

# --- negative log likelihood ---------------------------------------------------------------------


def class_dim(ndim: int) -> int:
    return 1 if ndim > 1 else 0


def _wanted(target: np.ndarray, weight: Any, ignore_index: int, dtype: Any) -> tuple[Any, ...]:
    """The classes as indices, 0 where ignored; which are kept, None if all; and their weights, None
    where all are 1."""
    target = target.astype(np.int64, copy=False)
    kept = target != ignore_index
    if kept.all():
        taken = None if weight is None else weight.take(target).astype(dtype, copy=False)
        return target, None, taken
    safe = np.where(kept, target, 0)
    weights = kept if weight is None else np.where(kept, weight.take(safe), 0)
    return safe, kept, weights.astype(dtype, copy=False)


def _weighted(values: np.ndarray, kept: Any, weights: Any) -> Any:
    """Times the weights; what is ignored is 0, even if infinite."""
    if weights is None:
        return values
    weighted = values * weights
    return weighted if kept is None else np.where(kept, weighted, weighted.dtype.type(0))


def _places(classes: np.ndarray, dim: int) -> tuple[Any, ...]:
    """Where the wanted classes are: an index into an array with its classes along `dim`."""
    if classes.ndim == 1:
        return np.arange(classes.size), classes
    grid: list[Any] = list(np.ix_(*map(np.arange, classes.shape)))
    grid.insert(dim, classes)
    return tuple(grid)


def _nll(
    x: np.ndarray, target: np.ndarray, weight: Any = None, *, reduction: str = "mean",
    ignore_index: int = -100,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The loss and the total weight of the classes that were wanted."""
    dim = class_dim(x.ndim)
    safe, kept, weights = _wanted(target, weight, ignore_index, x.dtype)
    if x.shape[dim]:
        loss = np.negative(x[_places(safe, dim)])
    else:
        loss = np.zeros(target.shape, x.dtype)
    loss = _weighted(loss, kept, weights)
    if reduction == "none":
        return loss, np.zeros((), x.dtype)
    total = x.dtype.type(loss.size) if weights is None else add_up(weights)
    summed = add_up(loss)
    return (summed if reduction == "sum" else np.divide(summed, total)), np.asarray(total)


def _nll_slopes(
    grad: np.ndarray, target: np.ndarray, weight: Any, total: Any, *, shape: tuple[int, ...],
    reduction: str, ignore_index: int,
) -> np.ndarray:  # fmt: skip
    """The gradient of the log-probabilities, without a graph."""
    dim = class_dim(len(shape))
    safe, kept, weights = _wanted(target, weight, ignore_index, grad.dtype)
    slopes = -np.divide(grad, total) if reduction == "mean" else -grad
    result = np.zeros(shape, grad.dtype)
    result[_places(safe, dim)] = _weighted(slopes, kept, weights)
    return result


def _nll_type(
    self: TensorType, target: TensorType, weight: Any = None, *, reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:  # fmt: skip
    shape = target.shape if reduction == "none" else ()
    return TensorType(self.dtype, shape), TensorType(self.dtype, ())


def _nll_weights(kept: Any, safe: Any, weight: Any, like: Any) -> Any:
    if weight is None:
        return kept.to(like.dtype)
    flat = safe.reshape((-1,)) if safe.ndim != 1 else safe
    weights = gather_op(weight, flat, dim=0).view(tuple(safe.shape))
    return weights.masked_fill(kept.logical_not(), 0)


def _nll_expand(
    self: Any, target: Any, weight: Any, *, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    dim = class_dim(self.ndim)
    kept = target != ignore_index
    safe = target.masked_fill(kept.logical_not(), 0)
    picked = gather_op(self, safe.unsqueeze(dim), dim=dim).squeeze(dim)
    weights = _nll_weights(kept, safe, weight, self)
    loss = (picked * weights * -1).masked_fill(kept.logical_not(), 0)
    total = weights.sum()
    if reduction == "none":
        return loss, self.new_zeros(())
    return (loss.sum() if reduction == "sum" else loss.sum() / total), total


def _nll_slopes_expand(
    grad_output: Any, target: Any, weight: Any, total: Any, *, shape: tuple[int, ...],
    reduction: str, ignore_index: int,
) -> Any:  # fmt: skip
    dim = class_dim(len(shape))
    kept = target != ignore_index
    safe = target.masked_fill(kept.logical_not(), 0)
    grad = grad_output / total if reduction == "mean" else grad_output
    slopes = -(grad if weight is None else grad * _nll_weights(kept, safe, weight, grad))
    slopes = slopes.expand(tuple(target.shape)).masked_fill(kept.logical_not(), 0)
    start = zeros(TensorType(grad.dtype, shape))
    return scatter_op(start, safe.unsqueeze(dim), slopes.unsqueeze(dim), dim=dim)


nll_slopes = define(
    "nll_slopes", "grad_output target weight? total? -> result", numpy=_nll_slopes,
    infer=lambda grad_output, *_, shape, **__: TensorType(grad_output.dtype, shape),
    lower=Decompose(_nll_slopes_expand),
    samples=lambda rng: [((rng.standard_normal(4), np.array([0, 2, 1, 2]), rng.random(3) + 0.5),
                          {"shape": (4, 3), "reduction": "none", "ignore_index": 1})],
)  # fmt: skip


def _nll_vjp(
    grad_result: Any, self: Any, target: Any, weight: Any, total_weight: Any, reduction: str,
    ignore_index: int,
) -> Any:  # fmt: skip
    call = nll_slopes if in_one_go(self) else _nll_slopes_expand
    result = call(grad_result, target, weight, total_weight, shape=tuple(self.shape),
                  reduction=reduction, ignore_index=ignore_index)  # fmt: skip
    return formally(result, self)


def _nll_samples(rng: np.random.Generator) -> list[Any]:
    x, target = rng.standard_normal((4, 3)), np.array([0, 2, 1, 2])
    image, mask = rng.standard_normal((2, 3, 2, 2)), rng.integers(0, 3, (2, 2, 2))
    return [((x, target), {"reduction": "mean"}),
            ((x, target, rng.random(3) + 0.5), {"reduction": "sum", "ignore_index": 1}),
            ((image, mask, rng.random(3) + 0.5), {"reduction": "none"})]  # fmt: skip


def _nll_facts() -> dict[str, Any]:
    return dict(numpy=_nll, infer=_nll_type, lower=Decompose(_nll_expand), samples=_nll_samples,
                vjp=dict(self=_nll_vjp))  # fmt: skip


nll_loss = define("nll_loss", "self target weight? -> result total_weight", second=True,
                  **_nll_facts())  # fmt: skip
nll_loss2d = define("nll_loss2d", "self target weight? -> result total_weight",
                    node="NllLoss2DBackward0", second=True, **_nll_facts())  # fmt: skip

# --- margins -------------------------------------------------------------------------------------


def _numpy_reduced(loss: np.ndarray, reduction: str) -> Any:
    if reduction == "none":
        return loss
    total = add_up(loss)
    return total if reduction == "sum" else np.divide(total, loss.dtype.type(loss.size))


def _multi_margin(
    x: np.ndarray, target: np.ndarray, weight: Any = None, *, p: int = 1, margin: float = 1.0,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """Of (batch, class): sum over the other classes of max(0, margin - x[target] + x) ** p."""
    rows = np.arange(x.shape[0])
    excess = np.maximum(x - x[rows, target][:, None] + x.dtype.type(margin), 0)
    excess[rows, target] = 0
    if p == 2:
        excess = excess * excess
    if weight is not None:
        excess = excess * weight[target][:, None]
    return _numpy_reduced(excess.sum(1) / x.dtype.type(x.shape[1]), reduction)


def _multi_parts(self: Any, target: Any, margin: float) -> tuple[Any, Any]:
    """The excess over the margin, and which classes count: all but the target."""
    column = target.unsqueeze(1)
    excess = self - gather_op(self, column, dim=1) + margin
    others = iota(size=self.shape[1], dtype=target.dtype) != column
    return excess, others.logical_and(excess > 0)


def _multi_expand(
    self: Any, target: Any, weight: Any, *, p: int = 1, margin: float = 1.0,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    excess, counted = _multi_parts(self, target, margin)
    value = (excess if p == 1 else excess * excess).masked_fill(counted.logical_not(), 0)
    if weight is not None:
        value = value * gather_op(weight, target, dim=0).unsqueeze(1)
    return reduce_loss(value.sum(1) / self.shape[1], reduction)


def _multi_vjp(
    grad: Any, self: Any, target: Any, weight: Any, p: int, margin: float, reduction: str
) -> Any:
    excess, counted = _multi_parts(self, target, margin)
    slope = counted.to(self.dtype) if p == 1 else (excess * 2).masked_fill(
        counted.logical_not(), 0)  # fmt: skip
    if weight is not None:
        slope = slope * gather_op(weight, target, dim=0).unsqueeze(1)
    own = iota(size=self.shape[1], dtype=target.dtype) == target.unsqueeze(1)
    slope = (-slope.sum(1, keepdim=True)).where(own, slope) / self.shape[1]
    share = spread_loss(grad, (self.shape[0],), reduction)
    return slope * (share.unsqueeze(1) if share.ndim else share)


def _batch_type(self: TensorType, *_: Any, reduction: str = "mean", **__: Any) -> TensorType:
    floats_only("margin_loss_cpu", self.dtype)
    return TensorType(self.dtype, self.shape[:1] if reduction == "none" else ())


multi_margin_loss = define(
    "multi_margin_loss", "self target weight? -> result", numpy=_multi_margin, infer=_batch_type,
    lower=Decompose(_multi_expand), vjp=dict(self=_multi_vjp),
    samples=lambda rng: [((rng.standard_normal((3, 4)), rng.integers(0, 4, 3), rng.random(4) + 0.5),
                          {"p": p, "reduction": r}) for p, r in ((1, "none"), (2, "mean"))],
)  # fmt: skip


def _listed(target: np.ndarray) -> np.ndarray:
    """Which entries of (batch, class) name a label: those before the first -1."""
    return np.logical_and.accumulate(target >= 0, axis=1)


def _multilabel(
    x: np.ndarray, target: np.ndarray, *, reduction: str = "mean"
) -> tuple[np.ndarray, np.ndarray]:
    """max(0, 1 - x[label] + x[other]) over all labels and others; and which classes are labels."""
    listed = _listed(target)
    safe = np.where(listed, target, 0)
    labels = np.zeros(x.shape, np.bool_)
    np.logical_or.at(labels, (np.arange(x.shape[0])[:, None], safe), listed)
    chosen = np.take_along_axis(x, safe, axis=1)
    excess = np.maximum(1 - chosen[:, :, None] + x[:, None, :], 0)
    excess *= listed[:, :, None] & ~labels[:, None, :]
    loss = add_up(excess, (1, 2)) / x.dtype.type(max(1, x.shape[1]))
    return _numpy_reduced(loss, reduction), labels.astype(x.dtype)


def _multilabel_vjp(
    grad_result: Any, self: Any, target: Any, is_target: Any, reduction: str
) -> Any:
    listed = ((target < 0).to(target.dtype).cumsum(1)) == 0
    safe = target.masked_fill(listed.logical_not(), 0)
    excess = 1 - gather_op(self, safe, dim=1).unsqueeze(2) + self.unsqueeze(1)
    others = (is_target == 0).unsqueeze(1)
    counted = (excess > 0).logical_and(listed.unsqueeze(2)).logical_and(others).to(self.dtype)
    up = counted.sum(1)
    down = zeros(self.type_).scatter_add(1, safe, counted.sum(2))
    share = spread_loss(grad_result, (self.shape[0],), reduction) / self.shape[1]
    return (up - down) * (share.unsqueeze(1) if share.ndim else share)


multilabel_margin_loss = define(
    "multilabel_margin_loss", "self target -> result is_target", numpy=_multilabel,
    infer=lambda self, target, *, reduction="mean": (
        _batch_type(self, reduction=reduction), TensorType(self.dtype, self.shape)),
    samples=lambda rng: [((rng.standard_normal((2, 4)), np.array([[3, 0, -1, 1], [2, -1, 0, 0]])),
                          {"reduction": r}) for r in ("none", "mean")],
    vjp=dict(self=_multilabel_vjp), raises=True,
)  # fmt: skip
