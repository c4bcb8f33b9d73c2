"""Normalisations as torch publishes them: checks, running statistics, composites."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..bind import state
from ..dims import whole
from ..types import FLOAT
from ..value import public
from .nn_common import check_value, floats_only
from .nn_norms import batch_norm, batch_norm_fixed, group_norm, layer_norm


def _check_mixed(input: Any, *parameters: Any) -> None:
    """Parameters have the input's dtype, or float32 beside half-precision inputs."""
    for parameter in parameters:
        if parameter is None or parameter.dtype is input.dtype:
            continue
        if input.dtype.itemsize != 2 or parameter.dtype.name != "float32":
            raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")


# --- batch norm ----------------------------------------------------------------------------------


def _check_batch(input: Any, training: bool, **parameters: Any) -> None:
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, value in parameters.items():
        if value is None:
            if name.startswith("running") and not training:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
        elif math.prod(value.shape) != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not "
                               f"{math.prod(value.shape)}")  # fmt: skip
    floats_only("batch_norm", input.dtype)
    _check_mixed(input, *parameters.values())


def _normalize_batch(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, training: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    if (running_mean is None) != (running_var is None) and training:
        raise ValueError("running_mean and running_var must either both be None or neither be None")
    _check_batch(input, training, running_mean=running_mean, running_var=running_var,
                 weight=weight, bias=bias)  # fmt: skip
    if input.ndim < 2:
        if not math.prod(input.shape) and not training:
            return input.clone()
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if not training:
        return batch_norm_fixed(input, running_mean, running_var, weight, bias, eps=eps)
    result, mean, var = batch_norm(input, weight, bias, eps=eps)
    if running_mean is not None:
        _update(input, running_mean, running_var, mean, var, momentum)
    return result


def _update(
    input: Any, running_mean: Any, running_var: Any, mean: Any, var: Any, momentum: Any
) -> None:
    """Moves the running moments towards the batch's, in place; autograd does not see the write."""
    for running in (running_mean, running_var):
        if getattr(running, "requires_grad", False):
            raise RuntimeError("The function 'native_batch_norm' is not differentiable with respect"
                               " to argument 'running_mean'. This input cannot have requires_grad "
                               "True.")  # fmt: skip
    count = math.prod(input.shape) // max(1, input.shape[1])
    if not count:
        return
    grad_enabled, state.grad_enabled = state.grad_enabled, False
    try:
        unbiased = var * (count / (count - 1) if count > 1 else float("nan"))
        for running, fresh in ((running_mean, mean), (running_var, unbiased)):
            running.data.copy_(running * (1 - momentum) + fresh.to(running.dtype) * momentum)
    finally:
        state.grad_enabled = grad_enabled


def _check_batch_size(shape: Any) -> None:
    count = shape[0] * math.prod(shape[2:])
    if count == 1:
        raise ValueError("Expected more than 1 value per channel when training, got input size "
                         f"torch.Size({list(shape)})")  # fmt: skip


@public("batch_norm", spaces="nn.functional", method=False)
def batch_norm_(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False,
    momentum=0.1, eps=1e-05)."""
    check_value("batch_norm", input=input)
    if training and input.ndim > 1:
        _check_batch_size(input.shape)
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _normalize_batch(input, running_mean, running_var, weight, bias, training, momentum, eps)


@public("batch_norm", method=False)
def torch_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps,
    cudnn_enabled)."""
    return _normalize_batch(input, running_mean, running_var, weight, bias, training, momentum, eps)


# --- instance norm -------------------------------------------------------------------------------


def _repeated(value: Any, count: int) -> Any:
    return value if value is None else value.repeat(count)


def _normalize_instances(
    input: Any, running_mean: Any, running_var: Any, weight: Any, bias: Any, use_input_stats: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """Batch norm of a batch of one whose channels are those of all samples."""
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when "
                           "use_input_stats is false")  # fmt: skip
    shape = tuple(input.shape)
    batch, channels = shape[:2]
    means, variances = _repeated(running_mean, batch), _repeated(running_var, batch)
    wide = input.contiguous().view((1, batch * channels, *shape[2:]))
    result = _normalize_batch(wide, means, variances, _repeated(weight, batch),
                              _repeated(bias, batch), use_input_stats, momentum, eps)  # fmt: skip
    if use_input_stats:
        grad_enabled, state.grad_enabled = state.grad_enabled, False
        try:
            for running, fresh in ((running_mean, means), (running_var, variances)):
                if running is not None:
                    running.data.copy_(fresh.view((batch, channels)).mean(0))
        finally:
            state.grad_enabled = grad_enabled
    return result.view(shape)


@public("instance_norm", spaces="nn.functional", method=False)
def instance_norm(
    input: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None,
    bias: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None,
    use_input_stats=True, momentum=0.1, eps=1e-05)."""
    check_value("instance_norm", input=input)
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError("Expected more than 1 spatial element when training, got input size "
                         f"torch.Size({list(input.shape)})")  # fmt: skip
    return _normalize_instances(input, running_mean, running_var, weight, bias, use_input_stats,
                                momentum, eps)  # fmt: skip


@public("instance_norm", method=False)
def torch_instance_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, use_input_stats: bool,
    momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum,
    eps, cudnn_enabled)."""
    return _normalize_instances(input, running_mean, running_var, weight, bias, use_input_stats,
                                momentum, eps)  # fmt: skip


# --- layer, root mean square and group norm ------------------------------------------------------


def _trailing_shape(name: str, input: Any, normalized_shape: Any, **parameters: Any) -> Any:
    """Checks that the trailing dimensions are `normalized_shape`; it and its length."""
    check_value(name, input=input)
    if isinstance(normalized_shape, int):
        raise TypeError(f"{name}(): argument 'normalized_shape' (position 2) must be tuple of "
                        "ints, not int")  # fmt: skip
    shape = tuple(map(whole, normalized_shape))
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., "
            "containing at least one element, but got normalized_shape = []"
        )
    for word, value in parameters.items():
        if value is not None and tuple(value.shape) != shape:
            raise RuntimeError(f"Expected {word} to be of same shape as normalized_shape, but got "
                               f"{word} of shape {list(value.shape)} and normalized_shape = "
                               f"{list(shape)}")  # fmt: skip
    if tuple(input.shape[-len(shape) :]) != shape:
        expected = ", ".join(["*", *map(str, shape)])
        raise RuntimeError(f"Given normalized_shape={list(shape)}, expected input with shape "
                           f"[{expected}], but got input of size{list(input.shape)}")  # fmt: skip
    return shape


@public("layer_norm", spaces="torch nn.functional", method=False)
def layer_norm_(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    """layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05)."""
    shape = _trailing_shape("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    floats_only("LayerNormKernelImpl", input.dtype)
    _check_mixed(input, weight, bias)
    return layer_norm(input, weight, bias, count=len(shape), eps=eps)[0]


@public("rms_norm", spaces="torch nn.functional", method=False)
def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: Any = None) -> Any:
    """rms_norm(input, normalized_shape, weight=None, eps=None): x / root mean square of x."""
    shape = _trailing_shape("rms_norm", input, normalized_shape, weight=weight)
    dtype = input.dtype
    if dtype.category < FLOAT:
        floats_only("rms_norm", dtype)
    wide = input.float() if dtype.itemsize == 2 else input
    if eps is None:
        eps = float(np.finfo(dtype.to_real().compute).eps)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    result = wide * wide.pow(2).mean(dims, keepdim=True).add(eps).rsqrt()
    if weight is not None:
        result = result * weight
    return result if result.dtype is dtype else result.to(dtype)


@public("group_norm", spaces="torch nn.functional", method=False)
def group_norm_(
    input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Any:  # fmt: skip
    """group_norm(input, num_groups, weight=None, bias=None, eps=1e-05)."""
    check_value("group_norm", input=input)
    if input.ndim < 2:
        raise RuntimeError("Expected at least 2 dimensions for input tensor but received "
                           f"{input.ndim}")  # fmt: skip
    channels = input.shape[1]
    _check_batch_size((input.shape[0] * channels // num_groups, num_groups, *input.shape[2:]))
    if channels % num_groups:
        raise RuntimeError("Expected number of channels in input to be divisible by num_groups, "
                           f"but got input of shape {list(input.shape)} and "
                           f"num_groups={num_groups}")  # fmt: skip
    for word, value in (("weight", weight), ("bias", bias)):
        if value is not None and tuple(value.shape) != (channels,):
            raise RuntimeError(f"Expected {word} to be a vector of size equal to the number of "
                               f"channels in input, but got {word} of shape {list(value.shape)} "
                               f"and input of shape {list(input.shape)}")  # fmt: skip
    floats_only("GroupNormKernelImpl", input.dtype)
    _check_mixed(input, weight, bias)
    return group_norm(input, weight, bias, groups=num_groups, eps=eps)[0]


# --- composites ----------------------------------------------------------------------------------


@public("local_response_norm", spaces="nn.functional", method=False)
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0): over nearby channels."""
    from .nn_pad import pad
    from .nn_pool_calls import average

    if input.ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality                          input "
                         f"(got {input.ndim} dimensions)")  # fmt: skip
    if not math.prod(input.shape):
        return input
    square = input.mul(input)
    pads = (0, 0, size // 2, (size - 1) // 2)
    if input.ndim == 3:
        spread = average("avg_pool2d", 2, pad(square.unsqueeze(1), pads), (size, 1), 1)
        spread = spread.squeeze(1)
    else:
        shape = tuple(input.shape)
        planes = square.view((shape[0], 1, shape[1], shape[2], math.prod(shape[3:])))
        spread = average("avg_pool3d", 3, pad(planes, (0, 0, *pads)), (size, 1, 1), 1).view(shape)
    return input / spread.mul(alpha).add(k).pow(beta)


@public("normalize", spaces="nn.functional", method=False)
def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Any:
    """normalize(input, p=2.0, dim=1, eps=1e-12): x / max(norm(x), eps)."""
    return input / input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
