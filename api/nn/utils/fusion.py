"""Batch normalisation folded into the layer before it, for inference."""

from __future__ import annotations

import copy
from typing import Any

from ...tracer.creation import ones_like, zeros_like
from ..parameter import Parameter


def _fused(weight: Any, bias: Any, mean: Any, var: Any, eps: float, gain: Any, shift: Any,
           shape: tuple[int, ...]) -> tuple[Parameter, Parameter]:  # fmt: skip
    """weight * scale and (bias - mean) * scale + shift, with scale = gain / sqrt(var + eps)."""
    bias = zeros_like(mean) if bias is None else bias
    gain = ones_like(mean) if gain is None else gain
    shift = zeros_like(mean) if shift is None else shift
    scale = gain * (var + eps).rsqrt()
    new_weight = (weight * scale.reshape(shape)).to(dtype=weight.dtype)
    new_bias = ((bias - mean) * scale + shift).to(dtype=bias.dtype)
    return (Parameter(new_weight, weight.requires_grad), Parameter(new_bias, bias.requires_grad))


def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float,
                         bn_w: Any, bn_b: Any, transpose: bool = False) -> Any:  # fmt: skip
    """fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False)."""
    shape = [1, -1] if transpose else [-1, 1]
    full = (*shape, *[1] * (conv_w.ndim - 2))
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, full)


def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float,
                           bn_w: Any, bn_b: Any) -> Any:  # fmt: skip
    """fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _evaluated(layer: Any, bn: Any, fuse: Any, **options: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        **options)  # fmt: skip
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """fuse_conv_bn_eval(conv, bn, transpose=False): one convolution that does both."""
    return _evaluated(conv, bn, fuse_conv_bn_weights, transpose=transpose)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """fuse_linear_bn_eval(linear, bn): one linear layer that does both."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or "
                             f"bn.num_features == 1 must hold, got {linear.out_features} and "
                             f"{bn.num_features}")  # fmt: skip
    return _evaluated(linear, bn, fuse_linear_bn_weights)
