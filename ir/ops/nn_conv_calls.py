"""conv1d to conv3d, their transposed forms, conv_tbc: checks in torch's words."""

from __future__ import annotations

from typing import Any

from ..bind import casting
from ..op import Decompose, define
from ..types import DType, TensorType, bool_, c_word, no_kernel, type_word
from ..value import public
from .nn_common import check_value
from .nn_conv import conv_input, convolution
from .windows import Ints, plain_ints


def _ints(value: Any, dims: int, argument: str) -> Ints:
    """An int or a list of ints, one for each spatial dimension."""
    listed = tuple(value) if isinstance(value, list | tuple) else (value,) * dims
    if len(listed) == 1:
        listed *= dims
    if len(listed) != dims:
        raise RuntimeError(f"expected {argument} to be a single integer value or a list of {dims} "
                           f"values to match the convolution dimensions, but got {argument}="
                           f"{list(listed)}")  # fmt: skip
    return plain_ints(argument, listed)


def _batched(name: str, input: Any, dims: int) -> Any:
    if input.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(f"Expected {dims + 1}D (unbatched) or {dims + 2}D (batched) input to "
                           f"{name}, but got input of size: {list(input.shape)}")  # fmt: skip
    return input.ndim == dims + 2


def _kernel_dims(weight: Any) -> Any:
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    return weight.ndim - 2


def _check_types(input: Any, weight: Any, bias: Any) -> None:
    if casting():
        return
    if bias is not None and bias.dtype is not input.dtype:
        words = [c_word(v.dtype) for v in (input, bias)]
        raise RuntimeError(f"Input type ({words[0]}) and bias type ({words[1]}) should be the same")
    if input.dtype is bool_:
        raise no_kernel("slow_conv2d_cpu", bool_)
    if input.dtype is weight.dtype:
        return
    if input.dtype.name in ("bfloat16", "float16"):  # torch's library for short floats looks first
        words = [_legacy_type(v.dtype) for v in (input, weight)]
        raise RuntimeError(
            f"Input type ({words[0]}) and weight type ({words[1]}) should be the "
            "same or input should be a MKLDNN tensor and weight is a dense tensor"
        )
    raise RuntimeError(f"expected scalar type {type_word(input.dtype)} but found "
                       f"{type_word(weight.dtype)}")  # fmt: skip


def _legacy_type(dtype: DType) -> str:
    """The name of a tensor class; for dtypes younger than these, that of the kernels'."""
    old = not dtype.is_complex and dtype.name not in ("bfloat16", "bool")
    return f"torch.{type_word(dtype)}Tensor" if old else f"CPU{type_word(dtype)}Type"


def _check_kernel_dims(weight: Any, dims: int, stride: Any) -> None:
    """The weight must be of the function's dims: torch says so of the stride, its first list."""
    wanted = _kernel_dims(weight)
    if wanted != dims:
        raise RuntimeError(f"expected stride to be a single integer value or a list of {wanted} "
                           "values to match the convolution dimensions, but got stride="
                           f"{list(_ints(stride, dims, 'stride'))}")  # fmt: skip


def _check_geometry(stride: Ints, padding: Ints, dilation: Ints, groups: int) -> None:
    for n, words in ((min(padding) + 1, "negative padding"), (min(stride), "non-positive stride"),
                     (groups, "non-positive groups")):  # fmt: skip
        if n <= 0:
            raise RuntimeError(f"{words} is not supported")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")


def _check_weight(weight: Any, groups: int) -> None:
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at "
            f"dimension 0, but got weight of size {list(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at "
            f"dimension 0, but got weight of size [{list(weight.shape)}] instead"
        )


def _check_bias(start: str, weight: Any, bias: Any, count: int) -> None:
    if bias is not None and tuple(bias.shape) != (count,):
        raise RuntimeError(f"Given {start}weight of size {list(weight.shape)}, expected bias to be "
                           f"1-dimensional with {count} elements, but got bias of size "
                           f"{list(bias.shape)} instead")  # fmt: skip


def _check_channels(start: str, input: Any, weight: Any, channels: int) -> None:
    if input.shape[1] != channels:
        raise RuntimeError(f"Given {start}, weight of size {list(weight.shape)}, expected "
                           f"input{list(input.shape)} to have {channels} channels, but got "
                           f"{input.shape[1]} channels instead")  # fmt: skip


def _check_kernel(input: Any, weight: Any, padding: Ints, dilation: Ints) -> None:
    sizes = [n + 2 * p for n, p in zip(input.shape[2:], padding)]
    spans = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation)]
    if any(k > n for k, n in zip(spans, sizes)):
        words = [" x ".join(map(str, v)) for v in (sizes, spans)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({words[0]}). Kernel size: "
            f"({words[1]}). Kernel size can't be greater than actual input size"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError("Only zero batch or zero channel inputs are supported, but got input "
                           f"shape: {list(input.shape)}")  # fmt: skip


def _same_padding(input: Any, weight: Any, stride: Ints, dilation: Ints) -> tuple[Any, Ints]:
    """padding='same': what is odd goes behind, as a pad of its own."""
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation)]
    if any(total % 2 for total in totals):
        from .nn_pad import constant_pad

        pads: list[int] = []
        for total in reversed(totals):
            pads += [0, total % 2]
        input = constant_pad(input, tuple(pads))
    return input, tuple(total // 2 for total in totals)


def _convolve(
    name: str, dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    dilation: Any, groups: int,
) -> Any:  # fmt: skip
    check_value(name, input=input, weight=weight)
    batched = _batched(name, input, dims)
    _check_kernel_dims(weight, dims, stride)
    stride, dilation = _ints(stride, dims, "stride"), _ints(dilation, dims, "dilation")
    if not batched:
        input = input.unsqueeze(0)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'; use 'same' or 'valid'")
        if padding == "same":
            input, padding = _same_padding(input, weight, stride, dilation)
        else:
            padding = 0
    padding = _ints(padding, dims, "padding")
    _check_geometry(stride, padding, dilation, groups)
    _check_types(input, weight, bias)
    _check_weight(weight, groups)
    _check_channels(f"groups={groups}", input, weight, weight.shape[1] * groups)
    _check_bias("", weight, bias, weight.shape[0])
    _check_kernel(input, weight, padding, dilation)
    result = convolution(input, weight, bias, stride=stride, padding=padding, dilation=dilation,
                         groups=groups)  # fmt: skip
    return result if batched else result.squeeze(0)


def _check_output_padding(extra: Ints, stride: Ints, dilation: Ints) -> None:
    if min(extra) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if any(p >= s and p >= d for p, s, d in zip(extra, stride, dilation)):
        raise RuntimeError("output padding must be smaller than either stride or dilation, but got "
                           f"output_padding: {list(extra)} stride: {list(stride)} dilation: "
                           f"{list(dilation)}")  # fmt: skip


def _transpose(
    name: str, dims: int, input: Any, weight: Any, bias: Any, stride: Any, padding: Any,
    output_padding: Any, groups: int, dilation: Any,
) -> Any:  # fmt: skip
    check_value(name, input=input, weight=weight)
    if isinstance(padding, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    batched = _batched(name, input, dims)
    _check_kernel_dims(weight, dims, stride)
    stride, dilation = _ints(stride, dims, "stride"), _ints(dilation, dims, "dilation")
    padding, extra = _ints(padding, dims, "padding"), _ints(output_padding, dims, "output_padding")
    if not batched:
        input = input.unsqueeze(0)
    _check_geometry(stride, padding, dilation, groups)
    _check_output_padding(extra, stride, dilation)
    _check_types(input, weight, bias if input.dtype is weight.dtype else None)
    _check_weight(weight, groups)
    _check_channels("transposed=1", input, weight, weight.shape[0])
    _check_bias("transposed=1, ", weight, bias, weight.shape[1] * groups)
    size = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in zip(
        input.shape[2:], stride, padding, dilation, weight.shape[2:], extra))  # fmt: skip
    if min(size) <= 0:
        raise RuntimeError(
            f"Given input size per channel: {list(input.shape[2:])}. Calculated "
            f"output size per channel: {list(size)}. Output size is too small"
        )
    result = conv_input(input, weight, bias, size=size, stride=stride, padding=padding,
                        dilation=dilation, groups=groups)  # fmt: skip
    return result if batched else result.squeeze(0)


def _publish(dims: int) -> None:
    name, transposed = f"conv{dims}d", f"conv_transpose{dims}d"

    def forward(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                dilation: Any = 1, groups: int = 1) -> Any:  # fmt: skip
        return _convolve(name, dims, input, weight, bias, stride, padding, dilation, groups)

    def backward(input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
                 output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Any:  # fmt: skip
        return _transpose(transposed, dims, input, weight, bias, stride, padding, output_padding,
                          groups, dilation)  # fmt: skip

    forward.__name__ = forward.__qualname__ = name
    backward.__name__ = backward.__qualname__ = transposed
    forward.__doc__ = (f"{name}(input, weight, bias=None, stride=1, padding=0, dilation=1, "
                       "groups=1); padding may be 'same' or 'valid'.")  # fmt: skip
    backward.__doc__ = (f"{transposed}(input, weight, bias=None, stride=1, padding=0, "
                        "output_padding=0, groups=1, dilation=1).")  # fmt: skip
    public(name, spaces="torch nn.functional", method=False)(forward)
    public(transposed, spaces="torch nn.functional", method=False)(backward)


for _dims in (1, 2, 3):
    _publish(_dims)


@public("convolution", spaces="torch", method=False)
def convolution_(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    """convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding,
    groups)."""
    dims = weight.ndim - 2
    if transposed:
        return _transpose("convolution", dims, input, weight, bias, stride, padding,
                          output_padding, groups, dilation)  # fmt: skip
    return _convolve("convolution", dims, input, weight, bias, stride, padding, dilation, groups)


# --- time, batch, channel ------------------------------------------------------------------------


def _tbc(convolve: Any, input: Any, weight: Any, bias: Any, pad: int) -> Any:
    result = convolve(input.transpose(1, 2, 0), weight.transpose(2, 1, 0), bias, stride=(1,),
                      padding=(pad,), dilation=(1,))  # fmt: skip
    return result.transpose(2, 0, 1)


def _tbc_expand(self: Any, weight: Any, bias: Any, *, pad: int = 0) -> Any:
    result = convolution(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, stride=(1,),
                         padding=(pad,), dilation=(1,), groups=1)  # fmt: skip
    return result.permute(2, 0, 1)


def _tbc_input(grad: Any, self_type: TensorType, weight: Any, pad: int) -> Any:
    result = conv_input(
        grad.permute(1, 2, 0),
        weight.permute(2, 1, 0),
        None,
        stride=(1,),
        padding=(pad,),
        dilation=(1,),
        groups=1,
        size=self_type.shape[:1],
    )
    return result.permute(2, 0, 1)


def _tbc_weight(grad: Any, self: Any, weight_type: TensorType, pad: int) -> Any:
    from .nn_conv import conv_weight

    result = conv_weight(self.permute(1, 2, 0), grad.permute(1, 2, 0), stride=(1,), padding=(pad,),
                         dilation=(1,), groups=1, kernel=weight_type.shape[:1])  # fmt: skip
    return result.permute(2, 1, 0)


conv_tbc_op = define(
    "conv_tbc", "self weight bias -> result",
    numpy=lambda x, weight, bias, *, pad=0: _tbc(convolution.numpy, x, weight, bias, pad),
    lower=Decompose(_tbc_expand),
    infer=lambda self, weight, bias, *, pad=0: TensorType(self.dtype, (
        self.shape[0] + 2 * pad - weight.shape[0] + 1, self.shape[1], weight.shape[2])),
    samples=lambda rng: [(tuple(rng.standard_normal(s) for s in ((5, 2, 3), (2, 3, 4), (4,))),
                          {"pad": 1})],
    vjp=dict(self=_tbc_input, weight=_tbc_weight, bias=lambda grad: grad.sum((0, 1))),
)  # fmt: skip


@public("conv_tbc", spaces="torch nn.functional", method=False)
def conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """conv_tbc(input, weight, bias, pad=0): 1-d convolution of (time, batch, channel)."""
    if input.ndim != 3 or weight.ndim != 3 or bias.ndim != 1:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel; weight 3: kernel "
                           "width, in_channels, out_channels; bias 1")  # fmt: skip
    return conv_tbc_op(input, weight, bias, pad=pad)
