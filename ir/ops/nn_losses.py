"""Elementwise losses with their reduction in one entry, as torch's graph has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType, broadcast_shapes, result_type
from .kinds import refuse
from .nn_activations import logsigmoid_op
from .nn_common import reduce_loss, spread_loss
from .totals import add_up


def _reduce(loss: np.ndarray, reduction: str) -> Any:
    if reduction == "none":
        return loss
    total = add_up(loss)
    return total if reduction == "sum" else np.divide(total, loss.dtype.type(loss.size))


def _type(*types: Any, reduction: str = "mean", **_: Any) -> TensorType:
    present = [t for t in types if t is not None]
    shape = broadcast_shapes(*(t.shape for t in present))
    return TensorType(result_type(present), shape if reduction == "none" else ())


def _samples(count: int = 2, low: float = -2, high: float = 2, **attrs: Any) -> Any:
    def make(rng: np.random.Generator) -> list[Any]:
        arrays = tuple(rng.uniform(low, high, (3, 4)) for _ in range(count))
        return [(arrays, {**attrs, "reduction": r}) for r in ("none", "mean", "sum")]

    return make


def loss_entry(name: str, signature: str, value: Any, expand: Any, **facts: Any) -> Any:
    """An entry from the NumPy form of the elementwise loss and the same in ops."""

    def lowered(*inputs: Any, reduction: str = "mean", **attrs: Any) -> Any:
        return reduce_loss(expand(*inputs, **attrs), reduction)

    return define(name, signature, numpy=value, infer=_type, lower=Decompose(lowered), **facts)


# --- distances -----------------------------------------------------------------------------------


def _mse(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    difference = x - target
    if reduction != "none" and difference.dtype == np.float64:
        flat = difference.reshape(-1)
        total = np.dot(flat, flat)
        return np.asarray(total if reduction == "sum" else np.divide(total, flat.size))
    difference *= difference
    return _reduce(difference, reduction)


def _mse_vjp(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    difference = self - target
    return difference * (spread_loss(grad, difference.shape, reduction) * 2)


mse_loss = loss_entry(
    "mse_loss", "self target -> result", _mse,
    lambda self, target: (self - target) * (self - target), samples=_samples(),
    second=True, vjp=dict(self=_mse_vjp, target=lambda grad, self, target, reduction: _mse_vjp(
        grad, target, self, reduction)),
)  # fmt: skip


def _smooth(x: Any, target: Any, *, reduction: str = "mean", beta: float = 1.0) -> Any:
    size = np.abs(x - target)
    low = np.minimum(size, size.dtype.type(beta))
    return _reduce(low * low * size.dtype.type(0.5 / beta) + (size - low), reduction)


def _smooth_expand(self: Any, target: Any, beta: float = 1.0) -> Any:
    size = (self - target).abs()
    return (size * size * (0.5 / beta)).where(size < beta, size - 0.5 * beta)


def _smooth_vjp(grad: Any, self: Any, target: Any, reduction: str, beta: float) -> Any:
    difference = self - target
    slope = (difference / beta).clamp(-1, 1)
    return slope * spread_loss(grad, difference.shape, reduction)


smooth_l1_loss = loss_entry(
    "smooth_l1_loss", "self target -> result", _smooth, _smooth_expand, samples=_samples(beta=0.7),
    second=True,
    vjp=dict(self=_smooth_vjp, target=lambda grad, self, target, reduction, beta: _smooth_vjp(
        grad, target, self, reduction, beta)),
)  # fmt: skip


def _huber(x: Any, target: Any, *, reduction: str = "mean", delta: float = 1.0) -> Any:
    size = np.abs(x - target)
    low = np.minimum(size, size.dtype.type(delta))
    return _reduce(low * (size - low * size.dtype.type(0.5)), reduction)


def _huber_expand(self: Any, target: Any, delta: float = 1.0) -> Any:
    size = (self - target).abs()
    return (size * size * 0.5).where(size <= delta, (size - 0.5 * delta) * delta)


def _huber_vjp(grad: Any, self: Any, target: Any, reduction: str, delta: float) -> Any:
    difference = self - target
    return difference.clamp(-delta, delta) * spread_loss(grad, difference.shape, reduction)


huber_loss = loss_entry(
    "huber_loss", "self target -> result", _huber, _huber_expand, samples=_samples(delta=0.7),
    second=True,
    vjp=dict(self=_huber_vjp, target=lambda grad, self, target, reduction, delta: _huber_vjp(
        grad, target, self, reduction, delta)),
)  # fmt: skip

# --- probabilities -------------------------------------------------------------------------------


def _weighted(value: Any, weight: Any) -> Any:
    return value if weight is None else value * weight


def _bce(x: Any, target: Any, weight: Any = None, *, reduction: str = "mean") -> Any:
    """Logarithms are kept above -100, so that the loss stays finite."""
    refuse("binary_cross_entropy", "c", x)
    yes, no = np.maximum(np.log(x), -100), np.maximum(np.log1p(-x), -100)
    return _reduce(_weighted((target - 1) * no - target * yes, weight), reduction)


def _bce_expand(self: Any, target: Any, weight: Any) -> Any:
    yes, no = self.log().clamp(min=-100), (-self).log1p().clamp(min=-100)
    return _weighted((target - 1) * no - target * yes, weight)


def _bce_self(grad: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    slope = (self - target) / ((1 - self) * self).clamp(min=1e-12)
    return _weighted(slope * spread_loss(grad, self.shape, reduction), weight)


def _bce_target(grad: Any, self: Any, target_type: Any, weight: Any, reduction: str) -> Any:
    slope = (-self).log1p() - self.log()
    return _weighted(slope * spread_loss(grad, target_type.shape, reduction), weight)


binary_cross_entropy = loss_entry(
    "binary_cross_entropy", "self target weight? -> result", _bce, _bce_expand,
    samples=_samples(3, 0.1, 0.9), second=True, vjp=dict(self=_bce_self, target=_bce_target),
)  # fmt: skip


def _log_sigmoid(x: np.ndarray) -> Any:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


def _bce_logits(
    x: Any, target: Any, weight: Any = None, pos_weight: Any = None, *, reduction: str = "mean"
) -> Any:
    gain = _log_sigmoid(x)
    if pos_weight is not None:
        gain = gain * ((pos_weight - 1) * target + 1)
    return _reduce(_weighted((1 - target) * x - gain, weight), reduction)


def _bce_logits_expand(self: Any, target: Any, weight: Any, pos_weight: Any) -> Any:
    gain = logsigmoid_op(self)
    if pos_weight is not None:
        gain = gain * ((pos_weight - 1) * target + 1)
    return _weighted((1 - target) * self - gain, weight)


def _logits_self(
    grad: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str
) -> Any:
    if pos_weight is None:
        slope = self.sigmoid() - target
    else:
        scaled = pos_weight * target
        slope = (scaled + 1 - target) * self.sigmoid() - scaled
    return _weighted(slope * spread_loss(grad, self.shape, reduction), weight)


def _logits_target(grad: Any, self: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    slope = -self if pos_weight is None else (
        logsigmoid_op(-self) - pos_weight * logsigmoid_op(self))  # fmt: skip
    return _weighted(slope * spread_loss(grad, self.shape, reduction), weight)


binary_cross_entropy_with_logits = loss_entry(
    "binary_cross_entropy_with_logits", "self target weight? pos_weight? -> result", _bce_logits,
    _bce_logits_expand, samples=_samples(4, 0.1, 0.9), many_passes=True,
    vjp=dict(self=_logits_self, target=_logits_target),
)  # fmt: skip


def _soft_margin(x: Any, target: Any, *, reduction: str = "mean") -> Any:
    return _reduce(-_log_sigmoid(x * target), reduction)


def _soft_margin_vjp(grad: Any, self: Any, target: Any, reduction: str) -> Any:
    product = self * target
    return -target * (-product).sigmoid() * spread_loss(grad, product.shape, reduction)


soft_margin_loss = loss_entry(
    "soft_margin_loss", "self target -> result", _soft_margin,
    lambda self, target: -logsigmoid_op(self * target), samples=_samples(),
    second=True, vjp=dict(self=_soft_margin_vjp),
)  # fmt: skip
