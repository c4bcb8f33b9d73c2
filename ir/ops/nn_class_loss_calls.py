"""nll_loss, cross_entropy and the margin losses over classes, as torch publishes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements, repeated
from ..types import int64, type_word
from ..value import public
from .arithmetic import div_number
from .nn_class_losses import (
    class_dim,
    multi_margin_loss,
    multilabel_margin_loss,
    nll_loss,
    nll_loss2d,
)
from .nn_common import floats_only, reduce_loss, reduction_name
from .precision import full_precision
from .products import linear
from .softmax import log_softmax_op

# --- nll_loss ------------------------------------------------------------------------------------


def _check_class_weight(start: str, weight: Any, count: int) -> None:
    if weight is not None and tuple(weight.shape) != (count,):
        raise RuntimeError(f"{start}weight tensor should be defined either for all {count} classes "
                           "or no classes but got weight tensor of shape: "
                           f"{list(weight.shape)}")  # fmt: skip


def _check_nll(input: Any, target: Any, weight: Any, ignore_index: int) -> None:
    if not input.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if input.ndim > 1 and (not target.ndim or input.shape[0] != target.shape[0]):
        raise ValueError(f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
                         f"({target.shape[0] if target.ndim else 0}).")  # fmt: skip
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim > 2 and tuple(target.shape[1:]) != tuple(input.shape[2:]):
        wanted = [input.shape[0], *input.shape[2:]]
        raise RuntimeError(f"Expected target size {wanted}, got {list(target.shape)}")
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError("expected target dtype to be Long or Byte, but got "
                           f"{type_word(target.dtype)}")  # fmt: skip
    floats_only("nll_loss_out_frame", input.dtype)
    count = input.shape[class_dim(input.ndim)]
    _check_class_weight("", weight, count)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {type_word(input.dtype)} but found "
                           f"{type_word(weight.dtype)}")  # fmt: skip
    check_elements(_check_targets, target, count, ignore_index)


def _check_targets(array: np.ndarray, count: int, ignore_index: int) -> None:
    if array.min() >= 0 and array.max() < count:
        return
    bad = array[(array != ignore_index) & ((array < 0) | (array >= count))]
    if bad.size:
        raise IndexError(f"Target {int(bad.flat[0])} is out of bounds.")


@repeated(lambda value, low, count, message: (value < low) | (value >= count))
def _check_classes(array: np.ndarray, low: int, count: int, message: str) -> None:
    if not (array.min() >= low and array.max() < count):
        raise RuntimeError(message)


def _nll(input: Any, target: Any, weight: Any, reduction: str, ignore_index: int) -> Any:
    """Two dimensions, or four as an image; others are folded into these, as in torch's graph."""
    _check_nll(input, target, weight, ignore_index)
    target = target if target.dtype is int64 else target.to(int64)
    options = {"reduction": reduction, "ignore_index": ignore_index}
    if input.ndim == 1:
        target = target.reshape(()) if target.ndim else target
        return nll_loss(input, target, weight, **options)[0]
    if input.ndim == 2:
        return nll_loss(input, target, weight, **options)[0]
    if input.ndim == 4:
        return nll_loss2d(input, target, weight, **options)[0]
    shape = tuple(target.shape)
    rest = math.prod(input.shape[2:])
    flat = input.contiguous().view((*input.shape[:2], 1, rest))
    result = nll_loss2d(flat, target.reshape((shape[0], 1, rest)), weight, **options)[0]
    return result.view(shape) if reduction == "none" else result


@public("nll_loss", spaces="nn.functional", method=False)
def nll_loss_(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
    reduction='mean'): `input` holds log-probabilities."""
    reduction = reduction_name(reduction, size_average, reduce)
    return _nll(input, target, weight, reduction, ignore_index)


# --- cross_entropy -------------------------------------------------------------------------------


def _broadcast_weight(weight: Any, input: Any) -> Any:
    dim = class_dim(input.ndim)
    return weight.view(tuple(-1 if d == dim else 1 for d in range(input.ndim)))


def _probabilities(
    input: Any, target: Any, weight: Any, reduction: str, label_smoothing: float
) -> Any:
    """Targets that are probabilities of all classes."""
    dim = class_dim(input.ndim)
    count = input.shape[dim]
    logits = log_softmax_op(input, dim=dim)
    _check_class_weight("cross_entropy: ", weight, count)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / count
    product = logits * target
    if weight is not None:
        product = product * _broadcast_weight(weight, input)
    if reduction == "none":
        return -product.sum(dim)
    if reduction == "sum":
        return -product.sum()
    size = math.prod(input.shape)
    if not size:
        return -product.sum() * math.nan
    return div_number(-product.sum(), size // count)


def _smoothed(
    input: Any, target: Any, weight: Any, reduction: str, ignore_index: int, label_smoothing: float
) -> Any:
    """Class indices mixed with the uniform distribution."""
    dim = class_dim(input.ndim)
    logits = log_softmax_op(input, dim=dim)
    loss = _nll(logits, target, weight, reduction, ignore_index)
    target = target.to(int64)
    ignored = target == ignore_index
    spread = logits if weight is None else logits * _broadcast_weight(weight, input)
    smooth = (-spread.sum(dim)).masked_fill(ignored, 0.0)
    if reduction == "mean" and weight is None:
        smooth = smooth.sum() / ignored.logical_not().sum()
    elif reduction == "mean":
        safe = target.masked_fill(ignored, 0).reshape((math.prod(target.shape),))
        picked = weight.gather(0, safe).masked_fill(ignored.reshape(safe.shape), 0)
        smooth = smooth.sum() / picked.sum()
    else:
        smooth = reduce_loss(smooth, reduction)
    return (1 - label_smoothing) * loss + smooth * (label_smoothing / input.shape[dim])


@public("cross_entropy", spaces="nn.functional", method=False)
def cross_entropy(
    input: Any, target: Any, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100,
    reduce=None, reduction='mean', label_smoothing=0.0): of logits; targets are class indices or
    probabilities."""
    reduction = reduction_name(reduction, size_average, reduce)
    if label_smoothing > 1.0:
        raise RuntimeError("label_smoothing must be between 0.0 and 1.0. Got: "
                           f"{label_smoothing:g}")  # fmt: skip
    floats_only("log_softmax_lastdim_kernel_impl", input.dtype)
    if input.ndim and tuple(input.shape) == tuple(target.shape):
        if not target.dtype.is_floating_point:
            raise RuntimeError("Expected floating point type for target with class probabilities, "
                               f"got {type_word(target.dtype)}")  # fmt: skip
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _probabilities(input, target, weight, reduction, label_smoothing)
    if label_smoothing > 0:
        return _smoothed(input, target, weight, reduction, ignore_index, label_smoothing)
    if not input.ndim:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    logits = log_softmax_op(input, dim=class_dim(input.ndim))
    return _nll(logits, target, weight, reduction, ignore_index)


def _logits_shape(input: Any, weight: Any, bias: Any) -> tuple[int, ...]:
    """The shape of linear_cross_entropy's logits, after its checks."""
    if not 1 <= input.ndim <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {weight.ndim}"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {weight.shape[-1]}, respectively"
        )
    out = tuple(weight.shape[:-1])
    if bias is not None and tuple(bias.shape) != out:
        raise RuntimeError(f"expected linear_bias shape {out}, got {tuple(bias.shape)}")
    if len(out) > 1 and input.ndim == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(weight.shape)} requires "
            f"batched input, (N, {input.shape[-1]}), got unbatched input with shape "
            f"{tuple(input.shape)}"
        )
    return (*input.shape[:-1], *out)


@public("linear_cross_entropy", spaces="nn.functional", method=False)
def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: Any = None, label_smoothing: float = 0.0,
    options: Any = None,
) -> Any:  # fmt: skip
    """linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None,
    reduction='mean', ignore_index=None, label_smoothing=0.0, options=None): cross_entropy of
    linear(input); `options` of torch's chunked form change nothing here."""
    shape = _logits_shape(input, linear_weight, linear_bias)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if linear_weight.ndim > 2:
        linear_weight = linear_weight.reshape(-1, linear_weight.shape[-1])
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight, linear_bias)
    logits = logits if tuple(logits.shape) == shape else logits.reshape(shape)
    ignored = -100 if ignore_index is None else ignore_index
    return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction,
                         label_smoothing=label_smoothing)  # fmt: skip


# --- margins -------------------------------------------------------------------------------------


def _check_matrix(input: Any) -> None:
    if input.ndim > 2 or (input.ndim and input.shape[-1] == 0):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, "
                           f"but got: {list(input.shape)}")  # fmt: skip


def _check_long(target: Any) -> None:
    if target.dtype is not int64:
        raise RuntimeError(f"expected scalar type Long but found {type_word(target.dtype)}")


@public("multi_margin_loss", spaces="nn.functional", method=False)
@full_precision
def multi_margin_loss_(
    input: Any, target: Any, p: int = 1, margin: float = 1.0, weight: Any = None,
    size_average: Any = None, reduce: Any = None, reduction: str = "mean",
) -> Any:  # fmt: skip
    """multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None,
    reduce=None, reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_matrix(input)
    batch = input.shape[0] if input.ndim == 2 else 1
    classes = input.shape[-1] if input.ndim else 1
    if math.prod(target.shape) != batch or target.ndim > 1:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the "
                           "number of input samples (batch size). Expected target size "
                           f"[{batch}], but got {list(target.shape)}. Input has shape "
                           f"{list(input.shape)}.")  # fmt: skip
    if weight is not None and weight.shape[0] != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got "
                           f"{list(weight.shape)}")  # fmt: skip
    _check_long(target)
    floats_only("multi_margin_loss_cpu_kernel", input.dtype)
    check_elements(_check_classes, target, 0, classes, "target out of range")
    result = multi_margin_loss(input.reshape((batch, classes)), target.reshape((batch,)), weight,
                               p=p, margin=margin, reduction=reduction)  # fmt: skip
    return result.reshape(()) if reduction == "none" and not target.ndim else result


@public("multilabel_margin_loss", spaces="nn.functional", method=False)
@full_precision
def multilabel_margin_loss_(
    input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction='mean')."""
    reduction = reduction_name(reduction, size_average, reduce)
    _check_matrix(input)
    if tuple(target.shape) != tuple(input.shape):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: "
                           f"{list(input.shape)}")  # fmt: skip
    _check_long(target)
    floats_only("multilabel_margin_loss_forward_out_frame", input.dtype)
    classes = input.shape[-1] if input.ndim else 1
    check_elements(_check_classes, target, -1, classes, "argument #2 'target' is out of range")
    if input.ndim == 2:
        return multilabel_margin_loss(input, target, reduction=reduction)[0]
    shape = (1, classes)
    result = multilabel_margin_loss(input.reshape(shape), target.reshape(shape),
                                    reduction=reduction)[0]  # fmt: skip
    return result.reshape(()) if reduction == "none" else result
