"""Mirrored borders, windows as columns and pools of equal parts, said in windows and joined parts.

What sums is left to be widened where it is of 16-bit floats: it returns None for these.
"""

from __future__ import annotations

from typing import Any

from ..ir.op import TABLE
from .affine import strides_of
from .expand import filled, flip, joined, padded, rule
from .expand_scatter import update
from .expand_windows import FLOATS, add_windows, bordered, windows
from .private import WINDOW, Ints, numel, slices


def part(x: Any, dim: int, start: int, stop: int) -> Any:
    shape = tuple(x.shape)
    return slices(x, tuple(start if d == dim else 0 for d in range(x.ndim)),
                  tuple(stop if d == dim else n for d, n in enumerate(shape)))  # fmt: skip


# --- borders -------------------------------------------------------------------------------------


def border(x: Any, dim: int, width: int, mode: str, first: bool) -> Any:
    """What stands before `x` along a dimension, or after it."""
    n = x.shape[dim]
    if mode == "circular":
        start = n - width if first else 0
        return part(x, dim, start, start + width)
    if mode == "reflect":
        start = 1 if first else n - 1 - width
        return flip(part(x, dim, start, start + width), dims=(dim,))
    start = 0 if first else n - 1
    size = tuple(width if d == dim else m for d, m in enumerate(x.shape))
    return part(x, dim, start, start + 1).expand(size)


def taken_back(edge: Any, dim: int, n: int, mode: str, first: bool) -> tuple[Any, int]:
    """What a border's gradient adds to the n elements it was copied from, and where."""
    width = edge.shape[dim]
    if mode == "circular":
        return edge, n - width if first else 0
    if mode == "reflect":
        return flip(edge, dims=(dim,)), 1 if first else n - 1 - width
    return TABLE["sum"](edge, dim=(dim,), keepdim=True), 0 if first else n - 1


def widths(x: Any, pad: Ints) -> list[tuple[int, int, int]]:
    """(dimension, before, after), where there is a border."""
    last = x.ndim - 1
    pairs = [(last - k, *pad[2 * k : 2 * k + 2]) for k in range(len(pad) // 2)]
    return [(d, a, b) for d, a, b in sorted(pairs) if a or b]


@rule("mirror_pad")
def mirror_pad(x: Any, *, pad: Ints, mode: str) -> Any:
    if min(pad) < 0 or not numel(x.shape):
        return None
    for dim, before, after in widths(x, pad):
        size, n = list(x.shape), x.shape[dim]
        size[dim] += before + after
        parts = [(x, before)]
        parts += [(border(x, dim, before, mode, True), 0)] if before else []
        parts += [(border(x, dim, after, mode, False), before + n)] if after else []
        x = joined(tuple(size), [(part_, tuple(place if d == dim else 0 for d in range(x.ndim)))
                                 for part_, place in parts])  # fmt: skip
    return x.clone()


@rule("mirror_fold")
def mirror_fold(grad: Any, *, pad: Ints, mode: str, size: Ints) -> Any:
    if min(pad) < 0 or not numel(grad.shape) or grad.dtype.name not in FLOATS:
        return None
    for dim, before, after in widths(grad, pad):
        n, whole = size[dim], grad.shape[dim]
        total = part(grad, dim, before, before + n)
        for start, stop in ((0, before), (whole - after, whole)):
            if start == stop:
                continue
            value, at = taken_back(part(grad, dim, start, stop), dim, n, mode, start == 0)
            room = [(0, 0)] * grad.ndim
            room[dim] = (at, n - at - value.shape[dim])
            total = total + padded(value, room, 0)
        grad = total
    return grad.clone()


# --- columns -------------------------------------------------------------------------------------


@rule("im2col")
def im2col(x: Any, *, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Any:
    if not numel(x.shape):
        return None
    out = positions(tuple(x.shape[-2:]), kernel, dilation, padding, stride)
    seen = windows(bordered(x, [(p, p) for p in padding], 0), kernel, stride, dilation, out)
    rows = x.shape[-3] * numel(kernel)
    return seen.view((*x.shape[:-3], rows, numel(out))).clone() if numel(out) else None


@rule("col2im")
def col2im(columns: Any, *, size: Ints, kernel: Ints, dilation: Ints, padding: Ints,
           stride: Ints) -> Any:  # fmt: skip
    out = positions(size, kernel, dilation, padding, stride)
    if not numel(columns.shape) or columns.dtype.name not in FLOATS:
        return None
    channels = columns.shape[-2] // numel(kernel)
    spread = columns.view((*columns.shape[:-2], channels, *kernel, *out))
    return add_windows(spread, tuple(size), kernel, stride, padding, (*dilation,), out)


def positions(size: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in zip(
        size, kernel, dilation, padding, stride))  # fmt: skip


@rule("unfold")
def unfold(x: Any, *, dimension: int, size: int, step: int) -> Any:
    if not x.ndim or not numel(x.shape) or not size:
        return None
    shape, strides = list(x.shape), list(strides_of(tuple(x.shape)))
    inner = strides[dimension]
    shape[dimension] = (shape[dimension] - size) // step + 1
    strides[dimension] *= step
    return WINDOW(x, size=(*shape, size), strides=(*strides, inner), offset=0)


@rule("unfold_backward")
def unfold_backward(grad: Any, *, input_sizes: Ints, dimension: int, size: int, step: int) -> Any:
    if not input_sizes or not numel(grad.shape) or grad.dtype.name not in FLOATS:
        return None
    strides = list(strides_of(tuple(input_sizes)))
    inner = strides[dimension]
    strides[dimension] *= step
    zero = filled(tuple(input_sizes), 0, grad.dtype)
    return update(zero, grad, (*strides, inner), [], True, free=dimension)


# --- blocks: pools of equal parts; their adjoints repeat elements ---------------------------------


def factors(large: Ints, small: Ints) -> Ints | None:
    """How many elements of the larger size belong to each of the smaller, if they divide."""
    if not numel((*large, *small)) or any(n % m for n, m in zip(large, small)):
        return None
    return tuple(n // m for n, m in zip(large, small))


def interleaved(lead: Ints, size: Ints, block: Ints) -> Ints:
    return (*lead, *(k for pair in zip(size, block) for k in pair))


def sums_of_blocks(x: Any, size: Ints) -> Any:
    inner = tuple(x.shape[x.ndim - len(size) :])
    lead, block = tuple(x.shape[: x.ndim - len(size)]), factors(inner, size)
    if block is None or not numel(lead) or x.dtype.name not in FLOATS:
        return None
    summed = tuple(len(lead) + 2 * d + 1 for d in range(len(size)))
    parts = x.view(interleaved(lead, size, block))
    return TABLE["sum"](parts, dim=summed, keepdim=True).view((*lead, *size))


def repeated(x: Any, size: Ints) -> Any:
    inner = tuple(x.shape[x.ndim - len(size) :])
    lead, block = tuple(x.shape[: x.ndim - len(size)]), factors(size, inner)
    if block is None or not numel(lead):
        return None
    single = x.view(interleaved(lead, inner, (1,) * len(size)))
    return single.expand(interleaved(lead, inner, block)).reshape((*lead, *size))


def repeats(mode: str, source: Ints, size: Ints, scales: Any) -> bool:
    """Does resampling repeat each element as often?"""
    block = factors(size, source)
    return mode in ("nearest", "nearest-exact") and block is not None and (
        scales is None or tuple(scales) == block)  # fmt: skip


@rule("resample")
def resample(x: Any, *, mode: str, size: Ints, scales: Any = None, **_: Any) -> Any:
    inner = tuple(x.shape[x.ndim - len(size) :])
    if mode == "adaptive":
        total = sums_of_blocks(x, size)
        return None if total is None else total / (numel(inner) // numel(size))
    return repeated(x, size) if repeats(mode, inner, size, scales) else None


@rule("resample_adjoint")
def resample_adjoint(grad: Any, *, source: Ints, mode: str, size: Ints, scales: Any = None,
                     **_: Any) -> Any:  # fmt: skip
    if mode == "adaptive":
        shared = repeated(grad, tuple(source))
        return None if shared is None else shared / (numel(source) // numel(size))
    return sums_of_blocks(grad, source) if repeats(mode, source, size, scales) else None


@rule("adaptive_avg_pool")
def adaptive_avg_pool(x: Any, *, size: Ints) -> Any:
    return resample(x, mode="adaptive", size=size)
