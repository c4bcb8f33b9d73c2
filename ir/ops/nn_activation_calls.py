"""Activation functions as torch publishes them: argument checks, in-place forms, composites."""

from __future__ import annotations

from typing import Any

from ..arguments import plain_number, warn
from ..bind import casting, state
from ..types import bool_, normalize_dim
from ..value import public
from .nn_activations import (
    celu_op,
    elu_op,
    gelu_op,
    glu_op,
    hardshrink_op,
    hardsigmoid_op,
    hardswish_op,
    hardtanh_op,
    leaky_relu_op,
    logsigmoid_op,
    mish_op,
    prelu_op,
    silu_op,
    softplus_op,
    softshrink_op,
    threshold_op,
)
from .nn_common import check_value, floats_only, maybe_inplace


def _twin(function: Any, spaces: str) -> Any:
    """Publishes `name_(input, ...)`: the same with inplace=True."""

    def in_place(input: Any, *args: Any, **kwargs: Any) -> Any:
        return function(input, *args, inplace=True, **kwargs)

    in_place.__name__ = in_place.__qualname__ = function.__name__ + "_"
    in_place.__doc__ = f"In-place version of `{function.__name__}`."
    public(function.__name__ + "_", spaces=spaces, method=False)(in_place)
    return function


@public("relu", spaces="nn.functional", method=False)
def relu(input: Any, inplace: bool = False) -> Any:
    """relu(input, inplace=False): max(0, x)."""
    check_value("relu", input=input)
    return input.relu_() if inplace else input.relu()


@public("hardtanh", spaces="nn.functional", method=False)
def hardtanh(input: Any, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """hardtanh(input, min_val=-1., max_val=1., inplace=False): x clipped to the two bounds."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype is bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if input.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    call = lambda x: hardtanh_op(x, min_val=min_val, max_val=max_val)  # noqa: E731
    return maybe_inplace(call, inplace, input)


@public("relu6", spaces="nn.functional", method=False)
def relu6(input: Any, inplace: bool = False) -> Any:
    """relu6(input, inplace=False): min(max(0, x), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def _apply(op: Any, kernel: str, input: Any, inplace: bool = False, **attrs: Any) -> Any:
    """Runs a pointwise entry on floats, in place if asked."""
    floats_only(kernel, input.dtype, complex_too=op is silu_op)

    def call(x: Any) -> Any:
        return op(x, **attrs)

    call.__name__ = op.name
    return maybe_inplace(call, inplace, input)


@public("elu", spaces="nn.functional", method=False)
def elu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """elu(input, alpha=1.0, inplace=False): x, or alpha * (exp(x) - 1) below zero."""
    alpha = plain_number("elu", "alpha", alpha, 2)
    return _apply(elu_op, "elu_cpu", input, inplace, alpha=alpha)


@public("selu", spaces="torch nn.functional", method=False)
def selu(input: Any, inplace: bool = False) -> Any:
    """selu(input, inplace=False): elu with the scales that keep mean 0 and variance 1."""
    return _apply(elu_op, "elu_cpu", input, inplace, alpha=1.6732632423543772848170429916717,
                  scale=1.0507009873554804934193349852946)  # fmt: skip


@public("celu", spaces="torch nn.functional", method=False)
def celu(input: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """celu(input, alpha=1.0, inplace=False): max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    alpha = plain_number("celu", "alpha", alpha, 2)
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _apply(celu_op, "elu_cpu", input, inplace, alpha=alpha, input_scale=1.0 / alpha)


@public("leaky_relu", spaces="nn.functional", method=False)
def leaky_relu(input: Any, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """leaky_relu(input, negative_slope=0.01, inplace=False)."""
    slope = plain_number("leaky_relu", "negative_slope", negative_slope, 2)
    return _apply(leaky_relu_op, "leaky_relu_cpu", input, inplace, negative_slope=slope)


@public("threshold", spaces="torch nn.functional", method=False)
def threshold(input: Any, threshold: float, value: float, inplace: bool = False) -> Any:
    """threshold(input, threshold, value, inplace=False): `value` where x <= threshold."""
    if input.dtype is bool_ or input.dtype.is_complex:
        floats_only("threshold_cpu", input.dtype)
    threshold = plain_number("threshold", "threshold", threshold, 2)
    value = plain_number("threshold", "value", value, 3)
    call = lambda x: threshold_op(x, threshold=threshold, value=value)  # noqa: E731
    return maybe_inplace(call, inplace, input)


for _function, _spaces in ((relu, "nn.functional"), (hardtanh, "nn.functional"),
                           (elu, "nn.functional"), (leaky_relu, "nn.functional"),
                           (selu, "torch nn.functional"), (celu, "torch nn.functional"),
                           (threshold, "torch nn.functional")):  # fmt: skip
    _twin(_function, _spaces)


@public("hardshrink", spaces="torch nn.functional")
def hardshrink(input: Any, lambd: float = 0.5) -> Any:
    """hardshrink(input, lambd=0.5): x, or 0 where |x| <= lambd."""
    lambd = plain_number("hardshrink", "lambd", lambd, 2)
    return _apply(hardshrink_op, "hardshrink_cpu", input, lambd=lambd)


@public("softshrink", spaces="nn.functional", method=False)
def softshrink(input: Any, lambd: float = 0.5) -> Any:
    """softshrink(input, lambd=0.5): x moved towards 0 by lambd."""
    floats_only("softshrink_check", input.dtype)
    lambd = plain_number("softshrink", "lambd", lambd, 2)
    if lambd < 0:
        raise RuntimeError(f"lambda must be in range [0, max] for input dtype "
                           f"{input.dtype.name}, but found {lambd}")  # fmt: skip
    return softshrink_op(input, lambd=lambd)


@public("softplus", spaces="nn.functional", method=False)
def softplus(input: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """softplus(input, beta=1, threshold=20): log(1 + exp(beta * x)) / beta."""
    beta = plain_number("softplus", "beta", beta, 2)
    threshold = plain_number("softplus", "threshold", threshold, 3)
    return _apply(softplus_op, "softplus_cpu", input, beta=beta, threshold=threshold)


@public("logsigmoid", spaces="nn.functional", method=False)
def logsigmoid(input: Any) -> Any:
    """logsigmoid(input): log(sigmoid(x))."""
    return _apply(logsigmoid_op, "log_sigmoid_cpu", input)


@public("hardsigmoid", spaces="nn.functional", method=False)
def hardsigmoid(input: Any, inplace: bool = False) -> Any:
    """hardsigmoid(input, inplace=False): min(max(x + 3, 0), 6) / 6."""
    return _apply(hardsigmoid_op, "hardsigmoid_cpu", input, inplace)


@public("hardswish", spaces="nn.functional", method=False)
def hardswish(input: Any, inplace: bool = False) -> Any:
    """hardswish(input, inplace=False): x * hardsigmoid(x)."""
    return _apply(hardswish_op, "hardswish_cpu", input, inplace)


@public("silu", spaces="nn.functional", method=False)
def silu(input: Any, inplace: bool = False) -> Any:
    """silu(input, inplace=False): x * sigmoid(x)."""
    return _apply(silu_op, "silu_cpu", input, inplace)


@public("mish", spaces="nn.functional", method=False)
def mish(input: Any, inplace: bool = False) -> Any:
    """mish(input, inplace=False): x * tanh(softplus(x))."""
    return _apply(mish_op, "mish_cpu", input, inplace)


@public("gelu", spaces="nn.functional", method=False)
def gelu(input: Any, *, approximate: str = "none") -> Any:
    """gelu(input, *, approximate='none'): x times the normal distribution function of x."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return _apply(gelu_op, "GeluKernelImpl", input, approximate=approximate)


@public("glu", spaces="nn.functional", method=False)
def glu(input: Any, dim: int = -1) -> Any:
    """glu(input, dim=-1): the first half of `dim` times the sigmoid of the second."""
    if not input.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = normalize_dim(dim, input.ndim)
    if input.shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size "
                           f"{input.shape[dim]}")  # fmt: skip
    floats_only("glu_cpu", input.dtype)
    return glu_op(input, dim=dim)


@public("prelu", spaces="torch nn.functional")
def prelu(input: Any, weight: Any) -> Any:
    """prelu(input, weight): leaky_relu with a learnable slope, one or one per channel."""
    if casting():
        input, weight = state.top.cast_operands(prelu_op, (input, weight))  # type: ignore[attr-defined]
    if weight.dtype is not input.dtype:
        raise RuntimeError("prelu: Type promoting not supported. Got "
                           f"{input.dtype.name} and {weight.dtype.name}")  # fmt: skip
    if weight.ndim > 1:
        raise RuntimeError("prelu: Expected `weight` to be a scalar or 1D tensor, but got: "
                           f"ndim = {weight.ndim}")  # fmt: skip
    count = weight.shape[0] if weight.ndim else 1
    if count != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != count:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found "
                f"parameter numbers = {count} and channel size = {channels}."
            )
    floats_only("prelu_cpu", input.dtype)
    shape = tuple(count if d == 1 or input.ndim == 1 else 1 for d in range(input.ndim))
    return prelu_op(input, weight if weight.ndim == input.ndim else weight.view(shape))


@public("tanhshrink", spaces="nn.functional", method=False)
def tanhshrink(input: Any) -> Any:
    """tanhshrink(input): x - tanh(x)."""
    return input - input.tanh()


@public("softsign", spaces="nn.functional", method=False)
def softsign(input: Any) -> Any:
    """softsign(input): x / (1 + |x|)."""
    return input / (input.abs() + 1)


@public("tanh", spaces="nn.functional", method=False)
def tanh(input: Any) -> Any:
    """tanh(input)."""
    return input.tanh()


# --- softmax -------------------------------------------------------------------------------------


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to "
                  "include dim=X as an argument.")  # fmt: skip
    return 0 if ndim in (0, 1, 3) else 1


@public("softmax", spaces="nn.functional", method=False)
def softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax(input, dim=None, _stacklevel=3, dtype=None)."""
    if dim is None:
        dim = _implicit_dim("softmax", input.ndim)
    return input.softmax(dim, dtype)


@public("log_softmax", spaces="nn.functional", method=False)
def log_softmax(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """log_softmax(input, dim=None, _stacklevel=3, dtype=None)."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.ndim)
    return input.log_softmax(dim, dtype)


@public("softmin", spaces="nn.functional", method=False)
def softmin(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmin(input, dim=None, _stacklevel=3, dtype=None): softmax(-input)."""
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim)
    return (-input).softmax(dim, dtype)
