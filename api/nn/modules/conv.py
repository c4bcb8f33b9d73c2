"""Convolutions. The classes differ in the number of spatial dimensions only."""

from __future__ import annotations

import math
from typing import Any

from ...tracer.tensor import Tensor
from .. import functional as F
from .. import init
from ._making import new_parameter, ntuple, reverse_repeat
from .module import Module

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Parameters and settings of a convolution over `_dims` spatial dimensions."""

    _dims: int

    def _prepare(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any,
                 padding: Any, dilation: Any, transposed: bool, output_padding: Any, groups: int,
                 bias: bool, padding_mode: str, device: Any, dtype: Any) -> None:  # fmt: skip
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = ntuple(kernel_size, self._dims)
        self.stride = ntuple(stride, self._dims)
        self.padding = padding if isinstance(padding, str) else ntuple(padding, self._dims)
        self.dilation = ntuple(dilation, self._dims)
        self.transposed = transposed
        self.output_padding = ntuple(output_padding, self._dims)
        self.groups = groups
        self.padding_mode = padding_mode
        self._check()
        self._reversed_padding_repeated_twice = self._explicit_padding()
        channels = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        size = (channels[0], channels[1] // groups, *self.kernel_size)
        self.weight = new_parameter(size, device, dtype)
        if bias:
            self.bias = new_parameter(out_channels, device, dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check(self) -> None:
        if self.groups <= 0:
            raise ValueError("groups must be a positive integer")
        if self.in_channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        if self.out_channels % self.groups:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {self.padding!r}, should be one of "
                                 "{'same', 'valid'}")  # fmt: skip
            if self.padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if self.padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {_MODES}, but got "
                             f"padding_mode='{self.padding_mode}'")  # fmt: skip

    def _explicit_padding(self) -> list[int]:
        """The padding as `pad` takes it, for the modes other than zeros."""
        if not isinstance(self.padding, str):
            return reverse_repeat(self.padding, 2)
        result = []
        for step, size in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = step * (size - 1) if self.padding == "same" else 0
            result += [total // 2, total - total // 2]
        return result

    def reset_parameters(self) -> None:
        """Uniform, with the bound 1 / sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        texts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
                 f"stride={self.stride}"]  # fmt: skip
        if self.padding != (0,) * len(self.padding):
            texts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            texts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            texts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            texts.append(f"groups={self.groups}")
        if self.bias is None:
            texts.append("bias=False")
        if self.padding_mode != "zeros":
            texts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(texts)


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._prepare(in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0,
                      groups, bias, padding_mode, device, dtype)  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = getattr(F, f"conv{self._dims}d")
        if self.padding_mode == "zeros":
            return convolve(input, weight, bias, self.stride, self.padding, self.dilation,
                            self.groups)  # fmt: skip
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return convolve(padded, weight, bias, self.stride, (0,) * self._dims, self.dilation,
                        self.groups)  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, ...)."""

    _dims = 1


class Conv2d(_Conv):
    """Conv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, ...)."""

    _dims = 2


class Conv3d(_Conv):
    """Conv3d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, ...)."""

    _dims = 3


class _ConvTransposeNd(_ConvNd):
    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
                 padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
                 dilation: Any = 1, padding_mode: str = "zeros", device: Any = None,
                 dtype: Any = None) -> None:  # fmt: skip
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._prepare(in_channels, out_channels, kernel_size, stride, padding, dilation, True,
                      output_padding, groups, bias, padding_mode, device, dtype)  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """What must be added to reach `output_size`, which several sizes may give."""
        if output_size is None:
            return self.output_padding
        dims = self._dims
        other = 2 if input.dim() == dims + 2 else 1
        wanted = output_size
        if len(wanted) == other + dims:
            wanted = wanted[other:]
        if len(wanted) != dims:
            raise ValueError(
                f"ConvTranspose{dims}D: for {input.dim()}D input, output_size must "
                f"have {dims} or {other + dims} elements (got {len(wanted)})"
            )
        low = [(input.size(d + other) - 1) * self.stride[d] - 2 * self.padding[d]
               + self.dilation[d] * (self.kernel_size[d] - 1) + 1 for d in range(dims)]  # fmt: skip
        high = [least + step - 1 for least, step in zip(low, self.stride)]
        if any(not a <= size <= b for a, size, b in zip(low, wanted, high)):
            raise ValueError(f"requested an output size of {wanted}, but valid sizes range from "
                             f"{low} to {high} (for an input of {input.size()[2:]})")  # fmt: skip
        return tuple(size - least for size, least in zip(wanted, low))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        convolve = getattr(F, f"conv_transpose{self._dims}d")
        return convolve(input, self.weight, self.bias, self.stride, self.padding,
                        self._output_padding(input, output_size), self.groups,
                        self.dilation)  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0, ...)."""

    _dims = 1


class ConvTranspose2d(_ConvTransposeNd):
    """ConvTranspose2d(in_channels, out_channels, kernel_size, stride=1, padding=0, ...)."""

    _dims = 2


class ConvTranspose3d(_ConvTransposeNd):
    """ConvTranspose3d(in_channels, out_channels, kernel_size, stride=1, padding=0, ...)."""

    _dims = 3
