"""Normalisation entries: layer, group and batch norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType
from .nn_common import formally, in_one_go
from .nn_standardize import (
    Ints,
    affine,
    in_ops,
    norm_rows_dot,
    norm_rows_grad,
    rows_dot,
    standardize,
    standardize_rows,
    standardize_vjp,
    to_dtype,
)

# --- layer norm ----------------------------------------------------------------------------------


def _layer(x: Any, weight: Any = None, bias: Any = None, *, count: int, eps: float) -> Any:
    weight, bias = to_dtype(x, weight, bias)
    return standardize_rows(x, count, eps, weight, bias)


def _check_affine(size: int, parameters: tuple[TensorType | None, ...]) -> None:
    """Graphs from text may say anything; calls were checked in torch's words."""
    for parameter in parameters:
        if parameter is not None and parameter.numel != size:
            raise TypeError(f"a factor or an offset must have {size} elements, not {parameter}")


def _layer_type(self: TensorType, *affine: TensorType | None, count: int, eps: float) -> Any:
    _check_affine(math.prod(self.shape[self.ndim - count :]), affine)
    kept = TensorType(self.dtype, (*self.shape[: self.ndim - count], *(1,) * count))
    return self, kept, kept


def _layer_expand(self: Any, weight: Any, bias: Any, *, count: int, eps: float) -> Any:
    dims = tuple(range(self.ndim - count, self.ndim))
    value, mean, var = in_ops(self, dims, eps)
    shape = tuple(self.shape[self.ndim - count :])
    return affine(value, weight, bias, shape), mean, var


def _layer_self(grad_result: Any, grad_mean: Any, grad_var: Any, self: Any, weight: Any, mean: Any,
                var: Any, count: int, eps: float) -> Any:  # fmt: skip
    if in_one_go(self) and grad_mean is None and grad_var is None:
        return norm_rows_grad(grad_result, self, mean, var, weight, count=count, eps=eps)
    dims = tuple(range(self.ndim - count, self.ndim))
    if grad_result is not None and weight is not None:
        grad_result = grad_result * weight
    return standardize_vjp(self, mean, var, dims, eps, grad_result, grad_mean, grad_var)


def _layer_weight(grad_result: Any, self: Any, mean: Any, var: Any, count: int, eps: float) -> Any:
    if in_one_go(self):
        return norm_rows_dot(grad_result, self, mean, var, count=count, eps=eps)
    return rows_dot(grad_result, self, mean, var, count=count, eps=eps)


def _norm_samples(*shapes: Ints, **attrs: Any) -> Any:
    return lambda rng: [(tuple(rng.standard_normal(s) for s in shapes), attrs)]


# torch keeps the inverse deviation, not the variance, as its `result2`
_SHOWN = {"self": "input", "mean": "result1", "var": None}

layer_norm = define(
    "layer_norm", "self weight? bias? -> result mean var", numpy=_layer, infer=_layer_type,
    lower=Decompose(_layer_expand), node="NativeLayerNormBackward0", second=True,
    shown=_SHOWN | {"count": None, "eps": None, "normalized_shape": lambda node: (
        node.input_type(0).shape[-node.attrs["count"] :])},
    samples=_norm_samples((3, 4, 5), (4, 5), (4, 5), count=2, eps=1e-5), many_passes=True,
    vjp=dict(
        self=_layer_self,
        weight=_layer_weight,
        bias=lambda grad_result: grad_result,
    ),
)  # fmt: skip

# --- group norm ----------------------------------------------------------------------------------


def _channel_shape(ndim: int, size: int) -> Ints:
    return (1, size, *(1,) * (ndim - 2))


def _group(x: Any, weight: Any = None, bias: Any = None, *, groups: int, eps: float) -> Any:
    weight, bias = to_dtype(x, weight, bias)
    channels = x.shape[1]
    grouped = x.reshape(x.shape[0], groups, channels // groups, math.prod(x.shape[2:]))
    shape = (1, groups, channels // groups, 1)
    scale, shift = (v if v is None else v.reshape(shape) for v in (weight, bias))
    result, mean, var = standardize(grouped, (2, 3), eps, scale, shift)
    return result.reshape(x.shape), mean[:, :, 0, 0], var[:, :, 0, 0]


def _group_type(self: TensorType, *affine: TensorType | None, groups: int, eps: float) -> Any:
    _check_affine(self.shape[1], affine)
    moments = TensorType(self.dtype, (self.shape[0], groups))
    return self, moments, moments


def _grouped(self: Any, groups: int) -> Any:
    return self.reshape((self.shape[0], groups, math.prod(self.shape[1:]) // groups))


def _group_expand(self: Any, weight: Any, bias: Any, *, groups: int, eps: float) -> Any:
    value, mean, var = in_ops(_grouped(self, groups), (2,), eps)
    shape = _channel_shape(self.ndim, self.shape[1])
    moments = (self.shape[0], groups)
    result = affine(value.reshape(tuple(self.shape)), weight, bias, shape)
    return result, mean.view(moments), var.view(moments)


def _kept(value: Any) -> Any:
    return None if value is None else value.unsqueeze(2)


# The gradients share sums over each channel of each item; those over a group are made of them.


def _in_channels(value: Any, self: Any, groups: int) -> Any:
    """(items, groups, channels of a group, rest)."""
    items, channels = self.shape[:2]
    return value.reshape((items, groups, channels // groups, math.prod(self.shape[2:])))


def _per_group(value: Any) -> Any:
    return value.unsqueeze(2).unsqueeze(3)


def _group_dots(grad: Any, self: Any, mean: Any, groups: int) -> Any:
    """By channel of each item: gradient times distance from the mean."""
    centred = _in_channels(self, self, groups) - _per_group(mean)
    return (_in_channels(grad, self, groups) * centred).sum((3,), keepdim=True)


def _group_sums(grad: Any, self: Any, groups: int) -> Any:
    return _in_channels(grad, self, groups).sum((3,), keepdim=True)


def _group_by_sums(grad: Any, self: Any, weight: Any, mean: Any, var: Any, groups: int,
                   eps: float) -> Any:  # fmt: skip
    along, level = _group_dots(grad, self, mean, groups), _group_sums(grad, self, groups)
    grad = _in_channels(grad, self, groups)
    if weight is not None:
        weight = weight.view((1, groups, self.shape[1] // groups, 1))
        along, level, grad = along * weight, level * weight, grad * weight
    factor, count = _per_group((var + eps).rsqrt()), math.prod(self.shape[1:]) // groups
    along = along.sum((2,), keepdim=True) * (factor * factor / count)
    level = level.sum((2,), keepdim=True) / count
    centred = _in_channels(self, self, groups) - _per_group(mean)
    return ((grad - level - centred * along) * factor).reshape(tuple(self.shape))


def _group_self(grad_result: Any, grad_mean: Any, grad_var: Any, self: Any, weight: Any, mean: Any,
                var: Any, groups: int, eps: float) -> Any:  # fmt: skip
    if grad_mean is None and grad_var is None:
        if not in_one_go(self):
            return _group_by_sums(grad_result, self, weight, mean, var, groups, eps)
        if weight is not None:
            grad_result = grad_result * weight.view(_channel_shape(self.ndim, self.shape[1]))
        total = norm_rows_grad(_grouped(grad_result, groups), _grouped(self, groups), _kept(mean),
                               _kept(var), None, count=1, eps=eps)  # fmt: skip
        return total.reshape(tuple(self.shape))
    total = standardize_vjp(_grouped(self, groups), _kept(mean), _kept(var), (2,), eps, None,
                            _kept(grad_mean), _kept(grad_var))  # fmt: skip
    total = total.reshape(tuple(self.shape))
    if grad_result is None:
        return total
    return total + _group_by_sums(grad_result, self, weight, mean, var, groups, eps)


def _channel_sum(value: Any) -> Any:
    return value.sum((0, *range(2, value.ndim)))


def _group_weight(grad_result: Any, self: Any, mean: Any, var: Any, groups: int, eps: float) -> Any:
    dots = _group_dots(grad_result, self, mean, groups) * _per_group((var + eps).rsqrt())
    return dots.sum((0,)).reshape((self.shape[1],))


def _group_bias(grad_result: Any, self: Any, groups: int) -> Any:
    return _group_sums(grad_result, self, groups).sum((0,)).reshape((self.shape[1],))


group_norm = define(
    "group_norm", "self weight? bias? -> result mean var", numpy=_group, infer=_group_type,
    lower=Decompose(_group_expand), node="NativeGroupNormBackward0",
    shown=_SHOWN | {"groups": "group", "N": lambda node: node.input_type(0).shape[0],
                    "C": lambda node: node.input_type(0).shape[1],
                    "HxW": lambda node: math.prod(node.input_type(0).shape[2:])},
    samples=_norm_samples((2, 4, 3), (4,), (4,), groups=2, eps=1e-5), many_passes=True,
    vjp=dict(self=_group_self, weight=_group_weight, bias=_group_bias),
)  # fmt: skip

# --- batch norm ----------------------------------------------------------------------------------


def _others(ndim: int) -> Ints:
    """All dimensions but that of the channels."""
    return (0, *range(2, ndim))


def _batch(x: Any, weight: Any = None, bias: Any = None, *, eps: float) -> Any:
    weight, bias = to_dtype(x, weight, bias)
    flat = x.reshape(x.shape[0], x.shape[1], math.prod(x.shape[2:]))
    scale, shift = (v if v is None else v.reshape(1, -1, 1) for v in (weight, bias))
    result, mean, var = standardize(flat, (0, 2), eps, scale, shift)
    return result.reshape(x.shape), mean[0, :, 0], var[0, :, 0]


def _batch_type(self: TensorType, *affine: TensorType | None, eps: float) -> Any:
    _check_affine(self.shape[1], affine)
    moments = TensorType(self.dtype, (self.shape[1],))
    return self, moments, moments


def _batch_expand(self: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    value, mean, var = in_ops(self, _others(self.ndim), eps)
    shape, moments = _channel_shape(self.ndim, self.shape[1]), (self.shape[1],)
    return affine(value, weight, bias, shape), mean.view(moments), var.view(moments)


def _batch_self(grad_result: Any, grad_mean: Any, grad_var: Any, self: Any, weight: Any, mean: Any,
                var: Any, eps: float) -> Any:  # fmt: skip
    shape = _channel_shape(self.ndim, self.shape[1])
    if grad_result is not None and weight is not None:
        grad_result = grad_result * weight.view(shape)
    moments = [None if v is None else v.view(shape) for v in (mean, var, grad_mean, grad_var)]
    mean, var, grad_mean, grad_var = moments
    dims = _others(self.ndim)
    return standardize_vjp(self, mean, var, dims, eps, grad_result, grad_mean, grad_var)


def _batch_weight(grad_result: Any, self: Any, mean: Any, var: Any, eps: float) -> Any:
    shape = _channel_shape(self.ndim, self.shape[1])
    return _channel_sum(grad_result * (self - mean.view(shape))) * (var + eps).rsqrt()


batch_norm = define(
    "batch_norm", "self weight? bias? -> result mean var", numpy=_batch, infer=_batch_type,
    lower=Decompose(_batch_expand), node="NativeBatchNormBackward0", second=True,
    shown=_SHOWN | {"training": lambda node: True},
    samples=_norm_samples((3, 4, 2), (4,), (4,), eps=1e-5), many_passes=True,
    vjp=dict(self=_batch_self, weight=_batch_weight,
             bias=lambda grad_result: _channel_sum(grad_result)),
)  # fmt: skip

# With given moments (evaluation) the norm is an affine map per channel.


def _fixed(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, eps: float) -> Any:
    mean, var, weight, bias = to_dtype(x, mean, var, weight, bias)
    factor = 1 / np.sqrt(var + x.dtype.type(eps))
    if weight is not None:
        factor = factor * weight
    shape = _channel_shape(x.ndim, -1)
    offset = -mean * factor if bias is None else bias - mean * factor
    result = x * factor.reshape(shape)
    result += offset.reshape(shape)
    return result


def _fixed_expand(self: Any, mean: Any, var: Any, weight: Any, bias: Any, *, eps: float) -> Any:
    shape = _channel_shape(self.ndim, self.shape[1])
    factor = (var + eps).rsqrt()
    factor = factor if weight is None else factor * weight
    offset = -mean * factor if bias is None else bias - mean * factor
    return self * factor.view(shape) + offset.view(shape)


def _fixed_self(grad: Any, self: Any, var: Any, weight: Any, eps: float) -> Any:
    factor = (var + eps).rsqrt()
    factor = factor if weight is None else factor * weight
    return formally(grad * factor.view(_channel_shape(grad.ndim, grad.shape[1])), self)


def _fixed_weight(grad: Any, self: Any, mean: Any, var: Any, eps: float) -> Any:
    shape = _channel_shape(self.ndim, self.shape[1])
    return _channel_sum(grad * (self - mean.view(shape))) * (var + eps).rsqrt()


batch_norm_fixed = define(
    "batch_norm_fixed", "self mean var weight? bias? -> result", numpy=_fixed,
    infer=lambda self, *_, eps: self, lower=Decompose(_fixed_expand),
    node="NativeBatchNormBackward0",
    samples=lambda rng: [((rng.standard_normal((3, 4, 2)), rng.standard_normal(4),
                           rng.random(4) + 0.5, rng.standard_normal(4), rng.standard_normal(4)),
                          {"eps": 1e-5})],
    vjp=dict(self=_fixed_self, weight=_fixed_weight, bias=lambda grad: _channel_sum(grad)),
)  # fmt: skip
