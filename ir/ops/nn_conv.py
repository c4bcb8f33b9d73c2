"""Convolution: a bilinear map and its two adjoints, closed under differentiation at every order.

`convolution` (input, weight), `conv_input` (the gradient of the input, which is also transposed
convolution) and `conv_weight` (the gradient of the weight). Arrays are (batch, channel, *spatial),
weights (out channels, in channels / groups, *kernel).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..op import Template, define
from ..types import TensorType
from .arithmetic import conj
from .totals import add_up
from .windows import Ints, add_windows, crop, offsets, out_size, pad_spatial, symmetric, windows

# Columns of this many bytes at a time: they stay in the cache between copy and product.
BLOCK = 1 << 22

# --- evaluation ----------------------------------------------------------------------------------


def _chunks(count: int, bytes_each: int) -> Any:
    step = max(1, BLOCK // max(1, bytes_each))
    return (slice(k, min(count, k + step)) for k in range(0, count, step))


def _columns(
    x: np.ndarray, kernel: Ints, stride: Ints, dilation: Ints, out: Ints, groups: int
) -> Any:
    """The windows of a padded array as matrices: (batch, group, channel * kernel, positions)."""
    batch, channels = x.shape[:2]
    rows = channels // groups * math.prod(kernel)
    return windows(x, kernel, stride, dilation, out).reshape(batch, groups, rows, math.prod(out))


def _matrices(weight: np.ndarray, groups: int) -> np.ndarray:
    """The weights of each group, a row for each of its output channels."""
    rows = weight.shape[0] // groups
    return weight.reshape(groups, rows, math.prod(weight.shape[1:]))


def _depthwise(x: np.ndarray, weight: np.ndarray, groups: int) -> bool:
    return groups > 1 and weight.shape[1] == 1 and weight.shape[0] == groups


def _per_channel(weight: np.ndarray, position: Ints, dims: int) -> Any:
    place: Any = (slice(None), 0, *position)
    return weight[place].reshape(-1, *(1,) * dims)


def _depthwise_sum(x: Any, weight: Any, result: Any, stride: Ints, dilation: Ints) -> None:
    """Adds the positions of the kernel one by one: products with so few terms are no matmul."""
    out = result.shape[2:]
    product = np.empty(result.shape, result.dtype)
    for position, place in offsets(weight.shape[2:], stride, dilation, out):
        np.multiply(x[place], _per_channel(weight, position, len(out)), out=product)
        result += product


def _convolution(
    x: Any, weight: Any, bias: Any = None, *, stride: Ints, padding: Ints, dilation: Ints,
    groups: int = 1,
) -> np.ndarray:  # fmt: skip
    kernel = weight.shape[2:]
    out = out_size(x.shape[2:], kernel, stride, padding, dilation)
    x = pad_spatial(x, symmetric(padding))
    batch, channels = x.shape[:2]
    if _depthwise(x, weight, groups):
        result = np.zeros((batch, channels, *out), x.dtype)
        for part in _chunks(batch, 4 * result[:1].nbytes):
            _depthwise_sum(x[part], weight, result[part], stride, dilation)
    else:
        matrix = _matrices(weight, groups)
        shape = (batch, groups, matrix.shape[1], math.prod(out))
        result = np.empty(shape, np.result_type(x, weight))
        for part in _chunks(batch, matrix.shape[2] * groups * shape[3] * x.itemsize):
            columns = _columns(x[part], kernel, stride, dilation, out, groups)
            np.matmul(matrix, columns, out=result[part])
        result = result.reshape(batch, weight.shape[0], *out)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(out))
    return result


def _conv_input(
    grad: Any, weight: Any, bias: Any = None, *, size: Ints, stride: Ints, padding: Ints,
    dilation: Ints, groups: int = 1,
) -> np.ndarray:  # fmt: skip
    kernel, out = weight.shape[2:], grad.shape[2:]
    batch, channels = grad.shape[0], weight.shape[1] * groups
    pads = symmetric(padding)
    padded = tuple(n + 2 * p for n, p in zip(size, padding))
    result = np.zeros((batch, channels, *padded), np.result_type(grad, weight))
    if _depthwise(grad, weight, groups):
        for part in _chunks(batch, 4 * result[:1].nbytes):
            for position, place in offsets(kernel, stride, dilation, out):
                result[part][place] += grad[part] * _per_channel(weight, position, len(out))
    else:
        matrix = _matrices(weight, groups).swapaxes(1, 2)
        flat = grad.reshape(batch, groups, matrix.shape[2], math.prod(out))
        for part in _chunks(batch, matrix.shape[1] * groups * flat.shape[3] * grad.itemsize):
            columns = np.matmul(matrix, flat[part])
            columns = columns.reshape(len(columns), channels, *kernel, *out)
            add_windows(result[part], columns, stride, dilation)
    result = crop(result, pads)
    if bias is not None:
        result += bias.reshape(-1, *(1,) * len(out))
    return result


def _conv_weight(
    x: Any, grad: Any, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
    groups: int = 1,
) -> np.ndarray:  # fmt: skip
    x = pad_spatial(x, symmetric(padding))
    batch, channels, out = x.shape[0], grad.shape[1], grad.shape[2:]
    shape = (channels, x.shape[1] // groups, *kernel)
    if groups > 1 and shape[1] == 1 and channels == groups:
        result = np.zeros(shape, x.dtype)
        for part in _chunks(batch, 4 * grad[:1].nbytes):
            for position, place in offsets(kernel, stride, dilation, out):
                products = x[part][place] * grad[part]
                where: Any = (slice(None), 0, *position)
                result[where] += add_up(products, (0, *range(2, products.ndim)))
        return result
    rows, positions = math.prod(shape[1:]), math.prod(out)
    total = np.zeros((groups, channels // groups, rows), np.result_type(x, grad))
    flat = grad.reshape(batch, groups, channels // groups, positions)
    for part in _chunks(batch, rows * groups * positions * x.itemsize):
        view = windows(x[part], kernel, stride, dilation, out)
        count = len(view) * positions
        columns = np.moveaxis(view, 0, 1 + len(kernel)).reshape(groups, rows, count)
        left = flat[part].transpose(1, 2, 0, 3).reshape(groups, channels // groups, count)
        total += np.matmul(left, columns.swapaxes(1, 2))
    return total.reshape(shape)


# --- types ---------------------------------------------------------------------------------------


def _check_windows(
    size: Ints, kernel: Ints, out: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> None:
    """Windows must lie in the padded input: NumPy's strides and kernels look no further."""
    for n, k, m, s, p, d in zip(size, kernel, out, stride, padding, dilation):
        if m < 1 or (m - 1) * s + d * (k - 1) >= n + 2 * p:
            raise RuntimeError(f"convolution: {m} windows of size {k} with stride {s}, padding {p} "
                               f"and dilation {d} do not fit in size {n}")  # fmt: skip


def _conv_type(
    self: TensorType, weight: TensorType, bias: Any = None, *, stride: Ints, padding: Ints,
    dilation: Ints, groups: int = 1,
) -> TensorType:  # fmt: skip
    kernel = weight.shape[2:]
    out = out_size(self.shape[2:], kernel, stride, padding, dilation)
    if weight.shape[1] * groups != self.shape[1]:
        raise RuntimeError(f"convolution: weights {weight} of {groups} groups are not for {self}")
    _check_windows(self.shape[2:], kernel, out, stride, padding, dilation)
    return TensorType(self.dtype, (self.shape[0], weight.shape[0], *out))


def _input_type(
    self: TensorType, weight: TensorType, bias: Any = None, *, size: Ints, groups: int = 1,
    **geometry: Any,
) -> TensorType:  # fmt: skip
    _check_windows(size, weight.shape[2:], self.shape[2:], **geometry)
    return TensorType(self.dtype, (self.shape[0], weight.shape[1] * groups, *size))


def _weight_type(
    self: TensorType, grad_output: TensorType, *, kernel: Ints, groups: int = 1, **geometry: Any
) -> TensorType:
    _check_windows(self.shape[2:], kernel, grad_output.shape[2:], **geometry)
    shape = (grad_output.shape[1], self.shape[1] // groups, *kernel)
    return TensorType(self.dtype, shape)


# --- entries -------------------------------------------------------------------------------------


def _geometry(stride: Ints, padding: Ints, dilation: Ints, groups: int) -> dict[str, Any]:
    return {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def _cropped(value: Any, type_: TensorType) -> Any:
    """`value` with the spatial sizes of `type_`: the first windows, where more fit.

    More do where a transposed convolution's output padding reaches its stride.
    """
    for dim in range(2, value.ndim):
        if value.shape[dim] > type_.shape[dim]:
            value = value.narrow(dim, 0, type_.shape[dim])
    return value


def _bias_vjp(grad: Any) -> Any:
    return grad.sum((0, *range(2, grad.ndim)))


def _samples(names: tuple[str, str], extra: str = "") -> Any:
    """Small inputs: one plain, one with stride, padding, dilation and groups."""

    def make(rng: np.random.Generator) -> list[Any]:
        found = []
        for dims, geometry in ((1, _geometry((1,), (0,), (1,), 1)),
                               (2, _geometry((2, 1), (1, 2), (1, 2), 2))):  # fmt: skip
            spatial, kernel = (5, 6)[:dims], (3, 2)[:dims]
            out = out_size(spatial, kernel, *list(geometry.values())[:3])
            arrays = {"input": rng.standard_normal((2, 4, *spatial)),
                      "weight": rng.standard_normal((2, 4 // geometry["groups"], *kernel)),
                      "output": rng.standard_normal((2, 2, *out))}  # fmt: skip
            sizes = {"size": {"size": spatial}, "kernel": {"kernel": kernel}}.get(extra, {})
            inputs = tuple(arrays[name] for name in names)
            found.append((inputs, {**geometry, **sizes}))
        return found

    return make


def _shown(transposed: bool) -> dict[str, Any]:
    """torch has one node for both directions."""

    def bias_sizes(node: Any) -> Any:
        types = node.call_types()[0]
        return types[2].shape if len(types) > 2 and types[2] is not None else (0,)

    def beyond(node: Any) -> Any:
        """What an output is larger by than the smallest one that gives such an input."""
        source, weight = node.input_type(0).shape[2:], node.input_type(1).shape[2:]
        if not transposed:
            return (0,) * len(source)
        parts = (node.attrs[name] for name in ("size", "stride", "padding", "dilation"))
        return tuple(n - (one - 1) * step + 2 * pad - gap * (k - 1) - 1
                     for one, k, n, step, pad, gap in zip(source, weight, *parts))  # fmt: skip

    return {"self": "input", "self_sym_sizes": None, "transposed": lambda node: transposed,
            "bias_sym_sizes_opt": bias_sizes, "output_padding": beyond}  # fmt: skip


convolution = define(
    "convolution", "self weight bias? -> result", second=True,
    shown=_shown(False),
    numpy=_convolution, infer=_conv_type,
    lower=Template("convolution"), samples=_samples(("input", "weight")), batch="fold",
    vjp=dict(
        self=lambda grad, weight, self_type, stride, padding, dilation, groups: conv_input(
            grad, conj(weight), None, size=self_type.shape[2:],
            **_geometry(stride, padding, dilation, groups)),
        weight=lambda grad, self, weight_type, stride, padding, dilation, groups: conv_weight(
            conj(self), grad, kernel=weight_type.shape[2:],
            **_geometry(stride, padding, dilation, groups)),
        bias=_bias_vjp,
    ),
)  # fmt: skip
conv_input: Any = define(
    "conv_input", "self weight bias? -> result", numpy=_conv_input, infer=_input_type,
    lower=Template("conv_input"), node="ConvolutionBackward0", shown=_shown(True),
    samples=_samples(("output", "weight"), "size"),
    vjp=dict(
        self=lambda grad, weight, self_type, stride, padding, dilation, groups: _cropped(
            convolution(grad, conj(weight), None, **_geometry(stride, padding, dilation, groups)),
            self_type),
        weight=lambda grad, self, weight_type, stride, padding, dilation, groups: conv_weight(
            grad, conj(self), kernel=weight_type.shape[2:],
            **_geometry(stride, padding, dilation, groups)),
        bias=_bias_vjp,
    ),
)  # fmt: skip
conv_weight: Any = define(
    "conv_weight", "self grad_output -> result", numpy=_conv_weight, infer=_weight_type,
    lower=Template("conv_weight"), node="ConvolutionBackwardBackward0",
    samples=_samples(("input", "output"), "kernel"),
    vjp=dict(
        self=lambda grad, grad_output, self_type, stride, padding, dilation, groups: conv_input(
            conj(grad_output), grad, None, size=self_type.shape[2:],
            **_geometry(stride, padding, dilation, groups)),
        grad_output=lambda grad, self, grad_output_type, stride, padding, dilation, groups:
            _cropped(convolution(conj(self), grad, None,
                                 **_geometry(stride, padding, dilation, groups)),
                     grad_output_type),
    ),
)  # fmt: skip
