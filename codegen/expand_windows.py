"""Convolutions and pools, said in windows, products and reductions; expand_spread.py has the
gradient of a convolution's input.

A window view has the window's positions as dimensions of their own, so a pool is a reduction over
them, and a convolution is a contraction over them: a product that reads the windows where they
are. Only a border is stored, where there is padding.
"""

from __future__ import annotations

from typing import Any

from ..ir.op import TABLE
from ..ir.types import float32, float64, int64
from .affine import strides_of
from .expand import filled, padded, rule
from .expand_scatter import update
from .private import CONTRACTION, COORDINATE, WINDOW, Ints, numel

FLOATS = ("float32", "float64")


def windows(x: Any, kernel: Ints, stride: Ints, dilation: Ints, out: Ints) -> Any:
    """(*lead, *kernel, *out): the elements under each position of each window."""
    dims = len(kernel)
    lead, steps = tuple(x.shape[:-dims]), strides_of(tuple(x.shape))
    inner = steps[-dims:]
    strides = (*steps[:-dims], *(s * d for s, d in zip(inner, dilation)),
               *(s * t for s, t in zip(inner, stride)))  # fmt: skip
    return WINDOW(x, size=(*lead, *kernel, *out), strides=strides, offset=0)


def bordered(x: Any, pads: list[tuple[int, int]], value: Any) -> Any:
    """Padding of the trailing dimensions; None where there is nothing to compute."""
    if not any(a or b for a, b in pads):
        return x
    return padded(x, [(0, 0)] * (x.ndim - len(pads)) + pads, value)


@rule("convolution")
def convolution(x: Any, weight: Any, bias: Any, *, stride: Ints, padding: Ints, dilation: Ints,
                groups: int) -> Any:  # fmt: skip
    kernel, dtype = tuple(weight.shape[2:]), x.dtype
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(
        x.shape[2:], kernel, stride, padding, dilation))  # fmt: skip
    batch, channels, outputs = x.shape[0], x.shape[1], weight.shape[0]
    if dtype.name not in FLOATS or not numel((batch, channels, outputs, *out, *kernel)):
        return None
    x = bordered(x, [(p, p) for p in padding], 0)
    if x is None:
        return None
    seen = windows(x, kernel, stride, dilation, out)
    if groups > 1 and channels == groups == outputs:
        result = depthwise(seen, weight, kernel, out)
    else:
        sums = (channels // groups, *kernel)
        columns = seen.view((batch, groups, *sums, *out))
        matrix = weight.view((1, groups, outputs // groups, *sums)).expand(
            (batch, groups, outputs // groups, *sums))  # fmt: skip
        product = CONTRACTION(matrix, columns, batch=2, inner=len(sums))
        result = product.view((batch, outputs, *out))
    if bias is not None:
        result = result + bias.view((1, outputs, *(1,) * len(out)))
    return result


def depthwise(seen: Any, weight: Any, kernel: Ints, out: Ints) -> Any:
    """A sum of weighted windows: with one channel a product would be a vector's."""
    channels = weight.shape[0]
    scale = weight.view((1, channels, *kernel, *(1,) * len(out)))
    dims = tuple(range(2, 2 + len(kernel)))
    total = TABLE["sum"](seen * scale, dim=dims, keepdim=True)
    return total.view((seen.shape[0], channels, *out))


def add_windows(columns: Any, size: Ints, kernel: Ints, stride: Ints, padding: Ints,
                dilation: Ints, out: Ints) -> Any:  # fmt: skip
    """The adjoint of padding and windows: every position adds to the element it was read from."""
    lead = tuple(columns.shape[: -2 * len(kernel)])
    geometry = zip(size, padding, out, stride, dilation, kernel)
    room = tuple(max(n + 2 * p, (o - 1) * s + d * (k - 1) + 1) for n, p, o, s, d, k in geometry)
    shape = (*lead, *room)
    steps = strides_of(shape)
    inner = steps[len(lead) :]
    strides = (*steps[: len(lead)], *(s * d for s, d in zip(inner, dilation)),
               *(s * t for s, t in zip(inner, stride)))  # fmt: skip
    total = update(filled(shape, 0, columns.dtype), columns, strides, [], True, free=len(lead))
    if room == size:
        return total
    offset = sum(p * s for p, s in zip(padding, inner))
    return WINDOW(total, size=(*lead, *size), strides=steps, offset=offset)


@rule("conv_weight")
def conv_weight(x: Any, grad: Any, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
                groups: int) -> Any:  # fmt: skip
    batch, channels, outputs = x.shape[0], x.shape[1], grad.shape[1]
    out, dims = tuple(grad.shape[2:]), len(kernel)
    if x.dtype.name not in FLOATS or not numel((batch, channels, outputs, *out, *kernel)):
        return None
    x = bordered(x, [(p, p) for p in padding], 0)
    if x is None:
        return None
    seen = windows(x, kernel, stride, dilation, out)
    if groups > 1 and channels == groups == outputs:
        spread = grad.view((batch, channels, *(1,) * dims, *out))
        axes = (0, *range(2 + dims, 2 + 2 * dims))
        total = TABLE["sum"](seen * spread, dim=axes, keepdim=True)
        return total.view((channels, 1, *kernel))
    inside = tuple(range(3 + dims, 3 + 2 * dims))
    columns = seen.view((batch, groups, channels // groups, *kernel, *out)).permute(
        (1, 0, *inside, *range(2, 3 + dims)))  # fmt: skip
    left = grad.view((batch, groups, outputs // groups, *out)).permute(
        (1, 2, 0, *range(3, 3 + dims)))  # fmt: skip
    product = CONTRACTION(left, columns, batch=1, inner=1 + dims)
    return product.view((outputs, channels // groups, *kernel))


# --- pools ---------------------------------------------------------------------------------------


def hanging(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
            out: Ints) -> list[tuple[int, int]]:  # fmt: skip
    """The padding that all windows need; with ceil_mode the last ones hang over."""
    return [(p, max(p, (o - 1) * s + d * (k - 1) + 1 - n - p))
            for n, k, s, p, d, o in zip(size, kernel, stride, padding, dilation, out)]  # fmt: skip


def pooled(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
           ceil_mode: bool) -> Ints:  # fmt: skip
    result = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        count = -(-room // s) + 1 if ceil_mode else room // s + 1
        result.append(count - (ceil_mode and (count - 1) * s >= n + p))
    return tuple(result)


@rule("max_pool")
def max_pool(x: Any, *, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints,
             ceil_mode: bool) -> Any:  # fmt: skip
    dims = len(kernel)
    size, lead = tuple(x.shape[-dims:]), tuple(x.shape[:-dims])
    out = pooled(size, kernel, stride, padding, dilation, ceil_mode)
    if not x.dtype.is_floating_point or not numel((*lead, *out, *size)):
        return None
    pads = hanging(size, kernel, stride, padding, dilation, out)
    x = bordered(x, pads, float("-inf"))
    if x is None:
        return None
    seen = windows(x, kernel, stride, dilation, out)
    axes = tuple(range(len(lead), len(lead) + dims))
    best = TABLE["amax"](seen, dim=axes, keepdim=True)
    shape = tuple(seen.shape)
    # Where in its window: the first maximum, or the last NaN, whose places count down. As a float,
    # which is compared and chosen lane by lane, beside x.
    far = 1 + sum(s * d * (k - 1) for s, d, k in zip(strides_of(size), dilation, kernel))
    real = float64 if x.dtype.name == "float64" or far >= 2**24 else float32
    away, back = (along(shape, len(lead), size, dilation, sign, real) for sign in (1, -1))
    found = away.where(seen.eq(best.expand(shape)), filled(shape, far, real))
    found = TABLE["amin"](back.where(seen.isnan(), found), dim=axes, keepdim=True)
    found = (-1 - found).where(found.lt(0), found)
    ends, steps = tuple(best.shape), strides_of(size)
    strides = (*(0,) * (len(lead) + dims), *(s * t for s, t in zip(steps, stride)))
    offset = -sum(p * s for p, s in zip(padding, steps))
    place = COORDINATE(size=ends, strides=strides, offset=offset) + found.to(int64)
    if any(map(any, pads)):  # a window of -inf alone: its first position that is not padding
        starts = [coordinate(ends, len(lead) + dims + d, stride[d], -p)
                  for d, p in enumerate(padding)]  # fmt: skip
        entered = [entry(start, d) for start, d in zip(starts, dilation)]
        place = flat(entered, size).where(best.eq(float("-inf")), place)
    # they are in the plane anyway, but so it can be seen (trusted.py)
    place = TABLE["clamp"](place, min=0, max=numel(size) - 1)
    return best.view((*lead, *out)), place.view((*lead, *out))


def along(shape: Ints, first: int, size: Ints, dilation: Ints, sign: int, dtype: Any) -> Any:
    """How far each position of a window is from its start, in a plane of this size; -1 and less
    where `sign` is."""
    strides = [0] * len(shape)
    strides[first : first + len(size)] = [sign * s * d for s, d in zip(strides_of(size), dilation)]
    return COORDINATE(size=shape, strides=tuple(strides), offset=min(0, sign), dtype=dtype)


def coordinate(shape: Ints, dim: int, step: int, offset: int) -> Any:
    strides = tuple(step if d == dim else 0 for d in range(len(shape)))
    return COORDINATE(size=shape, strides=strides, offset=offset)


def flat(places: list[Any], size: Ints) -> Any:
    """The position in a plane of what has these coordinates."""
    total = None
    for place, step in zip(places, strides_of(size)):
        part = place * step
        total = part if total is None else total + part
    return total


def entry(start: Any, dilation: int) -> Any:
    """The first position of a window that begins at `start` which is not before the plane."""
    if dilation == 1:
        return start.clamp(min=0)
    return start.remainder(dilation).where(start.lt(0), start)


@rule("avg_pool")
def avg_pool(x: Any, *, kernel: Ints, stride: Ints, padding: Ints, ceil_mode: bool,
             count_include_pad: bool, divisor_override: Any) -> Any:  # fmt: skip
    dims, ones = len(kernel), (1,) * len(kernel)
    size, lead = tuple(x.shape[-dims:]), tuple(x.shape[:-dims])
    out = pooled(size, kernel, stride, padding, ones, ceil_mode)
    if not x.dtype.is_floating_point or not numel((*lead, *out, *size)):
        return None
    x = bordered(x, hanging(size, kernel, stride, padding, ones, out), 0)
    if x is None:
        return None
    axes = tuple(range(len(lead), len(lead) + dims))
    total = TABLE["sum"](windows(x, kernel, stride, ones, out), dim=axes, keepdim=True)
    total = total.view((*lead, *out))
    return total / divisors(total, size, kernel, stride, padding, count_include_pad,
                            divisor_override)  # fmt: skip


def divisors(like: Any, size: Ints, kernel: Ints, stride: Ints, padding: Ints, whole: bool,
             override: Any) -> Any:  # fmt: skip
    """How many elements each window averages."""
    dims, shape = len(kernel), tuple(like.shape)
    out = shape[-dims:]
    if override is not None:
        return filled((), override, like.dtype)
    total = filled((), 1, TABLE["full"](size=(), fill_value=1, dtype=like.dtype).dtype)
    for d in range(dims):
        n, k, s, p = size[d], kernel[d], stride[d], padding[d]
        low = p if whole else 0
        if (out[d] - 1) * s - p + k <= n + low and (whole or not p):
            total = total * filled((), k, like.dtype)
            continue
        strides = tuple(s if e == len(shape) - dims + d else 0 for e in range(len(shape)))
        start = COORDINATE(size=shape, strides=strides, offset=-p)
        end = (start + k).clamp(max=n + low)
        total = total * (end - start.clamp(min=-low)).to(like.dtype)
    return total


@rule("avg_spread")
def avg_spread(grad: Any, *, size: Ints, kernel: Ints, stride: Ints, padding: Ints,
               count_include_pad: bool = True, divisor_override: Any = None, **_: Any,
               ) -> Any:  # fmt: skip
    dims, ones = len(kernel), (1,) * len(kernel)
    lead, out = tuple(grad.shape[:-dims]), tuple(grad.shape[-dims:])
    if not grad.dtype.is_floating_point or not numel((*lead, *out, *size)):
        return None
    share = grad / divisors(grad, size, kernel, stride, padding, count_include_pad,
                            divisor_override)  # fmt: skip
    spread = share.view((*lead, *ones, *out)).expand((*lead, *kernel, *out))
    return add_windows(spread, tuple(size), kernel, stride, padding, ones, out)
