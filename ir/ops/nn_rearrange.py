"""Rearrangements: pixel and channel shuffles, unfold (im2col) and fold (col2im)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Decompose, define
from ..types import TensorType, normalize_dim
from ..value import public
from .nn_common import floats_only
from .windows import Ints, add_windows, crop, out_size, pad_spatial, symmetric, windows

# --- pixel shuffle -------------------------------------------------------------------------------


def _shuffle_shape(shape: Ints, factor: int) -> Ints:
    *lead, channels, height, width = shape
    return (*lead, channels // factor**2, height * factor, width * factor)


def _unshuffle_shape(shape: Ints, factor: int) -> Ints:
    *lead, channels, height, width = shape
    return (*lead, channels * factor**2, height // factor, width // factor)


def _shuffle(x: Any, factor: int, permute: Any) -> Any:
    """The same for arrays and Values: split, permute, join."""
    *lead, channels, height, width = x.shape
    n = len(lead)
    split = x.reshape((*lead, channels // factor**2, factor, factor, height, width))
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return permute(split, order).reshape(_shuffle_shape(tuple(x.shape), factor))


def _unshuffle(x: Any, factor: int, permute: Any) -> Any:
    *lead, channels, height, width = x.shape
    n = len(lead)
    split = x.reshape((*lead, channels, height // factor, factor, width // factor, factor))
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return permute(split, order).reshape(_unshuffle_shape(tuple(x.shape), factor))


def _by_method(value: Any, order: Ints) -> Any:
    return value.permute(order)


def _own(x: np.ndarray, result: np.ndarray) -> np.ndarray:
    """The result in memory of its own: of a factor of 1 NumPy makes a view."""
    return result.copy() if np.may_share_memory(x, result) else result


pixel_shuffle_op = define(
    "pixel_shuffle", "self -> result", moves_data=True, shown={"factor": "upscale_factor"},
    numpy=lambda x, *, factor: _own(x, _shuffle(x, factor, np.transpose)),
    infer=lambda self, *, factor: TensorType(self.dtype, _shuffle_shape(self.shape, factor)),
    lower=Decompose(lambda self, *, factor: _shuffle(self, factor, _by_method)),
    samples=lambda rng: [((rng.standard_normal((2, 8, 3, 2)),), {"factor": 2})],
    vjp=dict(self=lambda grad, factor: pixel_unshuffle_op(grad, factor=factor)),
)  # fmt: skip
pixel_unshuffle_op: Any = define(
    "pixel_unshuffle", "self -> result", moves_data=True, shown={"factor": "downscale_factor"},
    numpy=lambda x, *, factor: _own(x, _unshuffle(x, factor, np.transpose)),
    infer=lambda self, *, factor: TensorType(self.dtype, _unshuffle_shape(self.shape, factor)),
    lower=Decompose(lambda self, *, factor: _unshuffle(self, factor, _by_method)),
    samples=lambda rng: [((rng.standard_normal((2, 2, 6, 4)),), {"factor": 2})],
    vjp=dict(self=lambda grad, factor: pixel_shuffle_op(grad, factor=factor)),
)  # fmt: skip


def _check_shuffle(name: str, input: Any, factor: int, word: str) -> None:
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input "
                           f"with {input.ndim} dimension(s)")  # fmt: skip
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {word}, but got {factor}")


@public("pixel_shuffle", spaces="torch nn.functional", method=False)
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """pixel_shuffle(input, upscale_factor): (C * r * r, H, W) as (C, H * r, W * r)."""
    _check_shuffle("pixel_shuffle", input, upscale_factor, "upscale_factor")
    if input.shape[-3] % upscale_factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible "
            "by the square of upscale_factor, but input.size(-3)="
            f"{input.shape[-3]} is not divisible by {upscale_factor**2}"
        )
    return pixel_shuffle_op(input, factor=upscale_factor)


@public("pixel_unshuffle", spaces="torch nn.functional", method=False)
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """pixel_unshuffle(input, downscale_factor): (C, H * r, W * r) as (C * r * r, H, W)."""
    _check_shuffle("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    for word, d in (("height", -2), ("width", -1)):
        if input.shape[d] % downscale_factor:
            raise RuntimeError(f"pixel_unshuffle expects {word} to be divisible by "
                               f"downscale_factor, but input.size({d})={input.shape[d]} is not "
                               f"divisible by {downscale_factor}")  # fmt: skip
    return pixel_unshuffle_op(input, factor=downscale_factor)


def _regroup(x: Any, groups: int) -> Any:
    shape = tuple(x.shape)
    split = x.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return split.swapaxes(1, 2).reshape(shape)


channel_shuffle_op = define(
    "channel_shuffle", "self -> result", moves_data=True,
    numpy=lambda x, *, groups: _regroup(x, groups), infer=lambda self, *, groups: self,
    lower=Decompose(lambda self, *, groups: _regroup(self, groups)),
    samples=lambda rng: [((rng.standard_normal((2, 6, 3)),), {"groups": 2})],
    vjp=dict(self=lambda grad, groups: channel_shuffle(grad, grad.shape[1] // groups)),
)  # fmt: skip


@public("channel_shuffle", "native_channel_shuffle", spaces="torch nn.functional", method=False)
def channel_shuffle(input: Any, groups: int) -> Any:
    """channel_shuffle(input, groups): the channels of the groups in turn."""
    if input.ndim < 3:
        raise RuntimeError("channel_shuffle expects input with > 2 dims, but got input with sizes "
                           f"{list(input.shape)}")  # fmt: skip
    if groups <= 0:
        raise RuntimeError("Number of groups to divide channels in must be positive. Value of "
                           f"groups:{groups}")  # fmt: skip
    if input.shape[1] % groups:
        raise RuntimeError("Number of channels must be divisible by groups. Got "
                           f"{input.shape[1]} channels and {groups} groups.")  # fmt: skip
    return channel_shuffle_op(input, groups=groups)


# --- unfold and fold -----------------------------------------------------------------------------


def _im2col(x: np.ndarray, *, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    out = out_size(x.shape[-2:], kernel, stride, padding, dilation)
    view = windows(pad_spatial(x, symmetric(padding)), kernel, stride, dilation, out)
    rows = x.shape[-3] * math.prod(kernel)
    return view.reshape(*x.shape[:-3], rows, math.prod(out))


def _col2im(
    columns: np.ndarray, *, size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> np.ndarray:
    out = out_size(size, kernel, stride, padding, dilation)
    channels = columns.shape[-2] // math.prod(kernel)
    parts = columns.reshape(*columns.shape[:-2], channels, *kernel, *out)
    padded = tuple(n + 2 * p for n, p in zip(size, padding))
    total = np.zeros((*columns.shape[:-2], channels, *padded), columns.dtype)
    add_windows(total, parts, stride, dilation)
    return crop(total, symmetric(padding))


def _im2col_type(
    self: TensorType, *, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints
) -> TensorType:
    out = out_size(self.shape[-2:], kernel, stride, padding, dilation)
    rows = self.shape[-3] * math.prod(kernel)
    return TensorType(self.dtype, (*self.shape[:-3], rows, math.prod(out)))


def _geometry(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> dict[str, Ints]:
    return {"kernel": kernel, "dilation": dilation, "padding": padding, "stride": stride}


_SAMPLE = _geometry((2, 3), (1, 2), (1, 2), (2, 1))
im2col = define(
    "im2col", "self -> result", numpy=_im2col, infer=_im2col_type, node="Im2ColBackward0",
    shown={"kernel": "kernel_size"},
    samples=lambda rng: [((rng.standard_normal((2, 3, 4, 5)),), dict(_SAMPLE))],
    vjp=dict(self=lambda grad, self_type, kernel, dilation, padding, stride: col2im(
        grad, size=self_type.shape[-2:], **_geometry(kernel, dilation, padding, stride))),
)  # fmt: skip
col2im: Any = define(
    "col2im", "self -> result", numpy=_col2im, node="Col2ImBackward0",
    shown={"kernel": "kernel_size"},
    infer=lambda self, *, size, kernel, **_: TensorType(self.dtype, (
        *self.shape[:-2], self.shape[-2] // math.prod(kernel), *size)),
    samples=lambda rng: [((rng.standard_normal((2, 18, 15)),), {**_SAMPLE, "size": (4, 5)})],
    vjp=dict(self=lambda grad, kernel, dilation, padding, stride: im2col(
        grad, **_geometry(kernel, dilation, padding, stride))),
)  # fmt: skip


def _pair(name: str, argument: str, value: Any, least: int) -> Ints:
    listed = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(listed) not in (1, 2):
        raise RuntimeError(f"It is expected {argument} equals to 2, but got size {len(listed)}")
    pair = tuple(int(n) for n in (listed * 2 if len(listed) == 1 else listed))
    if min(pair) < least:
        words = "greater than zero" if least else "non-negative"
        raise RuntimeError(f"{argument} should be {words}, but got {argument}: {list(pair)}")
    return pair


def _pairs(name: str, kernel: Any, dilation: Any, padding: Any, stride: Any) -> dict[str, Ints]:
    return _geometry(
        _pair(name, "kernel_size", kernel, 1),
        _pair(name, "dilation", dilation, 1),
        _pair(name, "padding", padding, 0),
        _pair(name, "stride", stride, 1),
    )


@public("unfold", spaces="nn.functional", method=False)
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """unfold(input, kernel_size, dilation=1, padding=0, stride=1): windows as columns."""
    geometry = _pairs("unfold", kernel_size, dilation, padding, stride)
    if input.ndim < 3:
        normalize_dim(min(input.ndim, 2), input.ndim)  # torch looks at the sizes first
    if input.ndim not in (3, 4) or 0 in input.shape[-3:]:
        raise RuntimeError("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
                           f"other non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")  # fmt: skip
    if input.dtype.name != "bool":
        floats_only("im2col_out_cpu", input.dtype, complex_too=True)
    out = out_size(input.shape[-2:], geometry["kernel"], geometry["stride"], geometry["padding"],
                   geometry["dilation"])  # fmt: skip
    if min(out) < 1:
        raise RuntimeError(f"Given input with spatial size {list(input.shape[-2:])}, kernel_size="
                           f"{kernel_size}, dilation={dilation}, padding={padding}, calculated "
                           f"shape of the array of sliding blocks as {list(out)}, but its "
                           "components must be at least one.")  # fmt: skip
    return im2col(input, **geometry)


@public("fold", spaces="nn.functional", method=False)
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Any:  # fmt: skip
    """fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1): sums of columns."""
    geometry = _pairs("fold", kernel_size, dilation, padding, stride)
    size = _pair("fold", "output_size", output_size, 1)
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
                           "size and non-zero dimensions for input, but got: "
                           f"{list(input.shape)}")  # fmt: skip
    count = math.prod(geometry["kernel"])
    if input.shape[-2] % count:
        raise RuntimeError("Expected size of input's dimension 1 to be divisible by the product of "
                           f"kernel_size, but got input.size(1)={input.shape[-2]} and kernel_size="
                           f"{kernel_size}.")  # fmt: skip
    out = out_size(size, geometry["kernel"], geometry["stride"], geometry["padding"],
                   geometry["dilation"])  # fmt: skip
    if min(out) < 1 or input.shape[-1] != math.prod(out):
        raise RuntimeError(f"Given output_size={list(size)}, kernel_size={kernel_size}, expected "
                           "size of input's dimension 2 to match the calculated number of sliding "
                           f"blocks {' * '.join(map(str, out))} = {math.prod(out)}, but got "
                           f"input.size(2)={input.shape[-1]}.")  # fmt: skip
    return col2im(input, size=size, **geometry)
