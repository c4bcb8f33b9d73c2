"""Pools as torch publishes them: one, two and three dimensions, with and without indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arguments import check_elements
from ..types import bool_, normalize_dim, type_word
from ..value import public
from .drawing import draw
from .nn_common import check_value, floats_only
from .nn_pool import (
    adaptive_max_pool,
    avg_pool,
    fractional_max_pool,
    max_pool,
    max_unpool,
)
from .precision import full_precision
from .windows import Ints, out_size, plain_ints

_COUNT = {1: "one int", 2: "two ints", 3: "three ints"}


def _ints(name: str, argument: str, value: Any, dims: int) -> Ints:
    listed = tuple(value) if isinstance(value, list | tuple) else (value,)
    if len(listed) not in (1, dims):
        raise RuntimeError(f"{name}: {argument} must either be a single int, or a tuple of "
                           f"{_COUNT[dims]}")  # fmt: skip
    return plain_ints(argument, listed * dims if len(listed) == 1 else listed, name)


def _stride(name: str, stride: Any, kernel: Ints) -> Ints:
    if stride is None or (isinstance(stride, list | tuple) and not stride):
        return kernel
    return _ints(name, "stride", stride, len(kernel))


def _check_input(name: str, input: Any, dims: int) -> None:
    check_value(name, input=input)
    fits = input.ndim in (dims + 1, dims + 2)
    if not fits and dims == 1 and name != "max_pool1d":
        raise RuntimeError(f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor "
                           f"for argument #1 'self' (while checking arguments for {name})"
                           )  # fmt: skip
    if name == "avg_pool2d":
        normalize_dim(-3, input.ndim)  # torch looks at the sizes first
    if not fits and dims > 1:
        raise RuntimeError(f"non-empty {dims + 1}D or {dims + 2}D (batch mode) tensor expected for "
                           "input")  # fmt: skip
    if not fits or 0 in input.shape[1 if input.ndim == dims + 2 else 0 :]:
        raise RuntimeError(
            f"{name}: Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with "
            f"optional 0 dim batch size for input, but got:{list(input.shape)}"
        )


def _check_windows(
    input: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> None:
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0 or min(stride) < 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel: "
                           f"{list(kernel)} stride: {list(stride)}")  # fmt: skip
    if min(dilation) <= 0:
        raise RuntimeError("dilation should be greater than zero, but got dilation: "
                           f"{list(dilation)}")  # fmt: skip
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError("pad should be at most half of effective kernel size, but got "
                               f"pad={p}, kernel_size={k} and dilation={d}")  # fmt: skip
    dims = len(kernel)
    out = out_size(input.shape[-dims:], kernel, stride, padding, dilation, ceil)
    if min(out) < 1:
        sizes = ["x".join(map(str, (input.shape[-dims - 1], *v))) for v in (
            input.shape[-dims:], out)]  # fmt: skip
        raise RuntimeError(f"Given input size: ({sizes[0]}). Calculated output size: ({sizes[1]}). "
                           "Output size is too small")  # fmt: skip


def _flattened(function: Any, input: Any) -> Any:
    """One dimension is two with a height of 1, as in torch's graph."""
    result = function(input.unsqueeze(-2))
    if isinstance(result, tuple):
        return tuple(part.squeeze(-2) for part in result)
    return result.squeeze(-2)


# --- maximum -------------------------------------------------------------------------------------


def _max(
    name: str, dims: int, input: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool,
) -> Any:  # fmt: skip
    _check_input(name, input, dims)
    kernel = _ints(name, "kernel_size", kernel_size, dims)
    geometry = {"kernel": kernel, "stride": _stride(name, stride, kernel),
                "padding": _ints(name, "padding", padding, dims),
                "dilation": _ints(name, "dilation", dilation, dims)}  # fmt: skip
    _check_windows(input, **geometry, ceil=ceil_mode)
    if input.dtype is bool_ or input.dtype.is_complex:
        floats_only(name, input.dtype)
    if dims > 1:
        return max_pool(input, **geometry, ceil_mode=ceil_mode)
    neutral = {"kernel": 1, "stride": 1, "padding": 0, "dilation": 1}
    wide = {key: (neutral[key], *value) for key, value in geometry.items()}
    return _flattened(lambda x: max_pool(x, **wide, ceil_mode=ceil_mode), input)


def _publish_max(dims: int) -> None:
    name = f"max_pool{dims}d"

    def pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
        values, indices = _max(name, dims, input, kernel_size, stride, padding, dilation, ceil_mode)
        return (values, indices) if return_indices else values

    def with_indices(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
                     dilation: Any = 1, ceil_mode: bool = False,
                     return_indices: bool = False) -> Any:  # fmt: skip
        return pool(input, kernel_size, stride, padding, dilation, ceil_mode, True)

    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    pool.__doc__ = (f"{name}(input, kernel_size, stride=None, padding=0, dilation=1, "
                    "ceil_mode=False, return_indices=False).")  # fmt: skip
    with_indices.__doc__ = f"{name} with return_indices=True."
    public(name, spaces="torch nn.functional", method=False)(pool)
    spaces = "torch nn.functional" if dims == 1 else "nn.functional"
    public(name + "_with_indices", spaces=spaces, method=False)(with_indices)


def _unpool_size(input: Any, kernel: Ints, stride: Ints, padding: Ints, output_size: Any) -> Ints:
    dims = len(kernel)
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(
        input.shape[-dims:], stride, kernel, padding)]  # fmt: skip
    if output_size is None:
        return tuple(default)
    wanted = tuple(output_size)
    wanted = wanted[2:] if len(wanted) == dims + 2 else wanted
    if len(wanted) != dims:
        raise ValueError(f"output_size should be a sequence containing {dims} or {dims + 2} "
                         f"elements, but it has a length of '{len(wanted)}'")  # fmt: skip
    for d in range(dims):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < wanted[d] < high:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {low} and '
                             f"{high})")  # fmt: skip
    return tuple(int(n) for n in wanted)


def _check_indices(input: Any, indices: Any, size: Ints) -> None:
    if indices.dtype.name != "int64":
        raise RuntimeError("elements in indices should be type int64 but got: "
                           f"{type_word(indices.dtype)}")  # fmt: skip
    if tuple(indices.shape) != tuple(input.shape):
        raise RuntimeError("Expected shape of indices to be same as that of the input tensor "
                           f"({list(input.shape)}) but got indices tensor with shape: "
                           f"{list(indices.shape)}")  # fmt: skip
    check_elements(_check_places, indices, size)


def _check_places(array: np.ndarray, size: Ints) -> None:
    bad = [int(n) for n in (array.min(), array.max()) if not 0 <= n < math.prod(size)]
    if bad:
        raise RuntimeError(f"Found an invalid max index: {bad[0]} (output volumes are of size "
                           f"{'x'.join(map(str, size))}); use the pool's indices")  # fmt: skip


def _publish_unpool(dims: int) -> None:
    name = f"max_unpool{dims}d"

    def unpool(input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
               output_size: Any = None) -> Any:  # fmt: skip
        kernel = _ints(name, "kernel_size", kernel_size, dims)
        strides, pads = _stride(name, stride, kernel), _ints(name, "padding", padding, dims)
        size = _unpool_size(input, kernel, strides, pads, output_size)
        if input.ndim not in (dims + 1, dims + 2):
            raise RuntimeError(f"Input to max_unpooling{dims}d should be a {dims + 1}d or "
                               f"{dims + 2}d Tensor, but got a tensor with {input.ndim} "
                               "dimensions.")  # fmt: skip
        _check_indices(input, indices, size)
        if dims > 1:
            return max_unpool(input, indices, size=size)
        wide = max_unpool(input.unsqueeze(-1), indices.unsqueeze(-1), size=(*size, 1))
        return wide.squeeze(-1)

    unpool.__name__ = unpool.__qualname__ = name
    unpool.__doc__ = (f"{name}(input, indices, kernel_size, stride=None, padding=0, "
                      "output_size=None): puts maxima back to their places.")  # fmt: skip
    public(name, spaces="nn.functional", method=False)(unpool)


# --- average and power ---------------------------------------------------------------------------


def average(
    name: str, dims: int, input: Any, kernel_size: Any, stride: Any, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    """The average of each window, in one to three dimensions."""
    _check_input(name, input, dims)
    if input.dtype is bool_ or input.dtype.is_complex:
        floats_only(name, input.dtype)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    kernel = _ints(name, "kernel_size", kernel_size, dims)
    geometry = {"kernel": kernel, "stride": _stride(name, stride, kernel),
                "padding": _ints(name, "padding", padding, dims)}  # fmt: skip
    _check_windows(input, **geometry, dilation=(1,) * dims, ceil=ceil_mode)
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad,
               "divisor_override": divisor_override}  # fmt: skip
    if dims > 1:
        return avg_pool(input, **geometry, **options)
    wide = {key: (0 if key == "padding" else 1, *value) for key, value in geometry.items()}
    return _flattened(lambda x: avg_pool(x, **wide, **options), input)


def _publish_average(dims: int) -> None:
    name = f"avg_pool{dims}d"

    def pool(input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
             ceil_mode: bool = False, count_include_pad: bool = True,
             divisor_override: Any = None) -> Any:  # fmt: skip
        return average(name, dims, input, kernel_size, stride, padding, ceil_mode,
                        count_include_pad, divisor_override)  # fmt: skip

    def power(input: Any, norm_type: float, kernel_size: Any, stride: Any = None,
              ceil_mode: bool = False) -> Any:  # fmt: skip
        if abs(norm_type) == float("inf"):
            return _extreme_power(dims, input, norm_type, kernel_size, stride, ceil_mode)
        count = math.prod(_ints(name, "kernel_size", kernel_size, dims))
        out = pool(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (out.sign() * out.abs().relu()).mul(count).pow(1.0 / norm_type)

    pool.__name__ = pool.__qualname__ = name
    power.__name__ = power.__qualname__ = f"lp_pool{dims}d"
    pool.__doc__ = (f"{name}(input, kernel_size, stride=None, padding=0, ceil_mode=False, "
                    "count_include_pad=True, divisor_override=None).")  # fmt: skip
    power.__doc__ = (f"lp_pool{dims}d(input, norm_type, kernel_size, stride=None, "
                     "ceil_mode=False): the p-norm of each window.")  # fmt: skip
    spaces = "torch nn.functional" if dims == 1 else "nn.functional"
    public(name, spaces=spaces, method=False)(full_precision(pool) if dims == 3 else pool)
    public(power.__name__, spaces="nn.functional", method=False)(power)


def _extreme_power(
    dims: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool
) -> Any:
    if norm_type > 0:
        return _max(f"max_pool{dims}d", dims, input.abs(), kernel_size, stride, 0, 1, ceil_mode)[0]
    return -_max(f"max_pool{dims}d", dims, -input.abs(), kernel_size, stride, 0, 1, ceil_mode)[0]


# --- adaptive and fractional ---------------------------------------------------------------------


def adaptive_size(name: str, input: Any, output_size: Any, dims: int, strict: bool) -> Ints:
    """The wanted sizes, None standing for the input's; checks the input as torch does."""
    wanted = output_size if isinstance(output_size, list | tuple) else (output_size,) * dims
    if dims == 1 and len(wanted) != 1:
        raise RuntimeError(f"{name}() argument 'output_size' should contain one int (got "
                           f"{len(wanted)})")  # fmt: skip
    if dims > 1 and isinstance(output_size, list | tuple) and input.ndim <= len(wanted):
        raise ValueError(f"Input dimension should be at least {len(wanted) + 1}")
    if len(wanted) != dims:
        raise RuntimeError(f"{name}: output_size must be {dims}")
    if input.ndim not in (dims + 1, dims + 2):
        if dims == 1:
            _check_input(name, input, dims)
        raise RuntimeError(f"{name}(): Expected {dims + 1}D or {dims + 2}D tensor, but got "
                           f"{list(input.shape)}")  # fmt: skip
    sizes = tuple(input.shape[d - dims] if n is None else int(n) for d, n in enumerate(wanted))
    if min(sizes) < 0:
        raise RuntimeError(f"{name}: elements of output_size must be greater than or equal to 0 but"
                           f" received {{{', '.join(map(str, sizes))}}}")  # fmt: skip
    for d in range(1 if input.ndim == dims + 2 or not strict else 0, input.ndim):
        if input.shape[d] == 0:
            raise RuntimeError(f"{name}(): Expected input to have non-zero size for non-batch "
                               f"dimensions, but input has sizes {list(input.shape)} with "
                               f"dimension {d} being empty")  # fmt: skip
    floats_only(name, input.dtype)
    return sizes


def _publish_adaptive(dims: int) -> None:
    name = f"adaptive_max_pool{dims}d"

    def with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        size = adaptive_size(name, input, output_size, dims, True)
        if dims > 1:
            return adaptive_max_pool(input, size=size)
        return _flattened(lambda x: adaptive_max_pool(x, size=(1, *size)), input)

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        result = with_indices(input, output_size)
        return result if return_indices else result[0]

    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    pool.__doc__ = f"{name}(input, output_size, return_indices=False)."
    with_indices.__doc__ = f"{name} with return_indices=True."
    public(name, spaces="nn.functional", method=False)(pool)
    public(name + "_with_indices", spaces="nn.functional", method=False)(with_indices)


def _fraction_size(name: str, input: Any, dims: int, size: Any, ratio: Any) -> Ints:
    if size is not None:
        return _ints(name, "output_size", size, dims)
    if ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    ratios = tuple(ratio)
    ratios = ratios * dims if len(ratios) == 1 else ratios
    if len(ratios) > dims:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of "
                         "Ints.")  # fmt: skip
    return tuple(int(n * r) for n, r in zip(input.shape[-dims:], ratios))


def _publish_fractional(dims: int) -> None:
    name = f"fractional_max_pool{dims}d"

    def with_indices(input: Any, kernel_size: Any, output_size: Any = None,
                     output_ratio: Any = None, return_indices: bool = False,
                     _random_samples: Any = None) -> Any:  # fmt: skip
        kernel = _ints(name, "kernel_size", kernel_size, dims)
        size = _fraction_size(name, input, dims, output_size, output_ratio)
        _check_input(name, input, dims)
        for n, k, o in zip(input.shape[-dims:], kernel, size):
            if o + k - 1 > n:
                raise RuntimeError(f"{name}(): pool size {k} too large relative to input size {n}")
        if _random_samples is None:
            batch = input.shape[0] if input.ndim == dims + 2 else 1
            shape = (batch, input.shape[-dims - 1], dims)
            _random_samples = draw(distribution="uniform", size=shape, dtype=input.dtype)
        if input.ndim < dims + 2:  # without a batch, the samples of the first one
            _random_samples = _random_samples[:1]
        return fractional_max_pool(input, _random_samples, kernel=kernel, size=size)

    def pool(input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
             return_indices: bool = False, _random_samples: Any = None) -> Any:  # fmt: skip
        result = with_indices(input, kernel_size, output_size, output_ratio, True, _random_samples)
        return result if return_indices else result[0]

    pool.__name__ = pool.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = name + "_with_indices"
    pool.__doc__ = (f"{name}(input, kernel_size, output_size=None, output_ratio=None, "
                    "return_indices=False, _random_samples=None).")  # fmt: skip
    with_indices.__doc__ = f"{name} with return_indices=True."
    public(name, spaces="nn.functional", method=False)(pool)
    public(name + "_with_indices", spaces="nn.functional", method=False)(with_indices)


for _dims in (1, 2, 3):
    _publish_max(_dims)
    _publish_average(_dims)
    _publish_unpool(_dims)
    _publish_adaptive(_dims)
    if _dims > 1:
        _publish_fractional(_dims)
