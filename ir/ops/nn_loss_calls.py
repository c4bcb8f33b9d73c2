"""Elementwise losses as torch publishes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements, is_number, repeated, warn
from ..bind import casting, state
from ..types import FLOAT, broadcast_shapes, result_type, type_word
from ..value import public
from .nn_activations import logsigmoid_op
from .nn_common import floats_only, reduce_loss, reduction_name
from .nn_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    mse_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from .precision import full_precision


def _size(value: Any) -> str:
    return f"torch.Size({list(value.shape)})"


def _expanded(input: Any, target: Any) -> tuple[Any, Any]:
    """Both broadcast to one shape; torch warns, since it is seldom meant."""
    if tuple(target.shape) == tuple(input.shape):
        return input, target
    warn(
        f"Using a target size ({_size(target)}) that is different to the input size "
        f"({_size(input)}). This will likely lead to incorrect results due to broadcasting. Please "
        "ensure they have the same size.",
    )
    shape = broadcast_shapes(tuple(input.shape), tuple(target.shape))
    # torch has no node for an operand that has the shape already
    given, wanted = (v if tuple(v.shape) == shape else v.expand(shape) for v in (input, target))
    return given, wanted


def _promoted(kernel: str, *values: Any) -> list[Any]:
    dtype = result_type(values)
    floats_only(kernel, dtype)
    return [v if v.dtype is dtype else v.to(dtype) for v in values]


def _weighted_mean(loss: Any, weight: Any, input: Any, reduction: str) -> Any:
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduce_loss(loss, reduction)


@public("mse_loss", spaces="nn.functional", method=False)
def mse_loss_(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    """mse_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, y = _expanded(input, target)
    if weight is not None:
        return _weighted_mean((x - y).pow(2), weight, input, reduction)
    return mse_loss(*_promoted("mse_cpu", x, y), reduction=reduction)


def _l1(x: Any, y: Any, reduction: str) -> Any:
    return reduce_loss((x - y).abs(), reduction)


@public("l1_loss", spaces="nn.functional", method=False)
@full_precision
def l1_loss(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    weight: Any = None,
) -> Any:  # fmt: skip
    """l1_loss(input, target, size_average=None, reduce=None, reduction='mean', weight=None)."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, y = _expanded(input, target)
    if weight is not None:
        return _weighted_mean((x - y).abs(), weight, input, reduction)
    return _l1(x, y, reduction)


@public("smooth_l1_loss", spaces="nn.functional", method=False)
def smooth_l1_loss_(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    beta: float = 1.0,
) -> Any:  # fmt: skip
    """smooth_l1_loss(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0)."""
    reduction = reduction_name(reduction, size_average, reduce)
    x, y = _expanded(input, target)
    if beta == 0.0:
        return _l1(x, y, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return smooth_l1_loss(*_promoted("smooth_l1_cpu", x, y), reduction=reduction, beta=beta)


@public("huber_loss", spaces="nn.functional", method=False)
def huber_loss_(
    input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None
) -> Any:
    """huber_loss(input, target, reduction='mean', delta=1.0, weight=None)."""
    reduction = reduction_name(reduction)
    x, y = _expanded(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    x, y = _promoted("huber_cpu", x, y)
    if weight is None:
        return huber_loss(x, y, reduction=reduction, delta=delta)
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")
    return reduce_loss(huber_loss(x, y, reduction="none", delta=delta) * weight, reduction)


# --- probabilities -------------------------------------------------------------------------------


@repeated(lambda value, name: ((value >= 0) & (value <= 1)).logical_not())
def _check_unit(array: np.ndarray, name: str) -> None:
    if not (array.min() >= 0 and array.max() <= 1):
        raise RuntimeError(f"all elements of {name} should be between 0 and 1")


@public("binary_cross_entropy", spaces="nn.functional", method=False)
def binary_cross_entropy_(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None,
    reduction='mean'): of probabilities."""
    reduction = reduction_name(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(f"Using a target size ({_size(target)}) that is different to the input "
                         f"size ({_size(input)}) is deprecated. Please ensure they have the same "
                         "size.")  # fmt: skip
    if weight is not None:
        weight = weight.expand(broadcast_shapes(tuple(weight.shape), tuple(target.shape)))
    floats_only("binary_cross_entropy", input.dtype)
    for value in (target, weight):
        if value is not None and value.dtype is not input.dtype and not casting():
            raise RuntimeError(f"Found dtype {type_word(value.dtype)} but expected "
                               f"{type_word(input.dtype)}")  # fmt: skip
    check_elements(_check_unit, input, "input")
    check_elements(_check_unit, target, "target")
    return binary_cross_entropy(input, target, weight, reduction=reduction)


@public("binary_cross_entropy_with_logits", spaces="nn.functional", method=False)
@full_precision
def binary_cross_entropy_with_logits_(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean", pos_weight: Any = None,
) -> Any:  # fmt: skip
    """binary_cross_entropy_with_logits(input, target, weight=None, size_average=None,
    reduce=None, reduction='mean', pos_weight=None)."""
    reduction = reduction_name(reduction, size_average, reduce)
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(f"Target size ({_size(target)}) must be the same as input size "
                         f"({_size(input)})")  # fmt: skip
    if target.dtype.category < FLOAT:
        raise RuntimeError("result type Float can't be cast to the desired output type "
                           f"{type_word(target.dtype)}")  # fmt: skip
    dtype = result_type([v for v in (input, target, weight, pos_weight) if v is not None])
    values = [v if v is None or v.dtype is dtype else v.to(dtype)
              for v in (input, target, weight, pos_weight)]  # fmt: skip
    return binary_cross_entropy_with_logits(*values, reduction=reduction)


@public("kl_div", spaces="nn.functional", method=False)
@full_precision
def kl_div(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    log_target: bool = False,
) -> Any:  # fmt: skip
    """kl_div(input, target, size_average=None, reduce=None, reduction='mean', log_target=False):
    `input` in log space; 'batchmean' divides the sum by the batch size."""
    if size_average is None and reduce is None and reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition.'mean' will be changed to behave the same as 'batchmean' in the next major "
            "release.",
        )
    batch = reduction == "batchmean"
    reduction = reduction_name("sum" if batch else reduction, size_average, reduce)
    if input.dtype.category < FLOAT or target.dtype.category < FLOAT:
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        loss = target.exp() * (target - input)
    else:
        loss = target.xlogy(target) - target * input
    result = reduce_loss(loss, reduction)
    return result / input.shape[0] if batch and input.ndim else result


@public("poisson_nll_loss", spaces="nn.functional", method=False)
@full_precision
def poisson_nll_loss(
    input: Any, target: Any, log_input: bool = True, full: bool = False, size_average: Any = None,
    eps: float = 1e-8, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """poisson_nll_loss(input, target, log_input=True, full=False, size_average=None, eps=1e-08,
    reduce=None, reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduce_loss(loss, reduction)


def _variance(input: Any, var: Any) -> Any:
    """The variance as a tensor that broadcasts; ValueError in torch's words."""
    if is_number(var):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        return input.new_full(tuple(input.shape), var)
    if bool(var.lt(0).any()):
        raise ValueError("var has negative entry/entries")
    have, wanted = tuple(var.shape), tuple(input.shape)
    if have == wanted:
        return var
    if have == wanted[:-1]:
        return var.unsqueeze(-1)
    if len(have) == len(wanted) and sum(y for x, y in zip(wanted, have) if x != y) == 1:
        return var
    raise ValueError(f"var is of incorrect size {[*have]}; use {[*wanted]}, or 1 in a dimension")


@public("gaussian_nll_loss", spaces="nn.functional", method=False)
def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """gaussian_nll_loss(input, target, var, full=False, eps=1e-06, reduction='mean')."""
    var = _variance(input, var)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # the gradient passes through the bound as if it were not there
    var = var.clone() + (var.clamp(min=eps) - var).detach()
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)


# --- margins -------------------------------------------------------------------------------------


@public("soft_margin_loss", spaces="nn.functional", method=False)
@full_precision
def soft_margin_loss_(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """soft_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')."""
    if state.grad_enabled and getattr(target, "requires_grad", False):
        raise RuntimeError("The function 'soft_margin_loss' is not differentiable with respect to "
                           "argument 'target'. This input cannot have requires_grad True."
                           )  # fmt: skip
    reduction = reduction_name(reduction, size_average, reduce)
    dtype = result_type((input, target))
    if dtype.category < FLOAT:
        raise RuntimeError("result type Float can't be cast to the desired output type "
                           f"{type_word(dtype)}")  # fmt: skip
    return soft_margin_loss(*_promoted("soft_margin", input, target), reduction=reduction)


@public("hinge_embedding_loss", spaces="nn.functional", method=False)
@full_precision
def hinge_embedding_loss(
    input: Any, target: Any, margin: float = 1.0, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None,
    reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    nothing = input.new_zeros(tuple(input.shape))
    below = (margin - input).clamp_min(0).where(target != 1, nothing)
    return reduce_loss(below + input.where(target != -1, nothing), reduction)


@public("margin_ranking_loss", spaces="nn.functional", method=False)
def margin_ranking_loss(
    input1: Any, input2: Any, target: Any, margin: float = 0, size_average: Any = None,
    reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None,
    reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but "
                           f"got sizes: input1: {_size(input1)}, input2: {_size(input2)}, target: "
                           f"{_size(target)} ")  # fmt: skip
    return reduce_loss((-target * (input1 - input2) + margin).clamp_min(0), reduction)


@public("multilabel_soft_margin_loss", spaces="nn.functional", method=False)
def multilabel_soft_margin_loss(
    input: Any, target: Any, weight: Any = None, size_average: Any = None, reduce: Any = None,
    reduction: str = "mean",
) -> Any:  # fmt: skip
    """multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None,
    reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    loss = -(target * logsigmoid_op(input) + (1 - target) * logsigmoid_op(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(input.ndim - 1) / input.shape[-1]
    return reduce_loss(loss, reduction)
